// Who is ended when the node shuts down, in what order and with how much time (KEP-2000, KEP-2712). Pure.

import type { Pod } from '../../client/types.ts';

/** From this priority on pods are critical to the system: they are ended last. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** Pods of this priority, up to the next group's, and the seconds that they get. */
export interface ShutdownGroup {
  readonly priority: number;
  readonly shutdownGracePeriodSeconds: number;
}

/** The part of KubeletConfiguration that plans a shutdown. Durations in ms. */
export interface ShutdownConfig {
  readonly shutdownGracePeriod: number;
  readonly shutdownGracePeriodCriticalPods: number;
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownGroup[];
}

/** The groups from the least to the most important; none where nothing is configured. */
export function shutdownGroups(config: ShutdownConfig): readonly ShutdownGroup[] {
  const { shutdownGracePeriod, shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority: own } = config;
  if (own.length > 0) return [...own].sort((a, b) => a.priority - b.priority);
  if (shutdownGracePeriod === 0) return [];
  const seconds = (ms: number): number => Math.floor(ms / 1000);
  return [
    { priority: 0, shutdownGracePeriodSeconds: seconds(shutdownGracePeriod - shutdownGracePeriodCriticalPods) },
    { priority: SYSTEM_CRITICAL_PRIORITY, shutdownGracePeriodSeconds: seconds(shutdownGracePeriodCriticalPods) },
  ];
}

/** How long a shutdown must be delayed for all groups, ms. */
export function wholePeriodMs(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, { shutdownGracePeriodSeconds }) => sum + shutdownGracePeriodSeconds * 1000, 0);
}

export interface ShutdownStep {
  readonly pods: readonly { readonly pod: Pod; readonly graceSeconds: number }[];
  /** How long this step may take, seconds. */
  readonly limitSeconds: number;
}

/** The steps, one after the other. A group without pods takes no time. */
export function shutdownSteps(groups: readonly ShutdownGroup[], pods: readonly Pod[]): readonly ShutdownStep[] {
  return groups
    .map(({ shutdownGracePeriodSeconds }, index) => ({
      limitSeconds: shutdownGracePeriodSeconds,
      pods: pods
        .filter((pod) => groupOf(groups, pod.spec.priority ?? 0) === index)
        .map((pod) => {
          const own = pod.spec.terminationGracePeriodSeconds ?? Number.POSITIVE_INFINITY;
          return { pod, graceSeconds: Math.min(own, shutdownGracePeriodSeconds) };
        }),
    }))
    .filter((step) => step.pods.length > 0);
}

/** The last group whose priority is not above the pod's; what is below all of them belongs to the first. */
function groupOf(groups: readonly ShutdownGroup[], priority: number): number {
  return Math.max(
    0,
    groups.findLastIndex((group) => group.priority <= priority),
  );
}
