// Which pods of a target count for a metric: ready ones, those too young to be believed, those without a figure, and those
// that are on their way out. Pure.

import type { Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs, plusMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';

/** A metric of one pod. `value` in thousandths. */
export interface PodMetric {
  readonly value: number;
  /** End of the window that it was measured in. */
  readonly at: EpochMs;
  readonly windowMs: number;
}

/** By the pods' names. */
export type PodMetrics = ReadonlyMap<string, PodMetric>;

/** kube-controller-manager's flags of this controller. ms, but for the tolerance. */
export interface AutoscalerSettings {
  readonly syncPeriodMs: number;
  /** Between 0 and 1: a ratio this near to 1 changes nothing. */
  readonly tolerance: number;
  readonly downscaleStabilizationMs: number;
  /** How long after its start a pod's processor time is left out while it is not ready. */
  readonly cpuInitializationMs: number;
  /** How long after its start a pod that is not ready is taken never to have been. */
  readonly initialReadinessDelayMs: number;
}

export const AUTOSCALER_DEFAULTS: AutoscalerSettings = {
  syncPeriodMs: 15_000,
  tolerance: 0.1,
  downscaleStabilizationMs: 300_000,
  cpuInitializationMs: 300_000,
  initialReadinessDelayMs: 30_000,
};

export interface PodGroups {
  readonly readyCount: number;
  readonly unready: ReadonlySet<string>;
  /** Without a figure. */
  readonly missing: ReadonlySet<string>;
  /** Deleted or failed. */
  readonly ignored: ReadonlySet<string>;
}

type Figures = Pick<AutoscalerSettings, 'cpuInitializationMs' | 'initialReadinessDelayMs'>;

/** Whether the processor time of a pod says nothing yet: it starts. */
function isStarting({ status }: Pod, metric: PodMetric, settings: Figures, now: EpochMs): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const startedAt = parseRfc3339(status?.startTime);
  const changedAt = parseRfc3339(ready?.lastTransitionTime);
  if (ready === undefined || startedAt === undefined || changedAt === undefined) return true;
  if (elapsedMs(startedAt, now) < settings.cpuInitializationMs) {
    return ready.status === 'False' || metric.at < plusMs(changedAt, metric.windowMs);
  }
  // It has not been ready since it started.
  return ready.status === 'False' && plusMs(startedAt, settings.initialReadinessDelayMs) > changedAt;
}

/** `resource`: undefined for metrics that are no resource's. */
export function groupPods(
  pods: readonly Pod[],
  metrics: PodMetrics,
  resource: string | undefined,
  settings: Figures,
  now: EpochMs,
): PodGroups {
  const [unready, missing, ignored] = [new Set<string>(), new Set<string>(), new Set<string>()];
  let readyCount = 0;
  for (const pod of pods) {
    const { name } = pod.metadata;
    const metric = metrics.get(name);
    if (pod.metadata.deletionTimestamp !== undefined || pod.status?.phase === 'Failed') ignored.add(name);
    else if (pod.status?.phase === 'Pending') unready.add(name);
    else if (metric === undefined) missing.add(name);
    else if (resource === 'cpu' && isStarting(pod, metric, settings, now)) unready.add(name);
    else readyCount++;
  }
  return { readyCount, unready, missing, ignored };
}
