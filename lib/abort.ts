// Waiting that an AbortSignal, or a limit of time, ends early. Nothing here starts or stops the work that is waited for.

import type { Clock } from './clock.ts';

/** The promise, or the signal's reason as soon as it aborts; what the promise then does is no longer waited for. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // A later rejection has no handler any more and must not count as unhandled.
    promise.catch(() => undefined);
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Resolves when the signal aborts, at once where it has. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}

/** Sleeps `ms` milliseconds; an abort ends it early, and is no failure. */
export async function sleepUnlessAborted(clock: Pick<Clock, 'sleep'>, ms: number, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch (reason) {
    if (!signal.aborted) throw reason;
  }
}

/**
 * Waits for the promise, for at most `ms` milliseconds or until `signal` aborts. True when it resolved in time. Rejects as
 * the promise does; what it does later is no longer waited for. A timer instead of a sleep: an AbortController for each call, to end
 * that sleep, is most of what a short call costs.
 */
export function resolvesWithin(
  clock: Pick<Clock, 'after'>,
  ms: number,
  promise: Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const over = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
    };
    const onAbort = (): void => {
      over();
      resolve(false);
    };
    const timer = clock.after(ms, onAbort);
    promise.then(
      () => {
        over();
        resolve(true);
      },
      (error: unknown) => {
        over();
        reject(error);
      },
    );
    if (signal === undefined) return;
    signal.addEventListener('abort', onAbort, { once: true });
    // A promise that has resolved already comes first.
    if (signal.aborted) queueMicrotask(onAbort);
  });
}
