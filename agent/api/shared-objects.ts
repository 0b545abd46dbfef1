// The ConfigMaps and Secrets that the node's pods refer to: each is read and followed once, however many pods use it,
// until the last of them has gone. What the kubelet calls its ConfigMap and Secret managers. Unlike those it does not keep
// big contents in memory: a full node's can be hundreds of megabytes.

import type { ApiClient } from '../../client/api.ts';
import { isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { ConfigMap, Pod, Secret } from '../../client/types.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { Gate } from '../../lib/gate.ts';
import type { FollowedObjects } from '../ports/api.ts';
import { ContentCache, contentBytes } from './content-cache.ts';
import { type ObjectKind, type ObjectReference, objectReferences, referenceKey } from './object-references.ts';
import { PolledObject } from './polled-object.ts';
import { type KeptContent, type ObjectSource, WatchedObject } from './watched-object.ts';

/** KubeletConfiguration's configMapAndSecretChangeDetectionStrategy. */
export type ChangeDetection = 'Watch' | 'Cache' | 'Get';

export interface SharedObjectsOptions {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'watch'>;
  readonly clock: Clock;
  readonly strategy: ChangeDetection;
  /** With Cache: for how long (ms) what was read is used; the node's annotation node.alpha.kubernetes.io/ttl. */
  readonly ttlMs: () => number;
  /** Called when an object can no longer be watched; the last known version is used until then. */
  readonly onFailure: (what: string, error: unknown) => void;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}

/** An object that no pod uses any more is followed this long (ms) still: pods are often replaced by their like. */
export const LINGER_MS = 10_000;

/** Objects being received and decoded at once: each may be a megabyte, and takes several times that during decoding. */
const READS_AT_ONCE = 4;

const PLURAL = { configMap: 'configmaps', secret: 'secrets' } as const;

interface Kinds {
  readonly configMap: ConfigMap;
  readonly secret: Secret;
}

interface Shared {
  readonly source: ObjectSource<ConfigMap | Secret>;
  /** By pod uid: what to call when the object has changed; undefined where no volume shows it. */
  readonly users: Map<string, (() => void) | undefined>;
  idle: Timer | undefined;
}

export class SharedObjects implements FollowedObjects {
  readonly live: boolean;
  readonly #options: SharedObjectsOptions;
  readonly #client: SharedObjectsOptions['client'];
  readonly #contents: ContentCache<ConfigMap | Secret>;
  readonly #shared = new Map<string, Shared>();
  /** By pod uid: the keys of what the pod refers to. */
  readonly #pods = new Map<string, ReadonlySet<string>>();
  /** Objects that no pod is known to use, being read: concurrent readers share the request. */
  readonly #underWay = new Map<string, Promise<ConfigMap | Secret | undefined>>();

  constructor(options: SharedObjectsOptions) {
    this.#options = options;
    this.live = options.strategy === 'Watch';
    this.#contents = new ContentCache({ clock: options.clock });
    const { client } = options;
    const gate = new Gate(READS_AT_ONCE);
    this.#client = {
      get: (...call) => gate.run(() => client.get(...call)),
      list: (...call) => gate.run(() => client.list(...call)),
      watch: (...call) => client.watch(...call),
    };
  }

  follow(pod: Pod, onChange: () => void): void {
    const { uid, namespace } = pod.metadata;
    const references = objectReferences(pod);
    const before = this.#pods.get(uid);
    this.#pods.set(uid, new Set(references.keys()));
    for (const [key, reference] of references) this.#use(key, namespace, reference, uid, onChange);
    for (const key of before ?? []) if (!references.has(key)) this.#leave(key, uid);
  }

  release(uid: string): void {
    for (const key of this.#pods.get(uid) ?? []) this.#leave(key, uid);
    this.#pods.delete(uid);
  }

  close(): void {
    for (const { source, idle } of this.#shared.values()) {
      idle?.cancel();
      source.close();
    }
    this.#shared.clear();
    this.#pods.clear();
    this.#contents.clear();
  }

  read<K extends ObjectKind>(kind: K, namespace: string, name: string): Promise<Kinds[K] | undefined> {
    const key = referenceKey(kind, namespace, name);
    const source = this.#shared.get(key)?.source;
    // What is under one key is of one kind.
    if (source !== undefined) return source.read() as Promise<Kinds[K] | undefined>;
    const reading =
      this.#underWay.get(key) ?? this.#get(kind, namespace, name).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, reading);
    return reading as Promise<Kinds[K] | undefined>;
  }

  /** The version of the object that `read` would give now; undefined when only a request can say. */
  version(kind: ObjectKind, namespace: string, name: string): string | undefined {
    return this.#shared.get(referenceKey(kind, namespace, name))?.source.version();
  }

  /** How many objects are followed. */
  get size(): number {
    return this.#shared.size;
  }

  /** Bytes of contents in memory. */
  get contentBytes(): number {
    return this.#contents.bytes;
  }

  #use(key: string, namespace: string, reference: ObjectReference, uid: string, onChange: () => void): void {
    let shared = this.#shared.get(key);
    if (shared === undefined) {
      shared = {
        source: this.#source(key, reference.kind, namespace, reference.name),
        users: new Map(),
        idle: undefined,
      };
      this.#shared.set(key, shared);
    }
    shared.idle?.cancel();
    shared.idle = undefined;
    if (!shared.users.has(uid)) shared.source.newReader();
    shared.users.set(uid, reference.live ? onChange : undefined);
  }

  #leave(key: string, uid: string): void {
    const shared = this.#shared.get(key);
    if (shared === undefined || !shared.users.delete(uid) || shared.users.size > 0) return;
    const end = (): void => {
      shared.source.close();
      this.#contents.delete(key);
      this.#shared.delete(key);
    };
    // Pods to come shall see what has the name then.
    if (shared.source.frozen) end();
    else shared.idle = this.#options.clock.after(LINGER_MS, end);
  }

  #source(key: string, kind: ObjectKind, namespace: string, name: string): ObjectSource<ConfigMap | Secret> {
    const { clock, strategy, ttlMs, onFailure, random } = this.#options;
    const content: KeptContent<ConfigMap | Secret> = {
      get: () => this.#contents.get(key),
      set: (object) => this.#contents.set(key, object, contentBytes(object)),
      delete: () => this.#contents.delete(key),
    };
    if (strategy !== 'Watch') {
      const get = (): Promise<ConfigMap | Secret | undefined> => this.#get(kind, namespace, name);
      return new PolledObject({ clock, get, content, ttlMs: strategy === 'Get' ? () => 0 : ttlMs });
    }
    return new WatchedObject<ConfigMap | Secret>({
      client: this.#client,
      clock,
      content,
      name,
      collection: resourcePath('v1', PLURAL[kind], { namespace }),
      transform: slim,
      header,
      onFailure: (error) => onFailure(`${kind.toLowerCase()} ${namespace}/${name}`, error),
      onChange: () => {
        for (const onChange of [...(this.#shared.get(key)?.users.values() ?? [])]) onChange?.();
      },
      ...(random === undefined ? {} : { random }),
    });
  }

  async #get(kind: ObjectKind, namespace: string, name: string): Promise<ConfigMap | Secret | undefined> {
    try {
      return slim(await this.#client.get(resourcePath('v1', PLURAL[kind], { namespace, name })));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** What pods can see of an object; managedFields and annotations (a whole copy of it, with kubectl apply) cost memory. */
function slim(object: ConfigMap | Secret): ConfigMap | Secret {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return { ...object, metadata: { name, uid, resourceVersion, ...(namespace === undefined ? {} : { namespace }) } };
}

/** What stays of an object whose contents are not kept. */
function header({ metadata, immutable }: ConfigMap | Secret): ConfigMap | Secret {
  return { metadata, ...(immutable === undefined ? {} : { immutable }) };
}
