// Who a stateful set's pods are: names with ordinals, host names, labels, and the claims that belong to each. Pure.

import type { PodTemplateSpec, Volume } from 'kubernetes-types/core/v1';
import type { Identified } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { controllerReference, STATEFUL_SET, type StatefulSet } from '../shared/objects.ts';
import { podFromTemplate } from '../shared/pods.ts';
import { REVISION_HASH } from '../shared/revisions.ts';

export const POD_NAME = 'statefulset.kubernetes.io/pod-name';
const POD_INDEX = 'apps.kubernetes.io/pod-index';
const MAX_ORDINAL = 2 ** 31 - 1;

/** The number at the end of the name of one of the set's pods; undefined for a name that is none of the set's. */
export function ordinalOf({ metadata }: Pick<StatefulSet, 'metadata'>, pod: Identified): number | undefined {
  const match = /^(.*)-(0|[1-9]\d*)$/.exec(pod.metadata.name);
  if (match === null || match[1] !== metadata.name) return undefined;
  const ordinal = Number(match[2]);
  return ordinal <= MAX_ORDINAL ? ordinal : undefined;
}

const firstOrdinal = ({ spec }: StatefulSet): number => spec.ordinals?.start ?? 0;

/** Ordinals of the pods that there should be: from the first one, without `end`. */
export function ordinalRange(set: StatefulSet): { readonly start: number; readonly end: number } {
  const start = firstOrdinal(set);
  return { start, end: start + (set.spec.replicas ?? 1) };
}

export const podName = ({ metadata }: StatefulSet, ordinal: number): string => `${metadata.name}-${ordinal}`;

export function claimName({ metadata }: StatefulSet, template: string, ordinal: number): string {
  return `${template}-${metadata.name}-${ordinal}`;
}

/** The revision of which a pod was made. */
export const podRevision = ({ metadata }: Pod): string => metadata.labels?.[REVISION_HASH] ?? '';

/** A template, and the name of its revision. */
export interface Version {
  readonly name: string;
  readonly template: PodTemplateSpec;
}

/**
 * Which of the two versions a new pod is made of. Below the partition it is the current one; a rolling update without
 * parameters counts as many pods as the current version has.
 */
export function versionFor(set: StatefulSet, current: Version, update: Version, ordinal: number): Version {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  const start = firstOrdinal(set);
  if (rollingUpdate !== undefined) return ordinal < start + (rollingUpdate.partition ?? 0) ? current : update;
  const kept = type === 'RollingUpdate' ? (set.status?.currentReplicas ?? 0) : 0;
  return ordinal < start + kept ? current : update;
}

const identityLabels = (set: StatefulSet, ordinal: number) => ({
  [POD_NAME]: podName(set, ordinal),
  [POD_INDEX]: String(ordinal),
});

/** A volume for each claim template, in the place of the template's own volume of that name. */
function volumesOf(set: StatefulSet, ordinal: number, volumes: readonly Volume[] = []): Volume[] {
  const names = (set.spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata?.name ?? '');
  const claimed = names.map((name) => ({
    name,
    persistentVolumeClaim: { claimName: claimName(set, name, ordinal) },
  }));
  return [...claimed, ...volumes.filter(({ name }) => !names.includes(name))];
}

/** The pod of this ordinal, to be created. */
export function newPod(set: StatefulSet, { name: revision, template }: Version, ordinal: number) {
  const body = podFromTemplate(template, controllerReference(STATEFUL_SET, set));
  const name = podName(set, ordinal);
  const { namespace } = set.metadata;
  const { subdomain: _, ...spec } = template.spec ?? { containers: [] };
  const volumes = volumesOf(set, ordinal, spec.volumes);
  return {
    ...body,
    metadata: {
      ...body.metadata,
      name,
      namespace,
      labels: { ...body.metadata.labels, ...identityLabels(set, ordinal), [REVISION_HASH]: revision },
    },
    spec: {
      ...spec,
      hostname: name,
      ...(set.spec.serviceName === '' ? {} : { subdomain: set.spec.serviceName }),
      ...(volumes.length === 0 ? {} : { volumes }),
    },
  };
}

/** The pod with the set's labels and volumes; undefined where it has them. */
export function repaired(set: StatefulSet, pod: Pod, ordinal: number): Pod | undefined {
  const named = pod.metadata.labels?.[POD_NAME] === pod.metadata.name;
  const wanted = volumesOf(set, ordinal, pod.spec.volumes);
  const claims = (set.spec.volumeClaimTemplates ?? []).length;
  const mounted = wanted.slice(0, claims).every((volume) => {
    const found = pod.spec.volumes?.find(({ name }) => name === volume.name);
    return sameJson(found?.persistentVolumeClaim?.claimName, volume.persistentVolumeClaim?.claimName);
  });
  if (named && mounted) return undefined;
  const labels = named ? pod.metadata.labels : { ...pod.metadata.labels, ...identityLabels(set, ordinal) };
  return {
    ...pod,
    metadata: { ...pod.metadata, ...(labels === undefined ? {} : { labels }) },
    spec: mounted ? pod.spec : { ...pod.spec, volumes: wanted },
  };
}
