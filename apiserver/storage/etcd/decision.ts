// One decision of the registry on what the watch cache holds: what it read, and what it writes. It becomes one transaction of
// etcd, which stores the writes only if nothing of what was read has changed since: so decisions of several servers are as
// if made one after the other. Pure but for the objects whose resourceVersion it sets at the end.

import type { Compare } from '../../../proto/gen/etcdserverpb/Compare.ts';
import type { RequestOp } from '../../../proto/gen/etcdserverpb/RequestOp.ts';
import type { TxnRequest } from '../../../proto/gen/etcdserverpb/TxnRequest.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import { prefixEnd, resourceDirectory, storageKey } from '../keys.ts';
import type { ObjectKey, StoredObject } from '../object-store.ts';
import type { WatchCache } from './watch-cache.ts';

/** Writes and comparisons of one transaction; etcd's own limit for both is 128. */
const MAX_OPERATIONS = 60;

interface Write {
  readonly key: ObjectKey;
  /** The revision that it replaces; 0: none. */
  readonly expected: number;
  /** Undefined: a deletion. */
  readonly object: KubeObject | undefined;
  readonly result: PendingObject;
}

interface Scan {
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly revision: number;
}

/** How a write is stored. */
export interface Encoding {
  value(key: ObjectKey, object: KubeObject): Buffer;
  /** The lease that the object ends with; '0' for none. */
  lease(key: ObjectKey): string;
}

/** An object that is being written: its revision and text are there once etcd has it. */
export class PendingObject implements StoredObject {
  readonly namespace: string;
  readonly name: string;
  readonly #object: KubeObject;
  #revision: number | undefined;
  #text: string | undefined;

  constructor({ namespace, name }: ObjectKey, object: KubeObject) {
    this.namespace = namespace;
    this.name = name;
    this.#object = object;
  }

  get revision(): number {
    return this.#revision ?? 0;
  }

  get text(): string {
    this.#text ??= this.#revision === undefined ? undefined : JSON.stringify(this.#object);
    return this.#text ?? JSON.stringify(this.#object);
  }

  settle(revision: number): void {
    this.#object.metadata.resourceVersion = String(revision);
    this.#revision = revision;
  }
}

export class Decision {
  readonly #prefix: string;
  readonly #reads = new Map<string, { readonly key: ObjectKey; readonly revision: number }>();
  readonly #scans = new Map<string, Scan>();
  readonly #writes = new Map<string, Write>();
  readonly #start: number;

  constructor(prefix: string, start: number) {
    this.#prefix = prefix;
    this.#start = start;
  }

  get writes(): readonly Write[] {
    return [...this.#writes.values()];
  }

  /** The write of this decision itself, or undefined; `object` undefined in it is a deletion. */
  written(key: ObjectKey): Write | undefined {
    return this.#writes.get(storageKey(key, this.#prefix));
  }

  read(key: ObjectKey, found: StoredObject | undefined): void {
    const path = storageKey(key, this.#prefix);
    if (!this.#reads.has(path)) this.#reads.set(path, { key, revision: found?.revision ?? 0 });
  }

  /** A whole resource, or one namespace of it, was read at `revision`. */
  scanned(resource: string, namespace: string | undefined, revision: number): void {
    const directory = resourceDirectory(resource, this.#prefix);
    const path = namespace === undefined || namespace === '' ? `${directory}/` : `${directory}/${namespace}/`;
    if (!this.#scans.has(path)) this.#scans.set(path, { resource, namespace, revision });
  }

  write(
    key: ObjectKey,
    object: KubeObject | undefined,
    shown: KubeObject,
    previous: StoredObject | undefined,
  ): PendingObject {
    const path = storageKey(key, this.#prefix);
    const before = this.#writes.get(path);
    const result = new PendingObject(key, shown);
    this.#writes.set(path, { key, object, expected: before?.expected ?? previous?.revision ?? 0, result });
    return result;
  }

  /** Whether what was read is still what the cache has. */
  isCurrent(cache: WatchCache): boolean {
    if (cache.revision === this.#start) return true;
    for (const { key, revision } of this.#reads.values())
      if ((cache.get(key)?.revision ?? 0) !== revision) return false;
    return [...this.#scans.values()].every(
      ({ resource, namespace, revision }) => !cache.hasChanged(revision, resource, namespace),
    );
  }

  /** The transactions, all but very large decisions in one. */
  transactions(encoding: Encoding): TxnRequest[] {
    const writes = [...this.#writes];
    const parts: TxnRequest[] = [];
    for (let at = 0; at < writes.length; at += MAX_OPERATIONS) {
      const part = writes.slice(at, at + MAX_OPERATIONS);
      parts.push({
        compare: [
          ...(at === 0 ? this.#guards() : []),
          ...part.map(([path, { expected }]) => unchanged(path, expected)),
        ],
        success: part.map(([path, write]) => operation(path, write, encoding)),
      });
    }
    return parts;
  }

  /** What was read and is not written. */
  #guards(): Compare[] {
    const scans = new Map(this.#scans);
    let reads = [...this.#reads].filter(([path]) => !this.#writes.has(path));
    if (reads.length + scans.size > MAX_OPERATIONS) {
      for (const [, { key }] of reads) {
        const directory = `${resourceDirectory(key.resource, this.#prefix)}/`;
        const { resource } = key;
        if (!scans.has(directory)) scans.set(directory, { resource, namespace: undefined, revision: this.#start });
      }
      reads = [];
    }
    return [...reads.map(([path, { revision }]) => unchanged(path, revision)), ...[...scans].map(noneNewer)];
  }

  settle(revision: number): void {
    for (const { result } of this.#writes.values()) result.settle(revision);
  }
}

function unchanged(path: string, revision: number): Compare {
  return { result: 'EQUAL', target: 'MOD', key: Buffer.from(path), mod_revision: revision };
}

/** No key of the directory was written after `revision`. What was deleted is not seen: it can only free something. */
function noneNewer([path, { revision }]: [string, Scan]): Compare {
  const range = { key: Buffer.from(path), range_end: prefixEnd(path) };
  return { result: 'LESS', target: 'MOD', ...range, mod_revision: revision + 1 };
}

function operation(path: string, { key, object }: Write, encoding: Encoding): RequestOp {
  const at = { key: Buffer.from(path) };
  if (object === undefined) return { request_delete_range: at };
  return { request_put: { ...at, value: encoding.value(key, object), lease: encoding.lease(key) } };
}
