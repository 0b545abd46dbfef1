// The local copy of a collection. What a list or a watch event changes is decided by pure functions; the store only
// applies their result and notifies the listeners. Each state of an object is notified once.

import type { StoredMeta } from './types.ts';

/** What the store needs of an object. */
export interface Identified {
  metadata: StoredMeta;
}

export type Change<T> =
  | { readonly type: 'added'; readonly object: T }
  | { readonly type: 'modified'; readonly object: T; readonly old: T }
  /** `object` is the last state known; the deletion itself may have been missed. */
  | { readonly type: 'removed'; readonly object: T };

/** "namespace/name", or "name" on cluster-scoped kinds. */
export function objectKey(object: {
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}): string {
  const { name = '', namespace } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** What it means that `object` now exists. Another uid under the same name is another object: the old one is gone. */
export function changesForState<T extends Identified>(known: T | undefined, object: T): Change<T>[] {
  if (known === undefined) return [{ type: 'added', object }];
  if (known.metadata.uid !== object.metadata.uid) {
    return [
      { type: 'removed', object: known },
      { type: 'added', object },
    ];
  }
  if (known.metadata.resourceVersion === object.metadata.resourceVersion) return [];
  return [{ type: 'modified', object, old: known }];
}

/** What a complete list changes: everything known and not in it is gone. */
export function changesForList<T extends Identified>(known: ReadonlyMap<string, T>, items: readonly T[]): Change<T>[] {
  const listed = new Set(items.map(objectKey));
  const changes: Change<T>[] = [];
  for (const [key, object] of known) if (!listed.has(key)) changes.push({ type: 'removed', object });
  for (const item of items) changes.push(...changesForState(known.get(objectKey(item)), item));
  return changes;
}

/** What a DELETED event changes. The event's object is the newer last state. */
export function changesForDeletion<T extends Identified>(known: T | undefined, object: T): Change<T>[] {
  if (known === undefined || known.metadata.uid !== object.metadata.uid) return [];
  return [{ type: 'removed', object }];
}

/** Called with what changed, after the store shows it; with nothing when a complete list confirmed what was known. */
export type StoreListener<T> = (changes: readonly Change<T>[]) => void;

/** The read side of a store. */
export interface ReadableStore<T> {
  /** True once a complete list has been seen. */
  readonly synced: boolean;
  readonly size: number;
  get(key: string): T | undefined;
  list(): readonly T[];
  /** Calls `listener` on each change from now on, until the returned function is called. */
  onChange(listener: StoreListener<T>): () => void;
  /** Resolves once a complete list has been seen. */
  whenSynced(): Promise<void>;
}

export class Store<T extends Identified> implements ReadableStore<T> {
  readonly #objects = new Map<string, T>();
  readonly #listeners = new Set<StoreListener<T>>();
  readonly #syncedPromise: Promise<void>;
  #resolveSynced: () => void = () => undefined;
  #synced = false;

  constructor() {
    this.#syncedPromise = new Promise((resolve) => {
      this.#resolveSynced = resolve;
    });
  }

  get synced(): boolean {
    return this.#synced;
  }
  get size(): number {
    return this.#objects.size;
  }
  get(key: string): T | undefined {
    return this.#objects.get(key);
  }
  list(): readonly T[] {
    return [...this.#objects.values()];
  }
  whenSynced(): Promise<void> {
    return this.#syncedPromise;
  }
  onChange(listener: StoreListener<T>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A complete list has been read. Always announced, even when it changes nothing. */
  replace(items: readonly T[]): void {
    const changes = changesForList(this.#objects, items);
    this.#apply(changes);
    this.#synced = true;
    this.#resolveSynced();
    this.#announce(changes);
  }

  /** ADDED or MODIFIED. Notifies the listeners when the object has changed. */
  upsert(object: T): void {
    this.#commit(changesForState(this.#objects.get(objectKey(object)), object));
  }

  /** DELETED. */
  remove(object: T): void {
    this.#commit(changesForDeletion(this.#objects.get(objectKey(object)), object));
  }

  #commit(changes: readonly Change<T>[]): void {
    if (changes.length === 0) return;
    this.#apply(changes);
    this.#announce(changes);
  }

  #apply(changes: readonly Change<T>[]): void {
    for (const change of changes) {
      if (change.type === 'removed') this.#objects.delete(objectKey(change.object));
      else this.#objects.set(objectKey(change.object), change.object);
    }
  }

  #announce(changes: readonly Change<T>[]): void {
    for (const listener of this.#listeners) listener(changes);
  }
}
