// One ConfigMap or Secret, kept current by a list and a watch of this object alone, while a pod uses it. Only the current
// version is kept here: contents are in a cache that may drop them, and are then read again. Which pods use the object is
// in shared-objects.ts.

import { isNotFound } from '../../client/errors.ts';
import { type ListWatcher, Reflector } from '../../client/reflector.ts';
import type { Identified } from '../../client/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { objectVersion } from '../model/object-version.ts';

export type Watchable = Identified & { readonly immutable?: boolean };

/** An object as readers see it, however it is kept current. */
export interface ObjectSource<T> {
  /** The object, or undefined when there is none. Rejects when it was never read and cannot be read now. */
  read(): Promise<T | undefined>;
  /** `objectVersion` of what `read` would give; undefined when that is not known without a request. */
  version(): string | undefined;
  /** A new pod uses it, whose creator may have changed it before. */
  newReader(): void;
  /** It is immutable and will not be read again; another object may have its name by now. */
  readonly frozen: boolean;
  close(): void;
}

/** Where the contents of one object are kept, as far as there is room. */
export interface KeptContent<T> {
  get(): T | undefined;
  set(object: T): void;
  delete(): void;
}

export interface WatchedObjectOptions<T> {
  readonly client: ListWatcher & { get<U>(path: string): Promise<U> };
  /** The collection in its namespace: "/api/v1/namespaces/demo/configmaps". */
  readonly collection: string;
  readonly name: string;
  readonly clock: Clock;
  readonly content: KeptContent<T>;
  readonly transform: (object: T) => T;
  /** The object without its contents. */
  readonly header: (object: T) => T;
  /** Called whenever the object is replaced or deleted. */
  readonly onChange: () => void;
  readonly onFailure: (error: unknown, retryInMs: number) => void;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}

export class WatchedObject<T extends Watchable> implements ObjectSource<T> {
  readonly #options: WatchedObjectOptions<T>;
  readonly #stopping = new AbortController();
  /** The object without its contents, as last seen. */
  #header: T | undefined;
  #resourceVersion = '';
  /** What is known is current, or as current as can be had: a watch runs, or the object is immutable. */
  #settled = false;
  /** The newest request that has not been answered yet: all readers share it. */
  #reading: Promise<T | undefined> | undefined;
  /** Lists begun, and the newest of them that has been answered. */
  #begun = 0;
  #answered = 0;

  constructor(options: WatchedObjectOptions<T>) {
    this.#options = options;
  }

  read(): Promise<T | undefined> {
    if (!this.#settled) return this.#share(() => this.#list());
    if (this.#header === undefined) return Promise.resolve(undefined);
    const kept = this.#kept();
    return kept === undefined ? this.#share(() => this.#get()) : Promise.resolve(kept);
  }

  version(): string | undefined {
    return this.#settled ? objectVersion(this.#header) : undefined;
  }

  /** Nothing to do once there is a watch. Until then, what earlier readers got may be older than what brought this one. */
  newReader(): void {
    if (!this.#settled) this.#reading = undefined;
  }

  get frozen(): boolean {
    return this.#header?.immutable === true;
  }

  close(): void {
    this.#stopping.abort();
  }

  get #query(): { readonly fieldSelector: string } {
    return { fieldSelector: `metadata.name=${this.#options.name}` };
  }

  /** A request that is under way is everybody's; its answer is not kept here once it has come. */
  #share(request: () => Promise<T | undefined>): Promise<T | undefined> {
    if (this.#reading !== undefined) return this.#reading;
    const reading = request();
    this.#reading = reading;
    const over = (): void => {
      if (this.#reading === reading) this.#reading = undefined;
    };
    reading.then(over, over);
    return reading;
  }

  async #list(): Promise<T | undefined> {
    const { client, collection, transform } = this.#options;
    const { signal } = this.#stopping;
    const mine = ++this.#begun;
    const list = await client.list<T>(collection, this.#query, { signal });
    // A later list, or the watch, has a newer version.
    if (this.#settled || this.#answered > mine) return await this.#current();
    const first = this.#answered === 0;
    this.#answered = mine;
    const before = this.#header;
    const object = list.items.map((item) => transform(item))[0];
    this.#remember(object);
    this.#resourceVersion = list.metadata.resourceVersion ?? '';
    if (this.#header?.immutable === true) this.#settled = true;
    // From the newest list: what an earlier one shows may be older than what brought the newest reader.
    else if (mine === this.#begun && !signal.aborted) this.#watch();
    if (!first && objectVersion(before) !== objectVersion(this.#header)) this.#options.onChange();
    return object;
  }

  /** What is known by now: from memory, or read once more. */
  async #current(): Promise<T | undefined> {
    if (this.#header === undefined) return undefined;
    return this.#kept() ?? (await this.#get());
  }

  /** The contents of the current version, where they are kept. */
  #kept(): T | undefined {
    const kept = this.#options.content.get();
    return objectVersion(kept) === objectVersion(this.#header) ? kept : undefined;
  }

  /** The contents of the object once more. The watch determines the current version. */
  async #get(): Promise<T | undefined> {
    const { client, collection, name, transform, content } = this.#options;
    try {
      const object = transform(await client.get<T>(`${collection}/${name}`));
      if (objectVersion(object) === objectVersion(this.#header)) content.set(object);
      return object;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #watch(): void {
    if (this.#settled) return;
    this.#settled = true;
    const { client, collection, clock, transform, header, content, onFailure, random } = this.#options;
    const reflector = new Reflector<T>({
      client,
      path: collection,
      query: this.#query,
      clock,
      // The reflector's store has no contents; those of the newest event are for the readers it brings.
      transform: (object) => {
        content.set(transform(object));
        return header(object);
      },
      onFailure,
      start: { items: this.#header === undefined ? [] : [this.#header], resourceVersion: this.#resourceVersion },
      ...(random === undefined ? {} : { random }),
    });
    reflector.store.onChange((changes) => {
      if (changes.length === 0) return;
      this.#header = reflector.store.list()[0];
      if (this.#kept() === undefined) content.delete();
      // It can never change again. One that is deleted and made anew under the same name is for pods to come.
      if (this.#header?.immutable === true) this.close();
      this.#options.onChange();
    });
    void reflector.run(this.#stopping.signal);
  }

  #remember(object: T | undefined): void {
    const { content, header } = this.#options;
    if (object === undefined) content.delete();
    else content.set(object);
    this.#header = object === undefined ? undefined : header(object);
  }
}
