// The history of one collection of a simulated API server, and the watches that follow it: each from its own place, some
// events late, until it ends, breaks, or its place is no longer kept.

import type { WatchEvent } from '../../client/api.ts';
import { UnreachableError } from '../../client/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Dice } from './dice.ts';
import type { Weather } from './weather.ts';

interface Entry<T> {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
}

interface Watcher {
  /** Look again: something was appended, or it is over. */
  wake: () => void;
  ended: 'no' | 'broken' | 'timeout' | 'aborted';
}

const KEPT = 200;
/** A reflector whose watch has broken several times waits this long at most before it watches again, ms. */
export const RECONNECT_MS = 60_000;

export class WatchLog<T> {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #weather: Weather;
  readonly #onAppend: ((type: Entry<T>['type'], object: unknown) => void) | undefined;
  #entries: Entry<T>[] = [];
  /** Versions up to here are forgotten. */
  #compacted = 0;
  readonly #watchers = new Set<Watcher>();
  /** How many events of a hundred come late. */
  trouble = 0;

  /** `onAppend`: called with every change, at once. */
  constructor(
    clock: Clock,
    dice: Dice,
    weather: Weather,
    onAppend?: (type: Entry<T>['type'], object: unknown) => void,
  ) {
    this.#onAppend = onAppend;
    this.#clock = clock;
    this.#dice = dice;
    this.#weather = weather;
  }

  append(type: Entry<T>['type'], object: T & { readonly metadata: { readonly resourceVersion: string } }): void {
    this.#onAppend?.(type, object);
    this.#entries.push({ version: Number(object.metadata.resourceVersion), type, object });
    if (this.#entries.length > 2 * KEPT) {
      const dropped = this.#entries.splice(0, KEPT);
      this.#compacted = dropped.at(-1)?.version ?? this.#compacted;
    }
    const late = this.trouble > 0 && this.#dice.below(100) < this.trouble;
    if (late) this.#weather.bad(15_000);
    const lagMs = late ? this.#dice.below(15_000) : this.#dice.below(4);
    const tell = (): void => {
      for (const watcher of this.#watchers) watcher.wake();
    };
    if (lagMs === 0) tell();
    else this.#clock.after(lagMs, tell);
  }

  break(forget: boolean): void {
    this.#weather.bad(RECONNECT_MS);
    if (forget) {
      this.#compacted = this.#entries.at(-1)?.version ?? this.#compacted;
      this.#entries = [];
    }
    for (const watcher of this.#watchers) {
      watcher.ended = 'broken';
      watcher.wake();
    }
  }

  /** Everything after `version`, for as long as it lasts. */
  async *follow<U>(
    version: number,
    seconds: number,
    expired: () => WatchEvent<U>,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<U>> {
    let news = Promise.withResolvers<void>();
    const watcher: Watcher = { ended: 'no', wake: () => news.resolve() };
    const end = (how: Watcher['ended']) => (): void => {
      watcher.ended = how;
      watcher.wake();
    };
    const onAbort = end('aborted');
    signal.addEventListener('abort', onAbort, { once: true });
    const timer = this.#clock.after(seconds * 1000, end('timeout'));
    this.#watchers.add(watcher);
    let seen = version;
    try {
      while (!signal.aborted) {
        if (seen < this.#compacted) {
          yield expired();
          return;
        }
        for (const entry of this.#after(seen)) {
          seen = entry.version;
          const object: unknown = entry.object;
          yield { type: entry.type, object: object as U };
        }
        if (watcher.ended === 'broken') throw new UnreachableError('the watch broke', 'ECONNRESET');
        if (watcher.ended !== 'no') return;
        await news.promise;
        news = Promise.withResolvers<void>();
      }
    } finally {
      this.#watchers.delete(watcher);
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #after(version: number): readonly Entry<T>[] {
    // From the end: a watch is mostly one event behind.
    return this.#entries.slice(this.#entries.findLastIndex((entry) => entry.version <= version) + 1);
  }
}
