// Waits until the cache shows everything that was written before: the revision of etcd is read through its leader, and the
// watch comes up to it by itself, unless what is missing was written outside the prefix. Then its progress is
// requested; an etcd whose reply may overtake events (etcd-io/etcd#15220) gets a write below the prefix instead.

import type { Clock, Timer } from '../../../lib/clock.ts';
import type { EtcdClient } from './client.ts';
import type { WatchCache } from './watch-cache.ts';
import type { Watcher } from './watcher.ts';

/** What the watch may take to come up to a revision by itself. ms. */
const PATIENCE_MS = 50;
/** After this, a read fails. ms. */
const LIMIT_MS = 10_000;
/** Below the prefix; only ever there where others write to the same etcd. */
const BARRIER = 'nodelet/progress';

export class Progress {
  readonly #client: EtcdClient;
  readonly #cache: WatchCache;
  readonly #watcher: Watcher;
  readonly #prefix: string;
  readonly #inOrder: boolean;
  readonly #clock: Clock;
  /** A reading of etcd's revision that has not been sent yet: those who wait for it share it. */
  #next: Promise<number> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: EtcdClient, cache: WatchCache, watcher: Watcher, prefix: string, version: string, clock: Clock) {
    this.#client = client;
    this.#cache = cache;
    this.#watcher = watcher;
    this.#prefix = prefix;
    this.#inOrder = progressIsInOrder(version);
    this.#clock = clock;
  }

  async catchUp(): Promise<void> {
    const revision = await this.#current();
    if (this.#cache.revision >= revision) return;
    const limit = new AbortController();
    const timers: Timer[] = [this.#clock.after(LIMIT_MS, () => limit.abort())];
    const nudge = (): void => {
      this.#nudge();
      timers.push(this.#clock.after(PATIENCE_MS, nudge));
    };
    timers.push(this.#clock.after(PATIENCE_MS, nudge));
    await this.#cache.reached(revision, limit.signal);
    for (const timer of timers) timer.cancel();
    if (this.#cache.revision < revision)
      throw new Error(`the watch on etcd is behind: ${this.#cache.revision} of ${revision}`);
  }

  /** One reading at a time; who comes during one waits for the next, which begins after it came. */
  #current(): Promise<number> {
    this.#next ??= this.#last.then(() => {
      this.#next = undefined;
      const reading = this.#client.range({ key: Buffer.from(this.#prefix), count_only: true });
      this.#last = reading.catch(() => undefined);
      return reading.then(({ header }) => Number(header?.revision ?? 0));
    });
    return this.#next;
  }

  #nudge(): void {
    if (this.#inOrder) {
      this.#watcher.requestProgress();
      return;
    }
    const put = { key: Buffer.from(`${this.#prefix}${BARRIER}`), value: Buffer.alloc(0) };
    // Its failure shows when the limit is up.
    this.#client.txn({ success: [{ request_put: put }] }).catch(() => undefined);
  }
}

/** Whether a reply to a progress request never overtakes events. Pure. */
export function progressIsInOrder(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  if (major !== 3 || minor > 5) return major > 3 || minor > 5;
  return minor === 5 ? patch >= 8 : minor === 4 && patch >= 25;
}
