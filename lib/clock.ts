// Time as a dependency. Everything that waits or reads the time takes a Clock, so that tests and the simulator
// can run on a virtual one. Nothing else in the tree calls Date.now, setTimeout or setInterval directly.

/** A pending timer. `cancel` is idempotent and does nothing once the timer has fired. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall-clock time, in milliseconds since the Unix epoch. May jump. */
  now(): number;
  /** Monotonic time in milliseconds, from an arbitrary origin. Never goes back; use it for durations. */
  monotonic(): number;
  /** Calls `fn` once, no sooner than `ms` milliseconds from now. */
  after(ms: number, fn: () => void): Timer;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** setTimeout's largest delay; a longer one would fire at once. */
const MAX_DELAY_MS = 0x7fffffff;

function systemAfter(ms: number, fn: () => void): Timer {
  const deadline = performance.now() + ms;
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const left = deadline - performance.now();
    handle = left > MAX_DELAY_MS ? setTimeout(arm, MAX_DELAY_MS) : setTimeout(fn, Math.max(0, left));
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

/** `sleep` for any clock that has `after`. */
export function sleepWith(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: systemAfter,
  sleep: (ms, signal) => sleepWith({ after: systemAfter }, ms, signal),
};
