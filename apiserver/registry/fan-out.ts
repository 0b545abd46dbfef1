// Brings a change to the watches that it may concern: those that require one value of a field (spec.nodeName=n1, as each
// kubelet does) are called for changes of objects that have it, or had it, and for no other. The value is read once for
// all of them, so that a write costs as much with a thousand nodes as with one.

import type { KubeObject } from '../kinds/resource.ts';
import type { Change } from '../storage/change.ts';
import type { Listener, ObjectStore } from '../storage/object-store.ts';

/** What a selector requires of every object that matches. */
export interface RequiredValue {
  readonly field: string;
  readonly value: string;
  readonly read: (object: Readonly<KubeObject>) => string;
}

interface Index {
  readonly listeners: Map<string, Set<Listener>>;
  readonly unsubscribe: () => void;
}

export class FanOut {
  readonly #store: Pick<ObjectStore, 'subscribe'>;
  /** By resource and field. */
  readonly #indexes = new Map<string, Index>();

  constructor(store: Pick<ObjectStore, 'subscribe'>) {
    this.#store = store;
  }

  /**
   * Calls `listener` for later changes of the resource, in order; with `required` for those alone whose object has the
   * value before or after them. Returns what ends that, which is idempotent.
   */
  subscribe(resource: string, required: RequiredValue | undefined, listener: Listener): () => void {
    if (required === undefined) return this.#store.subscribe(resource, listener);
    const key = `${resource} ${required.field}`;
    const index = this.#indexes.get(key) ?? this.#open(key, resource, required);
    const listeners = index.listeners.get(required.value) ?? new Set();
    index.listeners.set(required.value, listeners.add(listener));
    return () => {
      if (!listeners.delete(listener)) return;
      if (listeners.size === 0 && index.listeners.get(required.value) === listeners) {
        index.listeners.delete(required.value);
      }
      if (index.listeners.size > 0 || this.#indexes.get(key) !== index) return;
      index.unsubscribe();
      this.#indexes.delete(key);
    };
  }

  #open(key: string, resource: string, { read }: RequiredValue): Index {
    const listeners: Index['listeners'] = new Map();
    const deliver = (change: Change): void => {
      const after = read(change.object);
      const before = change.previous === undefined ? after : read(change.previous);
      for (const listener of listeners.get(after) ?? []) listener(change);
      if (before !== after) for (const listener of listeners.get(before) ?? []) listener(change);
    };
    const index = { listeners, unsubscribe: this.#store.subscribe(resource, deliver) };
    this.#indexes.set(key, index);
    return index;
  }
}
