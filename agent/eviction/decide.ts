// When the node is under pressure, and which threshold is acted on first: thresholds met, grace periods, minimum
// reclaim, node conditions with their transition period (pkg/kubelet/eviction/helpers.go). Pure.

import type { MonotonicMs } from '../../lib/clock.ts';
import { CONDITION_OF, type PressureCondition, type Signal, type Threshold, thresholdAmount } from './thresholds.ts';
import type { Observations } from './types.ts';

/** A threshold is met while less than it is available; with `andReclaim`, until the minimum reclaim is free as well. */
export function isMet(threshold: Threshold, observations: Observations, andReclaim: boolean): boolean {
  const observed = observations[threshold.signal];
  if (observed === undefined) return false;
  const { value, minReclaim } = threshold;
  let amount = thresholdAmount(value, observed.capacity);
  if (andReclaim && minReclaim !== undefined) amount += thresholdAmount(minReclaim, observed.capacity);
  return observed.available < amount;
}

/** The state between two rounds. Times are monotonic ms. */
export interface PressureState {
  /** Thresholds acted on in the last round, which stay met until their minimum reclaim is free. */
  readonly met: readonly Threshold[];
  /** Since when each threshold has been met without a break. */
  readonly since: ReadonlyMap<Threshold, number>;
  /** When each condition was last found to hold. */
  readonly observedAt: ReadonlyMap<PressureCondition, number>;
  /** Conditions that the node reports. */
  readonly conditions: readonly PressureCondition[];
}

export const NO_PRESSURE_STATE: PressureState = { met: [], since: new Map(), observedAt: new Map(), conditions: [] };

/**
 * One round's decision. A condition holds at once when a threshold is met, grace period or not, and goes on until it
 * has not been observed for `transitionMs`. `met` has the thresholds whose grace period is over, the first to act on
 * first.
 */
export function nextPressureState(
  thresholds: readonly Threshold[],
  observations: Observations,
  before: PressureState,
  now: MonotonicMs,
  transitionMs: number,
): PressureState {
  const unresolved = new Set(before.met.filter((threshold) => isMet(threshold, observations, true)));
  const observed = thresholds.filter((threshold) => isMet(threshold, observations, false) || unresolved.has(threshold));
  const since = new Map(observed.map((threshold) => [threshold, before.since.get(threshold) ?? now]));
  const observedAt = new Map(before.observedAt);
  for (const { signal } of observed) observedAt.set(CONDITION_OF[signal], now);
  for (const [condition, at] of observedAt) if (at !== now && now - at >= transitionMs) observedAt.delete(condition);
  const due = observed.filter((threshold) => now - (since.get(threshold) ?? now) >= threshold.gracePeriodMs);
  return { met: byEvictionPriority(due), since, observedAt, conditions: [...observedAt.keys()] };
}

/** Memory goes first: it cannot be waited for. The rest keep the order of the configuration. */
export function byEvictionPriority(thresholds: readonly Threshold[]): readonly Threshold[] {
  const rank = ({ signal }: Threshold): number => (isMemory(signal) ? 0 : 1);
  return [...thresholds].sort((a, b) => rank(a) - rank(b));
}

function isMemory(signal: Signal): boolean {
  return CONDITION_OF[signal] === 'MemoryPressure';
}

/** Whether what was reclaimed from the node itself was enough for every threshold, minimum reclaim included. */
export function isResolved(met: readonly Threshold[], observations: Observations): boolean {
  return !met.some((threshold) => isMet(threshold, observations, true));
}

/** Seconds between TERM and KILL: hard evictions are at once (the kubelet's 1 s); soft ones have a limit of their own. */
export function evictionGraceSeconds(
  threshold: Pick<Threshold, 'gracePeriodMs'>,
  maxPodGracePeriodSeconds: number,
  podGraceSeconds: number | undefined,
): number {
  if (threshold.gracePeriodMs === 0) return IMMEDIATE_SECONDS;
  return Math.min(maxPodGracePeriodSeconds, podGraceSeconds ?? maxPodGracePeriodSeconds);
}

export const IMMEDIATE_SECONDS = 1;
