// One ConfigMap or Secret as the change detection strategies without a watch keep it: read when asked for (Get), or
// read again when what is held has grown old (Cache). Never learns of a change by itself.

import type { Clock } from '../../lib/clock.ts';
import type { ObjectSource, Watchable } from './watched-object.ts';

export interface PolledObjectOptions<T> {
  readonly clock: Clock;
  /** Asks the API server; undefined when there is no such object. */
  readonly get: () => Promise<T | undefined>;
  /** How long (ms) what was read is used. */
  readonly ttlMs: () => number;
}

export class PolledObject<T extends Watchable> implements ObjectSource<T> {
  readonly #options: PolledObjectOptions<T>;
  #held: { readonly object: T | undefined; readonly readAt: number } | undefined;
  #reading: Promise<T | undefined> | undefined;

  constructor(options: PolledObjectOptions<T>) {
    this.#options = options;
  }

  read(): Promise<T | undefined> {
    const { clock, ttlMs } = this.#options;
    const held = this.#held;
    const current =
      held?.object?.immutable === true || (held !== undefined && clock.monotonic() - held.readAt < ttlMs());
    if (held !== undefined && current) return Promise.resolve(held.object);
    this.#reading ??= this.#options
      .get()
      .then((object) => {
        this.#held = { object, readAt: clock.monotonic() };
        return object;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  /** A pod that has just come may have been made together with a change: it gets no old copy. */
  newReader(): void {
    if (!this.frozen) this.#held = undefined;
  }

  get frozen(): boolean {
    return this.#held?.object?.immutable === true;
  }

  close(): void {}
}
