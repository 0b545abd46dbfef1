// Keeps a store equal to a collection of the server: list, then watch from its resourceVersion. What a list or an event
// means for the store is decided in store.ts; this is the loop around it. It never gives up and never throws.
//
// Lists ask for the newest state (no resourceVersion) where client-go asks for "0": a server cache that lags behind
// the store would return older objects, and one node's pods are too few for the saving to matter. For
// the same reason lists are not paged.

import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import type { ListOf, RequestOptions, WatchEvent } from './api.ts';
import { ApiError, isGone } from './errors.ts';
import type { Query } from './paths.ts';
import { type Identified, type ReadableStore, Store } from './store.ts';

/** What a reflector needs of a client; ApiClient has it. */
export interface ListWatcher {
  list<T>(path: string, query?: Query, options?: RequestOptions): Promise<ListOf<T>>;
  watch<T>(
    path: string,
    query: Query,
    signal: AbortSignal,
    options?: Pick<RequestOptions, 'metadataOnly'>,
  ): AsyncIterable<WatchEvent<T>>;
}

export interface ReflectorOptions<T> {
  readonly client: ListWatcher;
  /** The collection: "/api/v1/pods". */
  readonly path: string;
  /** fieldSelector, labelSelector. */
  readonly query?: Query;
  /** The store has apiVersion, kind and metadata of the objects alone. */
  readonly metadataOnly?: boolean;
  readonly clock: Clock;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
  /** Shrinks an object before it is kept, to save memory. Must leave name, namespace, uid and resourceVersion alone. */
  readonly transform?: (object: T) => T;
  /** A list that has been read already: the store begins with it, and the watch from there. */
  readonly start?: { readonly items: readonly T[]; readonly resourceVersion: string };
  /** Called for every failure (list or watch), before the wait that follows it. */
  readonly onFailure?: (error: unknown, retryInMs: number) => void;
  /** Called when the server responds again after failures. */
  readonly onRecovery?: () => void;
}

/** client-go's figures for reflectors; each wait is stretched at random by up to its own length. */
const BACKOFF: BackoffPolicy = { initialMs: 800, maxMs: 30_000, factor: 2, resetMs: 120_000 };
/** The server ends a watch after this long; up to twice that, at random, so that clients do not come back together. */
const MIN_WATCH_SECONDS = 300;
/** A watch that ended sooner than this without an event did not work. */
const SHORT_WATCH_MS = 1000;
/** A watch is broken off when the server has not ended it this long after it should have. */
const WATCH_OVERRUN_MS = 30_000;
/** An expired resourceVersion is answered by a list at once, unless the last one expired this recently. */
const EXPIRED_AGAIN_MS = 30_000;
const LIST_TIMEOUT_MS = 60_000;

export class Reflector<T extends Identified> {
  readonly #store = new Store<T>();
  readonly #options: ReflectorOptions<T>;
  readonly #random: () => number;
  /** Where the next watch begins; undefined when a list is needed first. */
  #position: string | undefined;
  #backoff: BackoffEntry | undefined;
  #failing = false;
  #lastExpiry = Number.NEGATIVE_INFINITY;
  /** Present while a list is waited for that begins later than now. */
  #fresh: PromiseWithResolvers<void> | undefined;
  /** Ends the watch that runs. */
  #endWatch: (() => void) | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    if (options.start !== undefined) {
      this.#store.replace(options.start.items);
      this.#position = options.start.resourceVersion;
    }
  }

  get store(): ReadableStore<T> {
    return this.#store;
  }

  /**
   * Lists again: resolves once the store shows a state that is no older than this call, after failures too. A watch may lag by any
   * time.
   */
  relist(): Promise<void> {
    this.#fresh ??= Promise.withResolvers();
    this.#endWatch?.();
    return this.#fresh.promise;
  }

  /** Runs until `signal` aborts. Failures are retried for ever, with back-off. */
  async run(signal: AbortSignal): Promise<void> {
    // Not `repeat` or `retry`: a watch that ends is followed by the next at once, and what failed before decides the pause.
    while (!signal.aborted) {
      try {
        if (this.#position === undefined || this.#fresh !== undefined) await this.#list(signal);
        else await this.#watch(this.#position, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (isGone(error) && this.#position !== undefined) {
          this.#position = undefined;
          if (this.#expiredAfresh()) continue;
        }
        await this.#wait(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, path, query } = this.#options;
    const fresh = this.#fresh;
    const list = await client.list<T>(path, query, { signal, timeoutMs: LIST_TIMEOUT_MS, ...this.#representation() });
    this.#recovered();
    this.#store.replace(list.items.map((item) => this.#prepare(item)));
    this.#position = list.metadata.resourceVersion ?? '';
    // One that was called for while this list was under way is still to come.
    if (fresh === undefined) return;
    this.#fresh = undefined;
    fresh.resolve();
  }

  /** One watch, to its end. The position moves with every event, so that a break loses and repeats nothing. */
  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { client, clock, path } = this.#options;
    const seconds = Math.round(MIN_WATCH_SECONDS * (1 + this.#random()));
    const query = { ...this.#options.query, allowWatchBookmarks: true, resourceVersion, timeoutSeconds: seconds };
    const started = clock.monotonic();
    let seen = 0;
    const ended = new AbortController();
    const timer = clock.after(seconds * 1000 + WATCH_OVERRUN_MS, () => ended.abort());
    this.#endWatch = () => ended.abort();
    const both = AbortSignal.any([signal, ended.signal]);
    const events = client.watch<T>(path, query, both, this.#representation())[Symbol.asyncIterator]();
    try {
      while (await this.#step(events, both)) seen++;
      if (both.aborted) return;
    } finally {
      this.#endWatch = undefined;
      timer.cancel();
      await events.return?.();
    }
    if (seen === 0 && !signal.aborted && clock.monotonic() - started < SHORT_WATCH_MS) {
      throw new Error(`the watch of ${path} ended at once`);
    }
    this.#recovered();
  }

  /**
   * Waits for one event and applies it; false when there are no more. A function of its own: a loop that waits would still
   * refer to the event before, and so to an object that may be large and that no store keeps.
   */
  async #step(events: AsyncIterator<WatchEvent<T>>, signal: AbortSignal): Promise<boolean> {
    const { done, value: event } = await events.next();
    if (done === true || signal.aborted) return false;
    if (event.type === 'ERROR')
      throw new ApiError(event.object, event.object.code ?? 500, `WATCH ${this.#options.path}`);
    this.#recovered();
    if (event.type === 'DELETED') this.#store.remove(this.#prepare(event.object));
    else if (event.type !== 'BOOKMARK') this.#store.upsert(this.#prepare(event.object));
    this.#position = event.object.metadata.resourceVersion;
    return true;
  }

  #prepare(object: T): T {
    return this.#options.transform === undefined ? object : this.#options.transform(object);
  }

  #representation(): { readonly metadataOnly?: boolean } {
    return this.#options.metadataOnly === true ? { metadataOnly: true } : {};
  }

  #expiredAfresh(): boolean {
    const now = this.#options.clock.monotonic();
    const afresh = now - this.#lastExpiry > EXPIRED_AGAIN_MS;
    this.#lastExpiry = now;
    return afresh;
  }

  #recovered(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#options.onRecovery?.();
  }

  async #wait(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#failing = true;
    this.#backoff = nextBackoff(BACKOFF, this.#backoff, clock.monotonic());
    const waitMs = Math.round(this.#backoff.delayMs * (1 + this.#random()));
    this.#options.onFailure?.(error, waitMs);
    try {
      await clock.sleep(waitMs, signal);
    } catch (reason) {
      if (!signal.aborted) throw reason;
    }
  }
}
