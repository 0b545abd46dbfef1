// The garbage collector: deletes what has lost its owners, and carries out the deletions in the foreground and those that
// orphan, which the server only marks by a finalizer. decide.ts decides. It knows the kinds it is given, as dependents and
// as owners; an owner of another kind is taken to be there.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { isNotFound } from '../../../client/errors.ts';
import { type Change, type Identified, objectKey, type ReadableStore } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import {
  DEPLOYMENT,
  ENDPOINT_SLICE,
  ENDPOINTS,
  pathOf,
  REPLICA_SET,
  SERVICE,
  type WorkloadKind,
} from '../shared/objects.ts';
import { POD } from '../shared/pods.ts';
import {
  type Action,
  decideLeaving,
  decideOwned,
  ORPHAN,
  type Owner,
  type OwnerState,
  waitsForDependents,
} from './decide.ts';

type Needed = Pick<Informers, 'pods' | 'replicaSets' | 'deployments' | 'services' | 'endpoints' | 'endpointSlices'>;

interface Watched {
  readonly kind: WorkloadKind;
  readonly store: ReadableStore<Identified>;
}

interface Item {
  readonly kind: WorkloadKind;
  readonly object: Identified;
}

const referencesOf = ({ metadata }: Identified): readonly OwnerReference[] => metadata.ownerReferences ?? [];
/** Names contain no colon. */
const keyOf = (kind: WorkloadKind, object: Identified): string => `${kind.plural}:${objectKey(object)}`;

/** Keys are plural and key of an object. */
export class GarbageCollector implements Controller {
  readonly name = 'garbage-collector';
  readonly workers = 20;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #watched: ReadonlyMap<string, Watched>;
  /** Dependents by the uid of an owner, then by key. */
  readonly #dependents = new Map<string, Map<string, Item>>();
  /** Keys by uid, of everything that is watched. */
  readonly #keys = new Map<string, string>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.queue = new WorkQueue({ clock: context.clock });
    const watched: readonly Watched[] = [
      { kind: POD, store: informers.pods },
      { kind: REPLICA_SET, store: informers.replicaSets },
      { kind: DEPLOYMENT, store: informers.deployments },
      { kind: SERVICE, store: informers.services },
      { kind: ENDPOINTS, store: informers.endpoints },
      { kind: ENDPOINT_SLICE, store: informers.endpointSlices },
    ];
    this.#watched = new Map(watched.map((each) => [each.kind.plural, each]));
    const follow = <T extends Identified>(kind: WorkloadKind, store: ReadableStore<T>): void => {
      store.onChange((changes) => {
        for (const change of changes) this.#changed(kind, change);
      });
    };
    follow(POD, informers.pods);
    follow(REPLICA_SET, informers.replicaSets);
    follow(DEPLOYMENT, informers.deployments);
    follow(SERVICE, informers.services);
    follow(ENDPOINTS, informers.endpoints);
    follow(ENDPOINT_SLICE, informers.endpointSlices);
  }

  #changed(kind: WorkloadKind, change: Change<Identified>): void {
    const { object } = change;
    const { uid } = object.metadata;
    const key = keyOf(kind, object);
    if (change.type === 'modified') this.#unlink(key, change.old);
    if (change.type === 'removed') {
      this.#unlink(key, object);
      if (this.#keys.get(uid) === key) this.#keys.delete(uid);
      this.#enqueueDependents(uid);
    } else {
      this.#keys.set(uid, key);
      for (const owner of referencesOf(object)) {
        const items = this.#dependents.get(owner.uid) ?? new Map<string, Item>();
        items.set(key, { kind, object });
        this.#dependents.set(owner.uid, items);
      }
      const leaving = object.metadata.deletionTimestamp !== undefined;
      const changed = change.type === 'added' || !sameJson(referencesOf(change.old), referencesOf(object));
      if (leaving || (changed && referencesOf(object).length > 0)) this.queue.add(key);
    }
    // An owner may wait for this one to go, or to block it no longer.
    for (const owner of referencesOf(object)) this.#enqueueWaiting(owner.uid);
    if (change.type === 'modified') for (const owner of referencesOf(change.old)) this.#enqueueWaiting(owner.uid);
  }

  #unlink(key: string, object: Identified): void {
    for (const { uid } of referencesOf(object)) {
      const items = this.#dependents.get(uid);
      items?.delete(key);
      if (items?.size === 0) this.#dependents.delete(uid);
    }
  }

  #enqueueDependents(uid: string): void {
    for (const key of this.#dependents.get(uid)?.keys() ?? []) this.queue.add(key);
  }

  #enqueueWaiting(uid: string): void {
    const item = this.#find(this.#keys.get(uid));
    if (item !== undefined && waitsForDependents(item.object)) this.queue.add(keyOf(item.kind, item.object));
  }

  #find(key = ''): Item | undefined {
    const colon = key.indexOf(':');
    const watched = this.#watched.get(key.slice(0, colon));
    const object = watched?.store.get(key.slice(colon + 1));
    return watched === undefined || object === undefined ? undefined : { kind: watched.kind, object };
  }

  async sync(key: string): Promise<void> {
    const item = this.#find(key);
    if (item === undefined) return;
    const { object } = item;
    const dependents = [...(this.#dependents.get(object.metadata.uid)?.values() ?? [])];
    const objects = dependents.map((dependent) => dependent.object);
    if (object.metadata.deletionTimestamp !== undefined) {
      await this.#perform(item, decideLeaving(object, objects), dependents);
      return;
    }
    const owners = await Promise.all(
      referencesOf(object).map(async (reference): Promise<Owner> => {
        return { reference, state: await this.#ownerState(object, reference) };
      }),
    );
    await this.#perform(item, decideOwned(object, owners, objects), dependents);
  }

  /** The cache is enough to find an owner; that it is gone only the server can say. */
  async #ownerState(dependent: Identified, { apiVersion, kind, name, uid }: OwnerReference): Promise<OwnerState> {
    const watched = [...this.#watched.values()].find(
      (each) => each.kind.kind === kind && each.kind.apiVersion === apiVersion,
    );
    if (watched === undefined) return 'unknown';
    const { namespace } = dependent.metadata;
    const metadata = { ...dependent.metadata, name };
    const known = watched.store.get(
      objectKey({ metadata: { name, ...(namespace === undefined ? {} : { namespace }) } }),
    );
    if (known?.metadata.uid === uid) return waitsForDependents(known) ? 'waiting' : 'there';
    try {
      const owner = await this.#context.client.get<Identified>(pathOf(watched.kind, { metadata }));
      if (owner.metadata.uid !== uid) return 'gone';
      return waitsForDependents(owner) ? 'waiting' : 'there';
    } catch (error) {
      if (isNotFound(error)) return 'gone';
      throw error;
    }
  }

  async #perform(item: Item, action: Action, dependents: readonly Item[]): Promise<void> {
    switch (action.kind) {
      case 'keep':
        return;
      case 'drop-owners':
        return await this.#dropOwners(item, action.uids);
      case 'delete':
        if (action.unblock) await this.#unblock(item);
        return await this.#delete(item, action.policy);
      case 'orphan-dependents':
        await Promise.all(dependents.map((dependent) => this.#dropOwners(dependent, [item.object.metadata.uid])));
        return await this.#removeFinalizer(item, ORPHAN);
      case 'wait':
        for (const { kind, object } of dependents) {
          if (object.metadata.deletionTimestamp === undefined) this.queue.add(keyOf(kind, object));
        }
        return;
      case 'remove-finalizer':
        return await this.#removeFinalizer(item, action.finalizer);
    }
  }

  async #patch({ kind, object }: Item, ownerReferences: readonly object[]): Promise<void> {
    const patch = { metadata: { uid: object.metadata.uid, ownerReferences } };
    await this.#context.client.patch(pathOf(kind, object), patch, 'strategic').catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  #dropOwners(item: Item, uids: readonly string[]): Promise<void> {
    return this.#patch(
      item,
      uids.map((uid) => ({ $patch: 'delete', uid })),
    );
  }

  #unblock(item: Item): Promise<void> {
    return this.#patch(
      item,
      referencesOf(item.object).map((reference) => ({ ...reference, blockOwnerDeletion: false })),
    );
  }

  /** Only in the state that was decided on: an object that has changed, perhaps its owners, is decided on again. */
  async #delete({ kind, object }: Item, propagationPolicy: 'Background' | 'Foreground' | 'Orphan'): Promise<void> {
    const { uid, resourceVersion } = object.metadata;
    const preconditions = { uid, resourceVersion };
    await this.#context.client
      .delete(pathOf(kind, object), { propagationPolicy, preconditions })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }

  async #removeFinalizer({ kind, object }: Item, finalizer: string): Promise<void> {
    const { client } = this.#context;
    try {
      const { metadata } = await client.get<Identified>(pathOf(kind, object));
      if (metadata.uid !== object.metadata.uid || metadata.finalizers?.includes(finalizer) !== true) return;
      const finalizers = metadata.finalizers.filter((each) => each !== finalizer);
      const patch = { metadata: { resourceVersion: metadata.resourceVersion, finalizers } };
      await client.patch(pathOf(kind, object), patch, 'merge');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
