// Exponential back-off as data: pure functions from an entry and a time to the next entry. The caller keeps the
// entries, which makes the state visible, testable and free of timers.

import type { MonotonicMs } from './clock.ts';

export interface BackoffPolicy {
  /** First delay, in ms. */
  readonly initialMs: number;
  /** Largest delay, in ms. */
  readonly maxMs: number;
  /** Growth per failure. */
  readonly factor: number;
  /** After this long (ms) without a failure the next one starts from `initialMs` again. */
  readonly resetMs: number;
}

/** `T`: the clock of its times, EpochMs or MonotonicMs. */
export interface BackoffEntry<T extends number = MonotonicMs> {
  /** The current delay, in ms. */
  readonly delayMs: number;
  /** When it was set. */
  readonly since: T;
}

/** The entry after one more failure at `now`. */
export function nextBackoff<T extends number>(
  policy: BackoffPolicy,
  entry: BackoffEntry<T> | undefined,
  now: T,
): BackoffEntry<T> {
  if (entry === undefined || now - entry.since > policy.resetMs) return { delayMs: policy.initialMs, since: now };
  return { delayMs: Math.min(entry.delayMs * policy.factor, policy.maxMs), since: now };
}

/** Milliseconds still to wait at `now` when the last attempt ended at `lastAttempt`; 0 when the wait is over. */
export function backoffRemaining<T extends number>(entry: BackoffEntry<T> | undefined, lastAttempt: T, now: T): number {
  if (entry === undefined) return 0;
  return Math.max(0, Math.min(entry.delayMs, lastAttempt + entry.delayMs - now));
}
