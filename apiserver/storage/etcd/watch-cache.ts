// Everything that etcd holds, in memory, as of one revision, with the last changes: what kube-apiserver's watch cache is. All
// reads are from here, synchronously. Changes come in the order of etcd's revisions; one revision may have several.

import type { KubeObject } from '../../kinds/resource.ts';
import { Change, type ChangeRecord, lastState } from '../change.ts';
import {
  type ChangePage,
  CompactedError,
  type Listener,
  type Name,
  type ObjectKey,
  type StoredObject,
} from '../object-store.ts';

/** Changes and bytes of them that are kept; a watch or a paged list that needs older ones starts again. */
const HISTORY_CHANGES = 16_384;
const HISTORY_BYTES = 64 * 1024 * 1024;

/** One object as it now is; `object` undefined: it is gone. */
export interface Update {
  readonly key: ObjectKey;
  readonly object: KubeObject | undefined;
  readonly stale?: true;
  /** Why it cannot be read; `object` is undefined then. */
  readonly unreadable?: Error;
}

type Entry = StoredObject & { readonly unreadable?: Error };

interface HistoryEntry {
  readonly change: Change;
  readonly before: Entry | undefined;
}

/** Names of one resource in order, and what they stand for. */
class Names {
  /** namespace, a zero character, name: sorts as the pair does. */
  readonly sorted: string[] = [];
  readonly entries = new Map<string, Entry>();

  set(id: string, entry: Entry): void {
    if (!this.entries.has(id)) this.sorted.splice(lowerBound(this.sorted, id), 0, id);
    this.entries.set(id, entry);
  }

  delete(id: string): void {
    if (this.entries.delete(id)) this.sorted.splice(lowerBound(this.sorted, id), 1);
  }
}

/** Sorts as namespace and name do. */
export const idOf = ({ namespace, name }: Name): string => `${namespace}\0${name}`;

/** The first place whose value is not below `value`. */
function lowerBound(sorted: readonly string[], value: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? '') < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class WatchCache {
  readonly #resources = new Map<string, Names>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #waiting = new Set<{ readonly revision: number; readonly resolve: () => void }>();
  #history: HistoryEntry[] = [];
  #historyBytes = 0;
  #revision = 0;
  #compacted = 0;

  get revision(): number {
    return this.#revision;
  }

  get compacted(): number {
    return this.#compacted;
  }

  get(key: ObjectKey): StoredObject | undefined {
    return this.#resources.get(key.resource)?.entries.get(idOf(key));
  }

  /** Every object there is. */
  *all(): Iterable<ObjectKey & StoredObject> {
    for (const [resource, { entries }] of this.#resources)
      for (const one of entries.values()) yield { resource, ...one };
  }

  *scanAt(revision: number, resource: string, namespace?: string, after?: Name): Iterable<StoredObject> {
    if (revision < this.#compacted) throw new CompactedError(revision, this.#compacted);
    const names = this.#resources.get(resource);
    const first = after === undefined ? (namespace === undefined ? '' : `${namespace}\0`) : `${idOf(after)}\0`;
    const inRange = (id: string): boolean =>
      id >= first && (namespace === undefined || id.startsWith(`${namespace}\0`));
    const then = this.#stateAt(revision, resource);
    // What is gone since, in its place among what is there.
    const gone = [...then].filter(([id, entry]) => entry !== undefined && inRange(id) && !names?.entries.has(id));
    gone.sort(([a], [b]) => (a < b ? -1 : 1));
    let next = 0;
    const sorted = names?.sorted ?? [];
    for (let at = lowerBound(sorted, first); at < sorted.length; at++) {
      const id = sorted[at] ?? '';
      if (!inRange(id)) break;
      for (let one = gone[next]; one !== undefined && one[0] < id; one = gone[++next])
        if (one[1] !== undefined) yield one[1];
      const entry = then.has(id) ? then.get(id) : names?.entries.get(id);
      if (entry !== undefined) yield entry;
    }
    for (const [, entry] of gone.slice(next)) if (entry !== undefined) yield entry;
  }

  /** What a resource's objects that changed after `revision` were at it. */
  #stateAt(revision: number, resource: string): Map<string, Entry | undefined> {
    const then = new Map<string, Entry | undefined>();
    if (revision >= this.#revision) return then;
    for (let at = this.#firstAfter(revision); at < this.#history.length; at++) {
      const entry = this.#history[at];
      if (entry === undefined || entry.change.record.resource !== resource) continue;
      const id = idOf(entry.change.record);
      if (!then.has(id)) then.set(id, entry.before);
    }
    return then;
  }

  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#history.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#history[middle]?.change.record.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  since(revision: number, resource: string, namespace: string | undefined, maxBytes: number): ChangePage {
    if (revision < this.#compacted) throw new CompactedError(revision, this.#compacted);
    const changes: Change[] = [];
    let bytes = 0;
    for (let at = this.#firstAfter(revision); at < this.#history.length; at++) {
      const change = this.#history[at]?.change;
      if (change === undefined || change.record.resource !== resource) continue;
      if (namespace !== undefined && change.record.namespace !== namespace) continue;
      const last = changes.at(-1)?.record.revision;
      // A page ends with a whole revision.
      if (bytes >= maxBytes && last !== undefined && change.record.revision > last) return { changes, reached: last };
      changes.push(change);
      bytes += change.record.text.length + (change.record.previousText ?? '').length;
    }
    return { changes, reached: Math.max(revision, this.#revision) };
  }

  /** Whether an object of the resource, or of one namespace of it, changed after `revision`, for all that is known. */
  hasChanged(revision: number, resource: string, namespace: string | undefined): boolean {
    return revision < this.#compacted || this.since(revision, resource, namespace, 1).changes.length > 0;
  }

  subscribe(resource: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(resource) ?? new Set<Listener>();
    this.#listeners.set(resource, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }

  /** Resolves when the cache is at `revision`, or when `signal` aborts. */
  reached(revision: number, signal?: AbortSignal): Promise<void> {
    if (this.#revision >= revision || signal?.aborted === true) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wait = { revision, resolve };
    this.#waiting.add(wait);
    const aborted = (): void => resolve();
    signal?.addEventListener('abort', aborted, { once: true });
    return promise.finally(() => {
      this.#waiting.delete(wait);
      signal?.removeEventListener('abort', aborted);
    });
  }

  /** The objects of a list at `revision`, into an empty cache. Each resourceVersion is in its object already. */
  fill(revision: number, objects: Iterable<Update & { readonly revision: number }>): void {
    for (const update of objects) {
      const { key, object, revision: own, stale, unreadable } = update;
      const { entries } = this.#names(key.resource);
      if (unreadable !== undefined) entries.set(idOf(key), unreadableEntry(key, own, unreadable));
      else if (object !== undefined) entries.set(idOf(key), entryOf(key, own, object, stale));
    }
    for (const { sorted, entries } of this.#resources.values()) sorted.push(...[...entries.keys()].sort());
    this.#revision = revision;
    this.#compacted = revision;
  }

  #names(resource: string): Names {
    const names = this.#resources.get(resource) ?? new Names();
    this.#resources.set(resource, names);
    return names;
  }

  /** Everything that changed at `revision`. Listeners are called when all of it is there. */
  apply(revision: number, updates: readonly Update[]): void {
    const changes = updates.flatMap((update) => this.#applyOne(revision, update));
    this.advance(revision);
    for (const change of changes) {
      for (const listener of this.#listeners.get(change.record.resource) ?? []) listener(change);
    }
  }

  #applyOne(revision: number, { key, object, stale, unreadable }: Update): Change[] {
    const names = this.#names(key.resource);
    const id = idOf(key);
    const old = names.entries.get(id);
    if (unreadable !== undefined) {
      names.set(id, unreadableEntry(key, revision, unreadable));
      return [];
    }
    // No watch has seen one that could not be read.
    const before = old?.unreadable === undefined ? old : undefined;
    if (before === undefined && object === undefined) {
      names.delete(id);
      return [];
    }
    const { resource, namespace, name } = key;
    const previousText = before === undefined ? {} : { previousText: before.text };
    const shown = object ?? lastState(JSON.parse(before?.text ?? '{}'), revision);
    const entry = entryOf(key, revision, shown, stale);
    const type = object === undefined ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED';
    const record: ChangeRecord = { type, revision, resource, namespace, name, text: entry.text, ...previousText };
    if (object === undefined) names.delete(id);
    else names.set(id, entry);
    const change = new Change(record, shown);
    this.#history.push({ change, before });
    this.#historyBytes += entry.text.length;
    return [change];
  }

  /** Nothing of this store changed up to `revision`. */
  advance(revision: number): void {
    if (revision > this.#revision) this.#revision = revision;
    this.#trim();
    for (const wait of this.#waiting) if (wait.revision <= this.#revision) wait.resolve();
  }

  /** Drops the older half of a history that is too long. */
  #trim(): void {
    if (this.#history.length <= HISTORY_CHANGES && this.#historyBytes <= HISTORY_BYTES) return;
    const half = this.#history.length >> 1;
    const last = this.#history[half]?.change.record.revision ?? 0;
    // A whole revision, never a part of one.
    const kept = this.#firstAfter(last);
    for (const { change } of this.#history.slice(0, kept)) this.#historyBytes -= change.record.text.length;
    this.#history = this.#history.slice(kept);
    this.#compacted = last;
  }

  close(): void {
    this.#listeners.clear();
    for (const { resolve } of this.#waiting) resolve();
  }
}

function entryOf({ namespace, name }: Name, revision: number, object: KubeObject, stale: true | undefined): Entry {
  const text = JSON.stringify(object);
  return stale === undefined ? { namespace, name, revision, text } : { namespace, name, revision, text, stale };
}

/** Every use of its text fails: the requests that need it name it. */
function unreadableEntry({ namespace, name }: Name, revision: number, unreadable: Error): Entry {
  return {
    namespace,
    name,
    revision,
    unreadable,
    get text(): string {
      throw unreadable;
    },
  };
}
