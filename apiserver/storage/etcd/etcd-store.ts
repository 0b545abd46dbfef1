// Objects in etcd, for several servers at once: all reads are from a watch cache, writes are transactions that compare what
// the decision was made on. Where kube-apiserver keeps a key, this keeps it, so that etcdctl shows what it shows for a real
// cluster; values are JSON, and protobuf is read. Calls of etcd are client.ts's, decisions decision.ts's.

import { AsyncLocalStorage } from 'node:async_hooks';
import { status } from '@grpc/grpc-js';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import type { Tracer } from '../../../lib/trace.ts';
import type { KeyValue__Output } from '../../../proto/gen/etcdserverpb/KeyValue.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import type { Encryption } from '../encryption/load.ts';
import { DEFAULT_PREFIX, keyParser, prefixEnd, storageKey } from '../keys.ts';
import {
  type ChangePage,
  type Listener,
  MAX_OBJECT_BYTES,
  type Name,
  type ObjectKey,
  type ObjectStore,
  ObjectTooLargeError,
  type StoredObject,
  StoreFullError,
} from '../object-store.ts';
import { UnreadableValueError, Values } from '../values.ts';
import { type EtcdAddress, EtcdClient, EtcdError } from './client.ts';
import { startCompaction } from './compaction.ts';
import { Decision, type Encoding } from './decision.ts';
import { EventLeases } from './leases.ts';
import { EtcdMasterLeases } from './master-leases.ts';
import { Progress } from './progress.ts';
import { idOf, type Update, WatchCache } from './watch-cache.ts';
import { Watcher } from './watcher.ts';

export interface EtcdStoreOptions {
  readonly address: EtcdAddress;
  /** kube-apiserver's --etcd-prefix; "/registry" by default. */
  readonly prefix?: string;
  /** "<group>/<plural>" of the built-in resources: their keys do not have the group. */
  readonly resources: readonly string[];
  readonly encryption?: Encryption;
  /** Reads a value that begins with "k8s" and a zero byte, as kube-apiserver writes built-in kinds. */
  readonly decodeProtobuf: (bytes: Uint8Array) => KubeObject;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** Called after each call of etcd: its name ("range", "txn") and the seconds that it took. */
  readonly onCall?: (operation: string, seconds: number) => void;
  readonly log: (line: string) => void;
  /** How long a server that has died is among the others, seconds. Default: 15, as kube-apiserver. */
  readonly masterLeaseSeconds?: number;
}

/** How often a decision is made again because another server was faster. */
const MAX_ATTEMPTS = 100;
/** Keys of one page of the first list. */
const PAGE = 500;
const PROTOBUF = Buffer.from('k8s\0');

export class EtcdStore implements ObjectStore {
  readonly expiresEvents = true;
  readonly masterLeases: EtcdMasterLeases;
  readonly #client: EtcdClient;
  readonly #cache = new WatchCache();
  readonly #running = new AsyncLocalStorage<Decision>();
  readonly #options: EtcdStoreOptions;
  readonly #prefix: string;
  readonly #parseKey: (key: string) => ObjectKey | undefined;
  readonly #values: Values;
  readonly #leases: EventLeases;
  readonly #watcher: Watcher;
  readonly #stopping = new AbortController();
  #progress: Progress | undefined;

  /** Use `open`. */
  private constructor(options: EtcdStoreOptions) {
    this.#options = options;
    this.#prefix = options.prefix ?? DEFAULT_PREFIX;
    this.#parseKey = keyParser(options.resources, this.#prefix);
    this.#values = new Values(options.encryption, this.#prefix);
    this.#client = new EtcdClient(options.address, options.tracer, options.onCall);
    this.#leases = new EventLeases(this.#client, options.clock);
    this.masterLeases = new EtcdMasterLeases(this.#client, this.#prefix, options.masterLeaseSeconds);
    this.#watcher = new Watcher({
      client: this.#client,
      prefix: `${this.#prefix}/`,
      revision: () => this.#cache.revision,
      changed: (revision, events) =>
        this.#cache.apply(
          revision,
          events.flatMap((event) => this.#update(event)),
        ),
      advanced: (revision) => this.#cache.advance(revision),
      compacted: () => this.#listAgain(),
      clock: options.clock,
      log: options.log,
    });
  }

  /** Reads everything there is. Rejects with UserError when etcd cannot be reached, or for flags that cannot be. */
  static async open(options: EtcdStoreOptions): Promise<EtcdStore> {
    const store = new EtcdStore(options);
    try {
      await store.#start();
      return store;
    } catch (error) {
      store.close();
      if (!(error instanceof EtcdError)) throw error;
      throw new UserError(`cannot use etcd at ${options.address.servers.join(', ')}: ${error.message}`);
    }
  }

  async #start(): Promise<void> {
    const { clock, log } = this.#options;
    const version = await this.#client.version();
    const { revision, entries } = await this.#list();
    this.#cache.fill(
      revision,
      entries.map((one) => ({ ...one.update, revision: one.revision })),
    );
    this.#watcher.start();
    this.#progress = new Progress(this.#client, this.#cache, this.#watcher, `${this.#prefix}/`, version, clock);
    startCompaction(this.#client, clock, log, this.#stopping.signal);
  }

  async #list(): Promise<{ revision: number; entries: { update: Update; revision: number }[] }> {
    const entries: { update: Update; revision: number }[] = [];
    const range_end = prefixEnd(`${this.#prefix}/`);
    let key: Buffer | undefined = Buffer.from(`${this.#prefix}/`);
    let revision = 0;
    while (key !== undefined) {
      const page = await this.#client.range({ key, range_end, limit: PAGE, revision });
      if (revision === 0) revision = Number(page.header?.revision ?? 0);
      for (const kv of page.kvs) {
        const own = Number(kv.mod_revision);
        for (const update of this.#update({ kv, deleted: false })) entries.push({ update, revision: own });
      }
      const last = page.kvs.at(-1)?.key;
      key = page.more && last !== undefined ? Buffer.concat([last, Buffer.alloc(1)]) : undefined;
    }
    return { revision, entries };
  }

  /** After a pause so long that etcd has compacted what came meanwhile: the difference takes the place of the changes. */
  async #listAgain(): Promise<void> {
    const { revision, entries } = await this.#list();
    const present = new Set(entries.map(({ update }) => storageKey(update.key)));
    const gone = [...this.#cache.all()].filter((one) => !present.has(storageKey(one)));
    const changed = entries.filter((one) => (this.#cache.get(one.update.key)?.revision ?? 0) !== one.revision);
    changed.sort((a, b) => a.revision - b.revision);
    for (const one of changed) this.#cache.apply(one.revision, [one.update]);
    this.#cache.apply(
      revision,
      gone.map(({ resource, namespace, name }) => ({ key: { resource, namespace, name }, object: undefined })),
    );
  }

  /** The object of a key, or nothing for what is no object or cannot be read. */
  #update({ kv, deleted }: { readonly kv: KeyValue__Output; readonly deleted: boolean }): Update[] {
    const key = this.#parseKey(kv.key.toString());
    if (key === undefined) {
      // A renewal changes nothing.
      if (deleted || Number(kv.version) === 1) this.masterLeases.changed(kv.key.toString());
      return [];
    }
    if (deleted) return [{ key, object: undefined }];
    try {
      const { bytes, stale } = this.#values.decodeBytes(key, kv.value);
      const object: KubeObject = bytes.subarray(0, PROTOBUF.length).equals(PROTOBUF)
        ? this.#options.decodeProtobuf(bytes)
        : JSON.parse(bytes.toString());
      object.metadata.resourceVersion = String(kv.mod_revision);
      return [stale === undefined ? { key, object } : { key, object, stale }];
    } catch (error) {
      const unreadable =
        error instanceof UnreadableValueError ? error : new UnreadableValueError(unreadableAt(kv, error));
      this.#options.log(`an object in etcd cannot be read: ${unreadable.message}`);
      return [{ key, object: undefined, unreadable }];
    }
  }

  get revision(): number {
    return this.#cache.revision;
  }

  get compacted(): number {
    return this.#cache.compacted;
  }

  get(key: ObjectKey): StoredObject | undefined {
    const decision = this.#running.getStore();
    const found = this.#cache.get(key);
    if (decision === undefined) return found;
    const written = decision.written(key);
    if (written !== undefined) return written.object === undefined ? undefined : written.result;
    decision.read(key, found);
    return found;
  }

  scan(resource: string, namespace?: string, after?: Name): Iterable<StoredObject> {
    return this.scanAt(this.revision, resource, namespace, after);
  }

  scanAt(revision: number, resource: string, namespace?: string, after?: Name): Iterable<StoredObject> {
    const decision = this.#running.getStore();
    decision?.scanned(resource, namespace, revision);
    const found = this.#cache.scanAt(revision, resource, namespace, after);
    const writes = decision?.writes.filter(({ key }) => key.resource === resource) ?? [];
    return writes.length === 0 || revision !== this.revision ? found : withWrites(found, writes, namespace, after);
  }

  countAt(revision: number, resource: string, namespace?: string, after?: Name): number {
    let count = 0;
    for (const _ of this.#cache.scanAt(revision, resource, namespace, after)) count++;
    return count;
  }

  since(revision: number, resource: string, namespace?: string, maxBytes = Number.POSITIVE_INFINITY): ChangePage {
    return this.#cache.since(revision, resource, namespace, maxBytes);
  }

  subscribe(resource: string, listener: Listener): () => void {
    return this.#cache.subscribe(resource, listener);
  }

  put(key: ObjectKey, object: KubeObject, previous?: StoredObject): StoredObject {
    const bytes = Buffer.byteLength(JSON.stringify(object));
    if (bytes > MAX_OBJECT_BYTES) throw new ObjectTooLargeError(bytes);
    return this.#decision().write(key, object, object, previous);
  }

  remove(key: ObjectKey, last: KubeObject, previous: StoredObject): StoredObject {
    return this.#decision().write(key, undefined, last, previous);
  }

  #decision(): Decision {
    const decision = this.#running.getStore();
    if (decision === undefined) throw new Error('the store is written to outside a decision: use commit()');
    return decision;
  }

  dependsOn(resource: string, namespace: string, name?: string): void {
    const decision = this.#running.getStore();
    if (decision === undefined) return;
    if (name === undefined) decision.scanned(resource, namespace, this.revision);
    else if (decision.written({ resource, namespace, name }) === undefined) {
      const key = { resource, namespace, name };
      decision.read(key, this.#cache.get(key));
    }
  }

  async commit<T>(decide: () => T | Promise<T>): Promise<T> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const decision = new Decision(this.#prefix, this.revision);
      let result: T;
      try {
        result = await this.#running.run(decision, async () => decide());
      } catch (error) {
        // It may have been decided on a state that is no more.
        await this.catchUp();
        if (decision.isCurrent(this.#cache)) throw error;
        continue;
      }
      if (decision.writes.length === 0) {
        await this.catchUp();
        if (decision.isCurrent(this.#cache)) return result;
      } else if (await this.#store(decision)) return result;
    }
    throw new Error(`the objects were changed by others ${MAX_ATTEMPTS} times while this request was carried out`);
  }

  /** Returns false when another server was faster; the cache shows that by then. */
  async #store(decision: Decision): Promise<boolean> {
    const encoding = await this.#encoding(decision);
    for (const request of decision.transactions(encoding)) {
      const { succeeded, header } = await this.#transact(request, decision);
      const revision = Number(header?.revision ?? 0);
      if (succeeded) decision.settle(revision);
      // For a conflict: at least what was compared is not newer than this.
      await (succeeded ? this.#cache.reached(revision, this.#stopping.signal) : this.catchUp());
      if (!succeeded) return false;
    }
    return true;
  }

  async #encoding(decision: Decision): Promise<Encoding> {
    const expires = decision.writes.some(({ key, object }) => object !== undefined && this.#leases.covers(key));
    const lease = expires ? await this.#leases.current() : '0';
    return {
      value: (key, object) => {
        const { resourceVersion: _resourceVersion, ...metadata } = object.metadata;
        return Buffer.from(this.#values.encode(key, JSON.stringify({ ...object, metadata })));
      },
      lease: (key) => (this.#leases.covers(key) ? lease : '0'),
    };
  }

  async #transact(request: Parameters<EtcdClient['txn']>[0], { writes }: Decision): ReturnType<EtcdClient['txn']> {
    try {
      return await this.#client.txn(request);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      if (error.code === status.RESOURCE_EXHAUSTED && error.message.includes('database space exceeded')) {
        throw new StoreFullError('etcdserver: mvcc: database space exceeded');
      }
      if (error.message.includes('request is too large')) {
        throw new ObjectTooLargeError(Buffer.byteLength(JSON.stringify(writes[0]?.object ?? {})));
      }
      throw error;
    }
  }

  catchUp(): Promise<void> {
    return this.#progress?.catchUp() ?? Promise.resolve();
  }

  check(): Promise<void> {
    return this.catchUp();
  }

  close(): void {
    this.#stopping.abort();
    this.#watcher.stop();
    this.#cache.close();
    this.#client.close();
  }
}

/** What a decision has found, with what it has written itself. */
function withWrites(
  found: Iterable<StoredObject>,
  writes: Decision['writes'],
  namespace: string | undefined,
  after: Name | undefined,
): StoredObject[] {
  const written = new Map(writes.map((write) => [idOf(write.key), write]));
  const inRange = (key: Name): boolean =>
    (namespace === undefined || key.namespace === namespace) && (after === undefined || idOf(key) > idOf(after));
  const added = writes.filter(({ key, object }) => object !== undefined && inRange(key)).map(({ result }) => result);
  const kept = [...found].filter((one) => !written.has(idOf(one)));
  return [...kept, ...added].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

function unreadableAt(kv: KeyValue__Output, error: unknown): string {
  return `unable to decode object at key ${JSON.stringify(kv.key.toString())}: ${errorMessage(error)}`;
}
