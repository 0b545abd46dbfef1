// The clock of one simulated process: time goes on as in the world, but while the process stands still (SIGSTOP, a machine
// that swaps) its timers wait, and once it is dead they never fire.

import { type Clock, type EpochMs, type MonotonicMs, sleepWith, type Timer } from '../../../lib/clock.ts';

export class ProcessClock implements Clock {
  readonly #world: Clock;
  #state: 'runs' | 'stands still' | 'dead' = 'runs';
  /** What was due meanwhile, in order. */
  #due: (() => void)[] = [];

  constructor(world: Clock) {
    this.#world = world;
  }

  now(): EpochMs {
    return this.#world.now();
  }

  monotonic(): MonotonicMs {
    return this.#world.monotonic();
  }

  after(ms: number, fn: () => void): Timer {
    let isCancelled = false;
    const fire = (): void => {
      if (isCancelled || this.#state === 'dead') return;
      if (this.#state === 'stands still') this.#due.push(fire);
      else fn();
    };
    const timer = this.#world.after(ms, fire);
    return {
      cancel: () => {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith(this, ms, signal);
  }

  get isStopped(): boolean {
    return this.#state === 'stands still';
  }

  pause(): void {
    if (this.#state === 'runs') this.#state = 'stands still';
  }

  resume(): void {
    if (this.#state !== 'stands still') return;
    this.#state = 'runs';
    const due = this.#due;
    this.#due = [];
    for (const fire of due) this.#world.after(0, fire);
  }

  die(): void {
    this.#state = 'dead';
    this.#due = [];
  }
}
