// systemd-logind of a simulated machine: the delay that it grants, the locks that hold a shutdown back, and the announcement.
// When the last lock is released, or the delay is over, the machine goes off. It knows nothing of pods.

import type { InhibitLock, Logind } from '../../agent/shutdown/node-shutdown.ts';
import type { Clock, Timer } from '../../lib/clock.ts';

/** InhibitDelayMaxSec of a logind that is not configured (logind.conf(5)), ms. */
const DEFAULT_DELAY_MS = 5_000;

export interface SimLogindParts {
  readonly clock: Clock;
  /** The machine goes off. */
  readonly goesOff: () => void;
}

export class SimLogind implements Logind {
  readonly #parts: SimLogindParts;
  readonly #locks = new Set<InhibitLock>();
  readonly #listeners = new Set<(begins: boolean) => void>();
  #delayMs = DEFAULT_DELAY_MS;
  /** Ends the delay of the shutdown that is under way. */
  #limit: Timer | undefined;

  constructor(parts: SimLogindParts) {
    this.#parts = parts;
  }

  /** How many programs hold a shutdown back. */
  get locks(): number {
    return this.#locks.size;
  }

  inhibitDelayMs(): Promise<number> {
    return Promise.resolve(this.#delayMs);
  }

  allowDelay(ms: number): Promise<void> {
    this.#delayMs = ms;
    return Promise.resolve();
  }

  inhibit(): Promise<InhibitLock> {
    const lock: InhibitLock = {
      release: () => {
        if (this.#locks.delete(lock) && this.#locks.size === 0) this.#end();
      },
    };
    this.#locks.add(lock);
    return Promise.resolve(lock);
  }

  watch(onShutdown: (begins: boolean) => void, signal: AbortSignal): Promise<{ readonly ended: Promise<void> }> {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const stop = (): void => {
      this.#listeners.delete(onShutdown);
      resolve();
    };
    this.#listeners.add(onShutdown);
    signal.addEventListener('abort', stop, { once: true });
    return Promise.resolve({ ended });
  }

  /** The process that held locks and listened is gone: the kernel closes its descriptors, and logind releases the locks. */
  forgetClients(): void {
    this.#listeners.clear();
    this.#locks.clear();
    this.#end();
  }

  /** The machine shuts down. `mostMs`: it grants no longer delay than this, whatever is configured. */
  shutDown(mostMs = Number.POSITIVE_INFINITY): void {
    if (this.#limit !== undefined) return;
    this.#limit = this.#parts.clock.after(Math.min(this.#delayMs, mostMs), () => this.#end());
    for (const announce of this.#listeners) announce(true);
    if (this.#locks.size === 0) this.#end();
  }

  #end(): void {
    if (this.#limit === undefined) return;
    this.#limit.cancel();
    this.#limit = undefined;
    this.#parts.goesOff();
  }
}
