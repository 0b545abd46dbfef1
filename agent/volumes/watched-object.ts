// One ConfigMap or Secret, kept current by a list and a watch of just this object, for as long as it is wanted. Never
// knows who wants it: shared-objects.ts does.

import { type ListWatcher, Reflector } from '../../client/reflector.ts';
import type { Identified } from '../../client/store.ts';
import type { Clock, Timer } from '../../lib/clock.ts';

export type Watchable = Identified & { readonly immutable?: boolean };

/** An object as readers see it, however it is kept current. */
export interface ObjectSource<T> {
  /** The object, or undefined when there is none. Rejects when it was never read and cannot be read now. */
  read(): Promise<T | undefined>;
  /** Somebody new wants it, who may know that it has changed. */
  newReader(): void;
  /** It is immutable and will never be looked at again; there may be another of its name by now. */
  readonly frozen: boolean;
  close(): void;
}

export interface WatchedObjectOptions<T> {
  readonly client: ListWatcher;
  /** The collection in its namespace: "/api/v1/namespaces/demo/configmaps". */
  readonly collection: string;
  readonly name: string;
  readonly clock: Clock;
  readonly transform: (object: T) => T;
  /** Told whenever the object has become another one, or none. */
  readonly onChange: () => void;
  readonly onFailure: (error: unknown, retryInMs: number) => void;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}

/**
 * The watch begins this long (ms) after the first list, from the list's own revision, so that nothing is missed: a new
 * connection costs each side some milliseconds of CPU, which a pod that is just starting has a better use for.
 */
export const WATCH_DELAY_MS = 500;

export class WatchedObject<T extends Watchable> implements ObjectSource<T> {
  readonly #options: WatchedObjectOptions<T>;
  readonly #stopping = new AbortController();
  #object: T | undefined;
  #resourceVersion = '';
  #timer: Timer | undefined;
  /** What is known is current, or as current as can be had: a watch runs, or the object is immutable. */
  #settled = false;
  /** The newest list, and whether it was asked for after the newest reader came. */
  #reading: Promise<T | undefined> | undefined;
  /** Lists begun, and the newest of them that has been answered. */
  #begun = 0;
  #answered = 0;

  constructor(options: WatchedObjectOptions<T>) {
    this.#options = options;
  }

  async read(): Promise<T | undefined> {
    if (this.#settled) return this.#object;
    this.#reading ??= this.#list();
    const reading = this.#reading;
    // What could not be read, or was not there, is asked for again by the next try of whoever needs it.
    const again = (): void => {
      if (this.#reading === reading) this.#reading = undefined;
    };
    try {
      const object = await reading;
      if (object === undefined) again();
      return object;
    } catch (error) {
      again();
      throw error;
    }
  }

  /** A watch needs no telling. Until there is one, what others were told may be older than what brought the reader. */
  newReader(): void {
    this.#reading = undefined;
  }

  get frozen(): boolean {
    return this.#object?.immutable === true;
  }

  close(): void {
    this.#timer?.cancel();
    this.#stopping.abort();
  }

  get #query(): { readonly fieldSelector: string } {
    return { fieldSelector: `metadata.name=${this.#options.name}` };
  }

  async #list(): Promise<T | undefined> {
    const { client, collection, clock, transform } = this.#options;
    const { signal } = this.#stopping;
    const mine = ++this.#begun;
    const list = await client.list<T>(collection, this.#query, { signal });
    // A later list, or the watch, has told newer things.
    if (this.#settled || this.#answered > mine) return this.#object;
    const first = this.#answered === 0;
    this.#answered = mine;
    const before = this.#object;
    // Items of a list carry neither kind nor apiVersion on a real API server.
    const type = { kind: list.kind.replace(/List$/, ''), apiVersion: list.apiVersion };
    this.#object = list.items.map((item) => transform({ ...type, ...item }))[0];
    this.#resourceVersion = list.metadata.resourceVersion ?? '';
    if (this.#object?.immutable === true) this.#settle();
    else if (!signal.aborted) this.#timer ??= clock.after(WATCH_DELAY_MS, () => this.#watch());
    if (!first && !isSame(before, this.#object)) this.#options.onChange();
    return this.#object;
  }

  #watch(): void {
    if (this.#settled) return;
    this.#settled = true;
    const { client, collection, clock, transform, onFailure, random } = this.#options;
    const reflector = new Reflector<T>({
      client,
      path: collection,
      query: this.#query,
      clock,
      transform,
      onFailure,
      start: { items: this.#object === undefined ? [] : [this.#object], resourceVersion: this.#resourceVersion },
      ...(random === undefined ? {} : { random }),
    });
    reflector.store.onChange((changes) => {
      if (changes.length === 0) return;
      this.#object = reflector.store.list()[0];
      // It can never change again. One that is deleted and made anew under the same name is for pods to come.
      if (this.#object?.immutable === true) this.close();
      this.#options.onChange();
    });
    void reflector.run(this.#stopping.signal);
  }

  #settle(): void {
    this.#settled = true;
    this.#timer?.cancel();
  }
}

function isSame(a: Identified | undefined, b: Identified | undefined): boolean {
  return a?.metadata.uid === b?.metadata.uid && a?.metadata.resourceVersion === b?.metadata.resourceVersion;
}
