// What the registry needs of a store: objects by name and revision, the changes since a revision, and writes that are
// decided on what is stored. Two stores have it: store.ts (one SQLite file) and etcd/etcd-store.ts. Types and errors only.

import type { KubeObject } from '../kinds/resource.ts';
import type { Change } from './change.ts';

export interface ObjectKey {
  /** "<group>/<plural>", as "/pods" */
  readonly resource: string;
  /** '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

export type Name = Pick<ObjectKey, 'namespace' | 'name'>;

export interface StoredObject {
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  /** JSON, with metadata.resourceVersion inside. */
  readonly text: string;
  /** It is stored in a form that a new write would not have, as with an old key: it is to be written though unchanged. */
  readonly stale?: boolean;
}

/** Which API servers work on one store: each renews a lease under its address. */
export interface MasterLeases {
  /** This server is at `address`, for 15 seconds from now. */
  renew(address: string): Promise<void>;
  /** The addresses of all servers. */
  list(): Promise<readonly string[]>;
  remove(address: string): Promise<void>;
  /** Calls `listener` when a server has come or gone. Returns what ends that. */
  onChange(listener: () => void): () => void;
}

/** The requested history is compacted, wholly or in part. */
export class CompactedError extends Error {
  override name = 'CompactedError';
  readonly oldest: number;
  constructor(revision: number, oldest: number) {
    super(`too old resource version: ${revision} (${oldest})`);
    this.oldest = oldest;
  }
}

/** A write was refused because there is no room for it on the disk. Nothing of it is stored. */
export class StoreFullError extends Error {
  override name = 'StoreFullError';
}

/** The object has more than MAX_OBJECT_BYTES as JSON and was not written. */
export class ObjectTooLargeError extends Error {
  override name = 'ObjectTooLargeError';
  readonly bytes: number;
  constructor(bytes: number) {
    super(`the object has ${bytes} bytes`);
    this.bytes = bytes;
  }
}

/** The largest object that is stored, in bytes of JSON: etcd's limit on a request. */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;

/** Changes after a revision, as many as were requested. */
export interface ChangePage {
  /** Oldest first. */
  readonly changes: readonly Change[];
  /** Every change up to here is in `changes`, or none of the reader's business. */
  readonly reached: number;
}

export type Listener = (change: Change) => void;

export interface ObjectStore {
  /** The revision of the newest write that reads show. Never goes back, over restarts either. */
  readonly revision: number;
  /** Changes up to and including this one are compacted. */
  readonly compacted: number;
  /** Whether events disappear by themselves after an hour; else they have to be removed. */
  readonly expiresEvents: boolean;
  /** Absent where this server is the only one. */
  readonly masterLeases?: MasterLeases;

  get(key: ObjectKey): StoredObject | undefined;
  /**
   * Objects of a resource by namespace and name; of one namespace, and after `after`, when these are set. Each is
   * read lazily, all in one turn of the event loop and without a write between.
   */
  scan(resource: string, namespace?: string, after?: Name): Iterable<StoredObject>;
  /** The same as of `revision`. Throws CompactedError when history no longer reaches back that far. */
  scanAt(revision: number, resource: string, namespace?: string, after?: Name): Iterable<StoredObject>;
  /** The number of objects that `scanAt` returns. */
  countAt(revision: number, resource: string, namespace?: string, after?: Name): number;
  /**
   * Changes after `revision`, oldest first, until their texts come to `maxBytes` or there are no more. Throws
   * CompactedError when some of them are gone.
   */
  since(revision: number, resource: string, namespace?: string, maxBytes?: number): ChangePage;
  /** Calls `listener` for every later change of the resource, in order. It must not throw. Returns what ends that. */
  subscribe(resource: string, listener: Listener): () => void;

  /**
   * Writes the object in place of `previous`, the result of `get` in the same decision, absent for a new one. From then
   * on `object` is shared and must not be changed; its resourceVersion, and the text of what is returned, are right
   * once the decision is committed. Throws StoreFullError and ObjectTooLargeError. Only inside `commit`.
   */
  put(key: ObjectKey, object: KubeObject, previous?: StoredObject): StoredObject;
  /** Removes the object; returns `last`, its final state for the client that deletes it. Only inside `commit`. */
  remove(key: ObjectKey, last: KubeObject, previous: StoredObject): StoredObject;
  /**
   * Runs `decide`, which reads the store and writes to it. Resolves when what it wrote is stored and reads show it. Where
   * another server has changed what it read or replaces, nothing is stored and it runs again: it must not change what
   * it was given. Rejects with what it throws.
   */
  commit<T>(decide: () => T | Promise<T>): Promise<T>;
  /**
   * The decision under way depends on this object or its absence, or without a name on all objects of the namespace, though
   * it knows them from the changes and has not read them here.
   */
  dependsOn(resource: string, namespace: string, name?: string): void;
  /** Resolves when reads show every write that was complete before the call, those of other servers too. */
  catchUp(): Promise<void>;
  /** Rejects when the store cannot be read. */
  check(): Promise<void>;
  /** Releases the store. Idempotent. */
  close(): void;
}
