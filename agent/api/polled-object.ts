// One ConfigMap or Secret as the change detection strategies without a watch keep it: read at every use (Get), or
// read again when the copy is older than its TTL (Cache). Never learns of a change by itself.

import type { Clock, MonotonicMs } from '../../lib/clock.ts';
import { objectVersion } from '../model/object-version.ts';
import type { KeptContent, ObjectSource, Watchable } from './watched-object.ts';

export interface PolledObjectOptions<T> {
  readonly clock: Clock;
  /** Reads from the API server; undefined when there is no such object. */
  readonly get: () => Promise<T | undefined>;
  readonly content: KeptContent<T>;
  /** How long (ms) what was read is used. */
  readonly ttlMs: () => number;
}

/** What was read last, without its contents. */
interface LastRead {
  readonly version: string;
  readonly exists: boolean;
  readonly immutable: boolean;
  readonly at: MonotonicMs;
}

export class PolledObject<T extends Watchable> implements ObjectSource<T> {
  readonly #options: PolledObjectOptions<T>;
  #last: LastRead | undefined;
  #reading: Promise<T | undefined> | undefined;

  constructor(options: PolledObjectOptions<T>) {
    this.#options = options;
  }

  read(): Promise<T | undefined> {
    const { clock, content } = this.#options;
    const last = this.#current();
    if (last?.exists === false) return Promise.resolve(undefined);
    const kept = last === undefined ? undefined : content.get();
    if (kept !== undefined && objectVersion(kept) === last?.version) return Promise.resolve(kept);
    this.#reading ??= this.#options
      .get()
      .then((object) => {
        const [version, immutable] = [objectVersion(object), object?.immutable === true];
        this.#last = { version, exists: object !== undefined, immutable, at: clock.monotonic() };
        if (object === undefined) content.delete();
        else content.set(object);
        return object;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  version(): string | undefined {
    return this.#current()?.version;
  }

  /** A pod that has just come may have been made together with a change: it gets no old copy. */
  newReader(): void {
    if (this.frozen) return;
    this.#last = undefined;
    this.#options.content.delete();
  }

  get frozen(): boolean {
    return this.#last?.immutable === true;
  }

  close(): void {
    this.#options.content.delete();
  }

  /** What was read last, as long as it may be used. */
  #current(): LastRead | undefined {
    const last = this.#last;
    if (last === undefined || last.immutable) return last;
    return this.#options.clock.monotonic() - last.at < this.#options.ttlMs() ? last : undefined;
  }
}
