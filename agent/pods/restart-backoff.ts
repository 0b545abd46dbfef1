// CrashLoopBackOff: how long a container that ended waits before it runs again. Pure; the worker keeps the entries.

import type { Pod } from '../../client/types.ts';
import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../lib/backoff.ts';
import { type EpochMs, elapsedMs, plusMs } from '../../lib/clock.ts';
import { formatPod, goDuration } from './format.ts';

/** 10 s doubling to 5 min, from the start again after 10 min of running. */
const FIRST_MS = 10_000;
const LONGEST_MS = 300_000;
const RESET_MS = 600_000;

/** The policy where the configuration names the longest wait (crashLoopBackOff.maxContainerRestartPeriod, ms). */
export function restartBackoffPolicy(longestMs = LONGEST_MS): BackoffPolicy {
  return { initialMs: Math.min(FIRST_MS, longestMs), maxMs: longestMs, factor: 2, resetMs: RESET_MS };
}

/** The key under which a container's back-off is kept: a changed definition starts afresh. */
export function restartBackoffKey(containerName: string, hash: string): string {
  return `${containerName}_${hash}`;
}

/** An entry expires when the container had run longer than `resetMs` before it ended. */
function expired(policy: BackoffPolicy, entry: BackoffEntry<EpochMs>, finishedAt: EpochMs): boolean {
  return elapsedMs(entry.since, finishedAt) > policy.resetMs;
}

/**
 * When the container that ended at `finishedAt` may start again; undefined is "now". Whether it has to wait at
 * all is decided by the end at `decidingEnd`, where that is another.
 */
export function restartNotBefore(
  policy: BackoffPolicy,
  entry: BackoffEntry<EpochMs> | undefined,
  finishedAt: EpochMs,
  now: EpochMs,
  decidingEnd = finishedAt,
): EpochMs | undefined {
  if (entry === undefined || expired(policy, entry, finishedAt)) return undefined;
  // An end in the future means that the clock was set back: the container must not wait until then.
  if (elapsedMs(now, decidingEnd) > entry.delayMs || elapsedMs(now, finishedAt) > entry.delayMs) return undefined;
  return now < plusMs(decidingEnd, entry.delayMs) ? plusMs(finishedAt, entry.delayMs) : undefined;
}

/** The entry after the container that ended at `finishedAt` is started again at `now`: 10 s, 20 s, … 5 min. */
export function restartBackoffAfterStart(
  policy: BackoffPolicy,
  entry: BackoffEntry<EpochMs> | undefined,
  finishedAt: EpochMs,
  now: EpochMs,
): BackoffEntry<EpochMs> {
  const kept = entry === undefined || expired(policy, entry, finishedAt) ? undefined : entry;
  // The reset depends on how long the container ran (above), never on how long it then waited.
  return nextBackoff({ ...policy, resetMs: Number.POSITIVE_INFINITY }, kept, now);
}

/** The message of the CrashLoopBackOff waiting state. */
export function crashLoopMessage(delayMs: number, containerName: string, pod: Pod): string {
  return `back-off ${goDuration(delayMs)} restarting failed container=${containerName} pod=${formatPod(pod)}`;
}

/** The message of the BackOff event. */
export function backOffEventMessage(containerName: string, pod: Pod): string {
  return `Back-off restarting failed container ${containerName} in pod ${formatPod(pod)}`;
}
