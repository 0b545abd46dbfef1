// Doing something again: `retry` until it succeeds, with growing pauses; `poll` until it is so; `repeat` for as long as the
// process lives. The loops that are left elsewhere wait for something else than time, and say so.

import { sleepUnlessAborted } from './abort.ts';
import { type BackoffEntry, type BackoffPolicy, nextBackoff } from './backoff.ts';
import { type Clock, elapsedMs, plusMs } from './clock.ts';

type WaitingClock = Pick<Clock, 'monotonic' | 'sleep'>;

/** Pauses of one length. ms. */
export function steadyPauses(ms: number): BackoffPolicy {
  return { initialMs: ms, maxMs: ms, factor: 1, resetMs: Number.POSITIVE_INFINITY };
}

export interface RetryOptions {
  readonly clock: WaitingClock;
  readonly policy: BackoffPolicy;
  /** Milliseconds from now on within which a try may begin; without it there is no end. */
  readonly limitMs?: number;
  /** The most tries; without it there is no end. */
  readonly maxTries?: number;
  /** Whether another try can mend the failure; without it, any. */
  readonly mends?: (error: unknown) => boolean;
  /** Before each pause. `delayMs`: how long it is at most. */
  readonly onFailure?: (error: unknown, delayMs: number) => void;
  /** What ends the pause after this failure before its time, once it resolves. It must not reject. */
  readonly wake?: (error: unknown) => Promise<unknown> | undefined;
  /** Ends the pauses. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves to what `work` resolves to. Rejects with its last failure when that is final or the time is over, and with
 * the signal's reason when a pause is aborted. `leftMs`: what is left of the limit, for the try's own deadline.
 */
export async function retry<T>(work: (leftMs: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, policy, limitMs = Number.POSITIVE_INFINITY, maxTries, mends, onFailure, wake, signal } = options;
  const giveUpAt = plusMs(clock.monotonic(), limitMs);
  let pause: BackoffEntry | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await work(elapsedMs(clock.monotonic(), giveUpAt));
    } catch (error) {
      pause = nextBackoff(policy, pause, clock.monotonic());
      const isLast = tries === maxTries || plusMs(clock.monotonic(), pause.delayMs) >= giveUpAt;
      if (signal?.aborted === true || isLast || mends?.(error) === false) throw error;
      onFailure?.(error, pause.delayMs);
      await rest(clock, pause.delayMs, wake?.(error), signal);
    }
  }
}

async function rest(
  clock: WaitingClock,
  ms: number,
  woken: Promise<unknown> | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (woken === undefined) {
    await clock.sleep(ms, signal);
    return;
  }
  const over = new AbortController();
  const end = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  try {
    await Promise.race([sleepUnlessAborted(clock, ms, end), woken]);
  } finally {
    over.abort();
  }
  signal?.throwIfAborted();
}

/** `retry` for as long as it takes: resolves to undefined, whatever the last failure was, once the signal has aborted. */
export async function retryUntilAborted<T>(
  work: () => Promise<T>,
  options: RetryOptions & { readonly signal: AbortSignal },
): Promise<T | undefined> {
  const { signal } = options;
  if (signal.aborted) return undefined;
  try {
    return await retry(work, options);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

export interface PollOptions {
  readonly clock: WaitingClock;
  /** Between two looks. ms. */
  readonly everyMs: number;
  /** The first pause, where that is to be shorter: they grow by `factor` (default 2), up to `everyMs`. */
  readonly firstMs?: number;
  readonly factor?: number;
  /** No look begins later than this, but one at the very end. ms; without it there is no end. */
  readonly limitMs?: number;
  /** Ends a pause, and the next look comes at once. */
  readonly wake?: Promise<unknown> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Looks until `look` is true or the time is over: what the last look found. Rejects as `look` does, and with the signal's
 * reason when a pause is aborted.
 */
export async function poll(look: () => boolean | Promise<boolean>, options: PollOptions): Promise<boolean> {
  const { clock, everyMs, limitMs = Number.POSITIVE_INFINITY, firstMs = everyMs, factor = 2, wake, signal } = options;
  const end = plusMs(clock.monotonic(), limitMs);
  for (let pause = firstMs; ; pause = Math.min(pause * factor, everyMs)) {
    if (await look()) return true;
    const left = elapsedMs(clock.monotonic(), end);
    if (left <= 0) return false;
    await rest(clock, Math.min(pause, left), wake, signal);
  }
}

export interface RepeatOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Between the end of one round and the beginning of the next. ms. */
  readonly everyMs: number;
  /** Before the first round. ms; 0 where it is absent. */
  readonly firstMs?: number;
  readonly signal: AbortSignal;
}

/**
 * Does `work` again and again until the signal aborts; resolves then. `work` may resolve to the pause (ms) that comes after
 * it, instead of `everyMs`. Rejects as `work` does.
 */
export async function repeat(work: () => Promise<number | undefined>, options: RepeatOptions): Promise<void> {
  const { clock, everyMs, firstMs = 0, signal } = options;
  if (firstMs > 0) await sleepUnlessAborted(clock, firstMs, signal);
  while (!signal.aborted) {
    const pauseMs = (await work()) ?? everyMs;
    if (pauseMs > 0) await sleepUnlessAborted(clock, pauseMs, signal);
  }
}
