// Keeps a controller from repeating a failed driver call when its own status update requeues the object: the back-off
// after a failure belongs to the request, whichever event wakes the key.

import { type Clock, elapsedMs, type MonotonicMs, plusMs } from '../../../lib/clock.ts';
import { DRIVER_BACKOFF } from './drivers.ts';

interface Entry {
  readonly operation: string;
  readonly failures: number;
  readonly until: MonotonicMs;
}

export class Cooldown {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until the same request may be sent again; 0 for a different request. */
  remaining(key: string, operation: string): number {
    const entry = this.#entries.get(key);
    return entry?.operation === operation ? Math.max(0, elapsedMs(this.#clock.monotonic(), entry.until)) : 0;
  }

  failed(key: string, operation: string): void {
    const before = this.#entries.get(key);
    const failures = before?.operation === operation ? before.failures + 1 : 1;
    const { initialDelayMs, maxDelayMs } = DRIVER_BACKOFF;
    const delay = Math.min(initialDelayMs * 2 ** (failures - 1), maxDelayMs);
    this.#entries.set(key, { operation, failures, until: plusMs(this.#clock.monotonic(), delay) });
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }
}
