// Which pods are of a pod's kind, where it does not say so itself: those of its Services and of the workload that made it. What
// PodTopologySpread's default constraints count. Pure.

import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { matchesLabelSelector } from '../../client/selectors.ts';
import type { Pod, Service } from '../../client/types.ts';

interface Workload {
  readonly spec?: { readonly selector?: LabelSelector };
}
interface ReplicationController {
  readonly spec?: { readonly selector?: Readonly<Record<string, string>> };
}

export interface KindSources {
  services(namespace: string): readonly Service[];
  /** By "namespace/name". */
  replicaSet(key: string): Workload | undefined;
  statefulSet(key: string): Workload | undefined;
  replicationController(key: string): ReplicationController | undefined;
}

function ofWorkload(pod: Pod, sources: KindSources): LabelSelector {
  const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return {};
  const key = `${pod.metadata.namespace}/${owner.name}`;
  switch (owner.kind) {
    case 'ReplicaSet':
      return sources.replicaSet(key)?.spec?.selector ?? {};
    case 'StatefulSet':
      return sources.statefulSet(key)?.spec?.selector ?? {};
    case 'ReplicationController':
      return { matchLabels: { ...sources.replicationController(key)?.spec?.selector } };
    default:
      return {};
  }
}

/** All of the selectors at once; undefined where the pod belongs to nothing. */
export function defaultSelector(pod: Pod, sources: KindSources): LabelSelector | undefined {
  const labels = pod.metadata.labels ?? {};
  const services = sources
    .services(pod.metadata.namespace)
    .map(({ spec }) => spec?.selector ?? {})
    .filter((selector) => Object.keys(selector).length > 0 && matchesLabelSelector({ matchLabels: selector }, labels));
  const workload = ofWorkload(pod, sources);
  const matchLabels = Object.assign({}, ...services, workload.matchLabels);
  const matchExpressions = workload.matchExpressions ?? [];
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) return undefined;
  return { matchLabels, matchExpressions };
}
