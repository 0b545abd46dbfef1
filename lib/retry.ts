// Trying again: work that failed is repeated with a growing pause until it succeeds, fails for good, or the time is over.

import { type BackoffEntry, type BackoffPolicy, nextBackoff } from './backoff.ts';
import { type Clock, elapsedMs, plusMs } from './clock.ts';

export interface RetryOptions {
  readonly clock: Clock;
  readonly policy: BackoffPolicy;
  /** Milliseconds from now on within which a try may begin; without it there is no end. */
  readonly limitMs?: number;
  /** Whether another try may succeed. */
  readonly mends: (error: unknown) => boolean;
  /** Ends the pauses. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves to what `work` resolves to. Rejects with its last failure when that is final or the time is over, and with
 * the signal's reason when a pause is aborted. `leftMs`: what is left of the limit, for the try's own deadline.
 */
export async function retry<T>(work: (leftMs: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, policy, limitMs = Number.POSITIVE_INFINITY, mends, signal } = options;
  const giveUpAt = plusMs(clock.monotonic(), limitMs);
  let pause: BackoffEntry | undefined;
  for (;;) {
    try {
      return await work(elapsedMs(clock.monotonic(), giveUpAt));
    } catch (error) {
      pause = nextBackoff(policy, pause, clock.monotonic());
      if (signal?.aborted === true || !mends(error) || plusMs(clock.monotonic(), pause.delayMs) >= giveUpAt)
        throw error;
      await clock.sleep(pause.delayMs, signal);
    }
  }
}

export interface PollOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Between two calls of `look`, ms. */
  readonly everyMs: number;
  /** The first pause, where that is to be shorter: each is twice the one before, up to `everyMs`. */
  readonly firstMs?: number;
  /** No call begins later than this, except the last one. ms. */
  readonly limitMs: number;
}

/** Calls `look` until it returns true or the time is over, and returns its last result. Rejects as `look` does. */
export async function poll(look: () => boolean | Promise<boolean>, options: PollOptions): Promise<boolean> {
  const { clock, everyMs, limitMs, firstMs = everyMs } = options;
  const end = plusMs(clock.monotonic(), limitMs);
  for (let pause = firstMs; ; pause = Math.min(pause * 2, everyMs)) {
    if (await look()) return true;
    const left = elapsedMs(clock.monotonic(), end);
    if (left <= 0) return false;
    await clock.sleep(Math.min(pause, left));
  }
}
