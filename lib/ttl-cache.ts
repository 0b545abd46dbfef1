// Caches results for a while. Callers of the same key during a fetch share it; failures are not cached. Bounded: the
// oldest entries are evicted first.

import { type Clock, type MonotonicMs, plusMs } from './clock.ts';

interface Entry<V> {
  readonly value: V;
  readonly until: MonotonicMs;
}

const MAX_ENTRIES = 4096;

export class TtlCache<V> {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry<V>>();
  readonly #underWay = new Map<string, Promise<V>>();
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The cached result, or that of `fetch`, kept for `ttl(result)` ms. */
  async get(key: string, fetch: () => Promise<V>, ttl: (value: V) => number): Promise<V> {
    const known = this.#entries.get(key);
    if (known !== undefined && this.#clock.monotonic() < known.until) return known.value;
    const fetching = this.#underWay.get(key) ?? this.#fetch(key, fetch, ttl);
    return await fetching;
  }

  #fetch(key: string, fetch: () => Promise<V>, ttl: (value: V) => number): Promise<V> {
    const fetching = fetch()
      .then((value) => {
        this.#entries.delete(key);
        this.#entries.set(key, { value, until: plusMs(this.#clock.monotonic(), ttl(value)) });
        const [oldest] = this.#entries.keys();
        if (this.#entries.size > MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
        return value;
      })
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, fetching);
    return fetching;
  }
}
