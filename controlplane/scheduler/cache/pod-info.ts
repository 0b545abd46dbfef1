// A pod with everything about it that plugins compare often, worked out once.

import type { Pod } from '../../../client/types.ts';
import { claimNamesOf } from '../../storage/objects.ts';
import { type HostPort, hostPorts, nonZeroRequests, podRequests } from '../requests.ts';
import { type AffinityTerm, affinityTerm, type WeightedTerm } from './affinity-term.ts';
import { Resources } from './resources.ts';

export interface PodInfo {
  readonly pod: Pod;
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** "namespace/name" */
  readonly key: string;
  readonly priority: number;
  readonly requests: Resources;
  /** With 100m cpu and 200 MB for each container that requests none: so that such pods spread, too. */
  readonly nonZero: Resources;
  readonly hostPorts: readonly HostPort[];
  /** "namespace/name" of the claims that it uses. */
  readonly claims: readonly string[];
  readonly requiredAffinity: readonly AffinityTerm[];
  readonly requiredAntiAffinity: readonly AffinityTerm[];
  /** Of affinity with their weights, of anti-affinity with negative ones. */
  readonly preferred: readonly WeightedTerm[];
}

export function podInfo(pod: Pod): PodInfo {
  const { namespace, name, uid } = pod.metadata;
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
  const weighted = (
    sign: 1 | -1,
    terms: NonNullable<typeof podAffinity>['preferredDuringSchedulingIgnoredDuringExecution'],
  ) =>
    (terms ?? []).map(({ weight, podAffinityTerm }) => ({
      ...affinityTerm(namespace, podAffinityTerm),
      weight: sign * weight,
    }));
  return {
    pod,
    uid,
    name,
    namespace,
    key: `${namespace}/${name}`,
    priority: pod.spec.priority ?? 0,
    requests: Resources.of(podRequests(pod)),
    nonZero: Resources.of(nonZeroRequests(pod)),
    hostPorts: hostPorts(pod),
    claims: claimNamesOf(pod).map((claim) => `${namespace}/${claim}`),
    requiredAffinity: (podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
      affinityTerm(namespace, term),
    ),
    requiredAntiAffinity: (podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
      affinityTerm(namespace, term),
    ),
    preferred: [
      ...weighted(1, podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
      ...weighted(-1, podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    ],
  };
}
