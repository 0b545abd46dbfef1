// Time as a dependency. Everything that waits or reads the time takes a Clock, so that tests and the simulator
// can run on a virtual one. Nothing else in the tree calls Date.now, setTimeout or setInterval directly.

declare const epoch: unique symbol;
declare const monotonic: unique symbol;

/** A moment by the wall clock: milliseconds since the Unix epoch. Comes from `Clock.now()` or from a written time. */
export type EpochMs = number & { readonly [epoch]: true };

/** A moment by the monotonic clock: milliseconds since an arbitrary origin. Comes from `Clock.monotonic()` alone. */
export type MonotonicMs = number & { readonly [monotonic]: true };

/** A moment of either clock. Moments of the two are never compared or subtracted: the types keep them apart. */
export type Instant = EpochMs | MonotonicMs;

/** A number that is known to be milliseconds since the Unix epoch, as from a file's time or a parsed text. */
export function epochMs(value: number): EpochMs {
  return value as EpochMs;
}

/** For clocks, and for tests that need a moment. */
export function monotonicMs(value: number): MonotonicMs {
  return value as MonotonicMs;
}

/** The moment `ms` milliseconds after `at`; before it where `ms` is negative. */
export function plusMs<T extends Instant>(at: T, ms: number): T;
export function plusMs(at: number, ms: number): number {
  return at + ms;
}

/** Milliseconds from one moment to another of the same clock; negative where `to` is the earlier one. */
export function elapsedMs<T extends Instant>(from: T, to: T): number {
  return to - from;
}

/** The earlier of two moments of one clock. */
export function earlier<T extends Instant>(a: T, b: T): T {
  return b < a ? b : a;
}

/** The later of two moments of one clock. */
export function later<T extends Instant>(a: T, b: T): T {
  return b > a ? b : a;
}

/** What a snapshot has instead of the time of something that has not happened: the runtime's own 0. */
export const ZERO_TIME: EpochMs = epochMs(0);

/** A pending timer. `cancel` is idempotent and does nothing once the timer has fired. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall-clock time, in milliseconds since the Unix epoch. May jump. */
  now(): EpochMs;
  /** Monotonic time in milliseconds, from an arbitrary origin. Never goes back; use it for durations. */
  monotonic(): MonotonicMs;
  /** Calls `fn` once, no sooner than `ms` milliseconds from now. */
  after(ms: number, fn: () => void): Timer;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** setTimeout's largest delay; a longer one would fire at once. */
const MAX_DELAY_MS = 0x7fffffff;

function systemAfter(ms: number, fn: () => void): Timer {
  const fireAt = plusMs(systemClock.monotonic(), ms);
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const left = elapsedMs(systemClock.monotonic(), fireAt);
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
  now: () => epochMs(Date.now()),
  monotonic: () => monotonicMs(performance.now()),
  after: systemAfter,
  sleep: (ms, signal) => sleepWith({ after: systemAfter }, ms, signal),
};
