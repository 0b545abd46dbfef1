// When a probe runs: the first time, and every time after. Pure; milliseconds throughout.

import type { EpochMs, MonotonicMs } from '../../lib/clock.ts';

export interface FirstRun {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  /** When the container started, when the agent did, and now: epoch ms. */
  readonly startedAt: EpochMs;
  readonly agentStartedAt: EpochMs;
  readonly now: EpochMs;
  /** From 0 up to, not including, 1. */
  readonly random: number;
}

/**
 * How long until the first run. Containers that ran before the agent did are spread over one period, so that they are
 * not all probed together after an agent restart.
 */
export function firstRunDelay(first: FirstRun): number {
  const { initialDelayMs, periodMs, startedAt, agentStartedAt, now, random } = first;
  // The wall clock may have jumped: no wait is longer than the configured delay.
  const left = Math.min(initialDelayMs, Math.max(0, startedAt + initialDelayMs - now));
  const adopted = startedAt < agentStartedAt && now - agentStartedAt < periodMs;
  return adopted ? Math.max(left, random * periodMs) : left;
}

/**
 * How long until the next run on the grid `anchor + n × period` (monotonic). A run that began in slot `begun` and took
 * longer than the period is followed at once, as a ticker with room for one tick does it.
 */
export function nextRunDelay(anchor: MonotonicMs, periodMs: number, begun: MonotonicMs, now: MonotonicMs): number {
  const slotOf = (at: MonotonicMs): number => Math.floor((at - anchor) / periodMs);
  if (slotOf(now) > slotOf(begun)) return 0;
  return anchor + (slotOf(now) + 1) * periodMs - now;
}
