// Which of a deployment's replica sets has its template now, what a new one looks like, and which old ones are kept. Pure.

import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import { sameJson } from '../../../lib/same-json.ts';
import { controllerReference, DEPLOYMENT, type Deployment, type ReplicaSet, replicasOf } from '../shared/objects.ts';
import { templateHash } from '../shared/template-hash.ts';
import { newSetAnnotations, revisionOf, sizeAnnotations } from './annotations.ts';

const HASH = 'pod-template-hash';
const MAX_NAME = 253;
/** A limit that is none. */
const NO_LIMIT = 2 ** 31 - 1;

function withoutHash(template: PodTemplateSpec | undefined): unknown {
  const { metadata, spec } = template ?? {};
  const { labels = {}, ...rest } = metadata ?? {};
  const { [HASH]: _, ...others } = labels;
  return { metadata: { ...rest, labels: others }, spec };
}

/** Whether two templates make the same pods; the hash that the controller adds does not count. */
export function sameTemplate(a: PodTemplateSpec | undefined, b: PodTemplateSpec | undefined): boolean {
  return sameJson(withoutHash(a), withoutHash(b));
}

/** Oldest first; of two of the same second by name. */
export function byAge(sets: readonly ReplicaSet[]): readonly ReplicaSet[] {
  const age = ({ metadata }: ReplicaSet): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return sets.toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
}

export interface Split {
  /** The oldest one with the deployment's template. */
  readonly current: ReplicaSet | undefined;
  readonly old: readonly ReplicaSet[];
}

export function splitSets({ spec }: Deployment, sets: readonly ReplicaSet[]): Split {
  const ordered = byAge(sets);
  const current = ordered.find((set) => sameTemplate(set.spec.template, spec.template));
  return { current, old: ordered.filter((set) => set !== current) };
}

/** Those that have or want pods. */
export const activeSets = (sets: readonly ReplicaSet[]): readonly ReplicaSet[] =>
  sets.filter((set) => replicasOf(set) > 0);

/** The replica set of the deployment's template, to be created. */
export function newSet(deployment: Deployment, replicas: number, revision: bigint) {
  const { metadata, spec, status } = deployment;
  const hash = templateHash(spec.template, status?.collisionCount);
  const labels = { ...spec.template.metadata?.labels, [HASH]: hash };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${metadata.name.slice(0, MAX_NAME - hash.length - 1)}-${hash}`,
      namespace: metadata.namespace,
      labels,
      annotations: { ...newSetAnnotations(deployment, {}, revision), ...sizeAnnotations(deployment) },
      ownerReferences: [controllerReference(DEPLOYMENT, deployment)],
    },
    spec: {
      replicas,
      ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
      selector: { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, [HASH]: hash } },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  };
}

/** Old sets beyond revisionHistoryLimit, those of the lowest revisions, as far as they are empty. */
export function setsToDelete({ spec }: Deployment, old: readonly ReplicaSet[]): readonly ReplicaSet[] {
  const { revisionHistoryLimit: limit = NO_LIMIT } = spec;
  if (limit === NO_LIMIT) return [];
  const alive = byAge(old.filter(({ metadata }) => metadata.deletionTimestamp === undefined));
  const surplus = Math.max(0, alive.length - limit);
  const isEmpty = (set: ReplicaSet): boolean =>
    replicasOf(set) === 0 &&
    (set.status?.replicas ?? 0) === 0 &&
    (set.metadata.generation ?? 0) <= (set.status?.observedGeneration ?? 0);
  return alive
    .toSorted((a, b) => Number(revisionOf(a) - revisionOf(b)))
    .slice(0, surplus)
    .filter(isEmpty);
}
