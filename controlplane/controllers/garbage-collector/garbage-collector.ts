// The garbage collector: deletes what has lost its owners, and carries out the deletions in the foreground and those that
// orphan, which the server only marks by a finalizer. decide.ts decides; collected-kinds.ts knows the kinds.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Change, Identified } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { type DiscoveredResource, discover } from '../../discovery.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { pathOf, subjectOf, type WorkloadKind } from '../shared/objects.ts';
import { CollectedKinds } from './collected-kinds.ts';
import {
  type Action,
  decideLeaving,
  decideOwned,
  ORPHAN,
  type Owner,
  type OwnerState,
  waitsForDependents,
} from './decide.ts';
import { type Item, keyOf, OwnerGraph, referencesOf } from './owner-graph.ts';

/** A key of the queue that is no object's: the kinds are looked for again. */
const DISCOVERY = 'discovery';
/** Between two of these, if no definition of a kind changes earlier. ms. */
const DISCOVERY_EVERY_MS = 30_000;
/** How long the first decision waits for the lists of all kinds: one that cannot be listed stops nothing for ever. ms. */
const SYNC_LIMIT_MS = 30_000;
/** Until an object is synced again whose owner exists and is in no cache yet. ms. */
export const UNSEEN_MS = 5_000;
/** Owners that are known to be gone. Their uids never come back. */
const GONE_OWNERS = 500;
/** What makes new kinds. */
const DEFINITIONS: ReadonlySet<string> = new Set(['customresourcedefinitions', 'apiservices']);

type Needed = Pick<Informers, 'whole' | 'watchMetadata'>;

/** Keys are those of objects (owner-graph.ts), and DISCOVERY. */
export class GarbageCollector implements Controller {
  readonly name = 'garbage-collector';
  readonly workers = 20;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #kinds: CollectedKinds;
  readonly #graph = new OwnerGraph();
  readonly #goneOwners = new Set<string>();
  /** Keys of objects with an owner of a kind that the server does not have now. */
  readonly #unresolved = new Set<string>();
  readonly #synced = Promise.withResolvers<void>();
  #signal: AbortSignal | undefined;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#kinds = new CollectedKinds(informers, (resource, changes) => {
      for (const change of changes) this.#changed(resource, change);
      if (DEFINITIONS.has(resource.plural) && changes.length > 0) this.queue.add(DISCOVERY);
    });
  }

  async background(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    // Lists that keys wait for will not come any more.
    signal.addEventListener('abort', () => this.#synced.resolve(), { once: true });
    this.queue.add(DISCOVERY);
  }

  #changed(kind: WorkloadKind, change: Change<Identified>): void {
    const { object } = change;
    const item = { kind, object };
    if (change.type === 'removed') {
      this.#graph.remove(item);
      for (const dependent of this.#graph.dependents(object.metadata.uid)) this.queue.add(keyOf(dependent));
    } else {
      this.#graph.set(item);
      const leaving = object.metadata.deletionTimestamp !== undefined;
      const changed = change.type === 'added' || !sameJson(referencesOf(change.old), referencesOf(object));
      if (leaving || (changed && referencesOf(object).length > 0)) this.queue.add(keyOf(item));
    }
    // An owner may wait for this one to go, or to block it no longer.
    for (const owner of referencesOf(object)) this.#enqueueWaiting(owner.uid);
    if (change.type === 'modified') for (const owner of referencesOf(change.old)) this.#enqueueWaiting(owner.uid);
  }

  #enqueueWaiting(uid: string): void {
    const item = this.#graph.byUid(uid);
    if (item !== undefined && waitsForDependents(item.object)) this.queue.add(keyOf(item));
  }

  async sync(key: string): Promise<void> {
    if (key === DISCOVERY) return await this.#discover();
    await this.#synced.promise;
    if (this.#signal?.aborted === true) return;
    this.#unresolved.delete(key);
    const item = this.#graph.get(key);
    if (item === undefined) return;
    const { object } = item;
    const dependents = this.#graph.dependents(object.metadata.uid);
    const objects = dependents.map((dependent) => dependent.object);
    if (object.metadata.deletionTimestamp !== undefined) {
      await this.#perform(item, decideLeaving(object, objects), dependents);
      return;
    }
    const owners = await Promise.all(
      referencesOf(object).map(async (reference): Promise<Owner> => {
        return { reference, state: await this.#ownerState(item, reference) };
      }),
    );
    if (owners.some(({ state }) => state === 'unknown')) this.#unresolved.add(key);
    await this.#perform(item, decideOwned(object, owners, objects), dependents);
  }

  async #discover(): Promise<void> {
    const { client, clock, log } = this.#context;
    const signal = this.#signal;
    if (signal === undefined) throw new Error('the garbage collector is not running');
    const discovery = await discover(client);
    for (const failure of discovery.failures) log(`${this.name}: failed to discover the kinds of ${failure}`);
    const isNew = this.#kinds.update(discovery, signal);
    if (isNew) {
      const late = clock.after(SYNC_LIMIT_MS, () => this.#synced.resolve());
      // A process that is to end would wait for the lists that had not come.
      signal.addEventListener('abort', () => late.cancel(), { once: true });
      if (signal.aborted) late.cancel();
      void this.#kinds.whenSynced().then(() => {
        late.cancel();
        this.#synced.resolve();
        for (const key of this.#unresolved) this.queue.add(key);
      });
    }
    this.queue.addAfter(DISCOVERY, DISCOVERY_EVERY_MS);
  }

  /** The list-watches are enough to find an owner; that it is gone only the server can say. */
  async #ownerState(item: Item, reference: OwnerReference): Promise<OwnerState> {
    const resource = this.#kinds.find(reference.apiVersion, reference.kind);
    if (resource === undefined) return 'unknown';
    const { uid } = reference;
    const { namespace } = item.object.metadata;
    if (resource.namespaced && (namespace === undefined || namespace === '')) {
      this.#reportNamespace(item, reference);
      return 'unknown';
    }
    const known = this.#graph.byUid(uid);
    if (known?.object.metadata.name === reference.name && this.#isAt(known, resource, namespace)) {
      return waitsForDependents(known.object) ? 'waiting' : 'there';
    }
    if (known !== undefined && resource.namespaced && known.object.metadata.namespace !== namespace) {
      this.#reportNamespace(item, reference);
    }
    const state = await this.#askServer(resource, reference, namespace);
    // It may go before a list shows it: then no event says that it is gone.
    if (state !== 'gone' && this.#graph.byUid(uid) === undefined) this.queue.addAfter(keyOf(item), UNSEEN_MS);
    return state;
  }

  #isAt({ kind, object }: Item, resource: DiscoveredResource, namespace: string | undefined): boolean {
    if (kind.plural !== resource.plural || kind.apiVersion !== resource.apiVersion) return false;
    return !resource.namespaced || object.metadata.namespace === namespace;
  }

  async #askServer(
    { apiVersion, plural, namespaced }: DiscoveredResource,
    { name, uid }: OwnerReference,
    namespace: string | undefined,
  ): Promise<OwnerState> {
    const place = `${namespaced ? namespace : ''}/${plural}/${name}/${uid}`;
    if (this.#goneOwners.has(place)) return 'gone';
    const path = resourcePath(apiVersion, plural, {
      name,
      ...(namespaced && namespace !== undefined ? { namespace } : {}),
    });
    try {
      const owner = await this.#context.client.get<Identified>(path, undefined, { metadataOnly: true });
      if (owner.metadata.uid === uid) return waitsForDependents(owner) ? 'waiting' : 'there';
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#goneOwners.add(place);
    const [oldest] = this.#goneOwners;
    if (this.#goneOwners.size > GONE_OWNERS && oldest !== undefined) this.#goneOwners.delete(oldest);
    return 'gone';
  }

  /** An owner of a namespace can own only what is in it. */
  #reportNamespace({ kind, object }: Item, { apiVersion, kind: ownerKind, name, uid }: OwnerReference): void {
    const { namespace = '' } = object.metadata;
    const owner = `[${apiVersion}/${ownerKind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
    const message = `ownerRef ${owner} does not exist in namespace "${namespace}"`;
    this.#context.recorder.event(subjectOf(kind, object), 'Warning', 'OwnerRefInvalidNamespace', message);
  }

  async #perform(item: Item, action: Action, dependents: readonly Item[]): Promise<void> {
    switch (action.kind) {
      case 'keep':
        return;
      case 'drop-owners':
        return await this.#dropOwners(item, new Set(action.uids));
      case 'delete':
        if (action.unblock) await this.#unblock(item);
        return await this.#delete(item, action.policy);
      case 'orphan-dependents': {
        const { uid } = item.object.metadata;
        await Promise.all(dependents.map((dependent) => this.#dropOwners(dependent, new Set([uid]))));
        return await this.#removeFinalizer(item, ORPHAN);
      }
      case 'wait':
        for (const dependent of dependents) {
          if (dependent.object.metadata.deletionTimestamp === undefined) this.queue.add(keyOf(dependent));
        }
        return;
      case 'remove-finalizer':
        return await this.#removeFinalizer(item, action.finalizer);
    }
  }

  /**
   * Changes metadata by what the server has now. A merge patch with the version that it was made from: custom resources have no
   * strategic one. `change` returns undefined where there is nothing to do.
   */
  async #patchMetadata(
    { kind, object }: Item,
    change: (metadata: Identified['metadata']) => object | undefined,
  ): Promise<void> {
    const { client } = this.#context;
    const path = pathOf(kind, object);
    try {
      const { metadata } = await client.get<Identified>(path, undefined, { metadataOnly: true });
      if (metadata.uid !== object.metadata.uid) return;
      const changed = change(metadata);
      if (changed === undefined) return;
      await client.patch(path, { metadata: { resourceVersion: metadata.resourceVersion, ...changed } }, 'merge');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #dropOwners(item: Item, uids: ReadonlySet<string>): Promise<void> {
    await this.#patchMetadata(item, ({ ownerReferences = [] }) => {
      const left = ownerReferences.filter(({ uid }) => !uids.has(uid));
      return left.length === ownerReferences.length ? undefined : { ownerReferences: left };
    });
  }

  async #unblock(item: Item): Promise<void> {
    await this.#patchMetadata(item, ({ ownerReferences = [] }) =>
      ownerReferences.some(({ blockOwnerDeletion }) => blockOwnerDeletion === true)
        ? { ownerReferences: ownerReferences.map((reference) => ({ ...reference, blockOwnerDeletion: false })) }
        : undefined,
    );
  }

  async #removeFinalizer(item: Item, finalizer: string): Promise<void> {
    await this.#patchMetadata(item, ({ finalizers = [] }) =>
      finalizers.includes(finalizer) ? { finalizers: finalizers.filter((each) => each !== finalizer) } : undefined,
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
}
