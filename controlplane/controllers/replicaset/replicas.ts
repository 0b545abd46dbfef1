// As many pods as an object says: what the controllers of ReplicaSets and ReplicationControllers have in common, which is all but
// the kind and its selector. ranking.ts and status.ts decide; expectations keep a cache that lags from making it create or delete
// twice.

import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { isNotFound } from '../../../client/errors.ts';
import { objectKey, type ReadableStore } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claim } from '../shared/claim.ts';
import { Expectations } from '../shared/expectations.ts';
import { followPods } from '../shared/follow-pods.ts';
import { pathOf, type Replicated, replicasOf, type WorkloadKind } from '../shared/objects.ts';
import { controllerOf, OwnerIndex, selects } from '../shared/owners.ts';
import { BURST, PodBatches } from '../shared/pod-batches.ts';
import { isActive, nextAvailableInMs, POD } from '../shared/pods.ts';
import { choosePodsToDelete } from './ranking.ts';
import { replicaSetStatus, sameStatus } from './status.ts';

export interface ReplicatedKind<T> {
  readonly kind: WorkloadKind;
  selectorOf(object: T): LabelSelector | undefined;
}

/** Keys are those of the replicated objects. */
export class ReplicasController<T extends Replicated> implements Controller {
  readonly name: string;
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #kind: ReplicatedKind<T>;
  readonly #store: ReadableStore<T>;
  readonly #allPods: ReadableStore<Pod>;
  readonly #pods: OwnerIndex<Pod>;
  readonly #sets: OwnerIndex<T>;
  readonly #expectations: Expectations;
  readonly #batches: PodBatches;

  constructor(context: ControllerContext, pods: ReadableStore<Pod>, store: ReadableStore<T>, kind: ReplicatedKind<T>) {
    this.name = kind.kind.kind.toLowerCase();
    this.#context = context;
    this.#kind = kind;
    this.#store = store;
    this.#allPods = pods;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#expectations = new Expectations(context.clock);
    this.#batches = new PodBatches(context, this.#expectations);
    this.#pods = new OwnerIndex(pods);
    this.#sets = new OwnerIndex(store);
    store.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.#expectations.forget(object.metadata.uid);
        this.queue.add(objectKey(object));
      }
    });
    followPods(pods, {
      owners: store,
      selectorOf: (set) => kind.selectorOf(set),
      enqueue: (key) => this.queue.add(key),
      expectations: this.#expectations,
    });
  }

  async sync(key: string): Promise<void> {
    const set = this.#store.get(key);
    if (set === undefined) return;
    const { kind } = this.#kind;
    const unsatisfiedMs = this.#expectations.unsatisfiedForMs(set.metadata.uid);
    const mayAct = unsatisfiedMs === undefined;
    if (!mayAct) this.queue.addAfter(key, unsatisfiedMs);
    const candidates = this.#pods.candidates(set).filter(isActive);
    const owner = { kind, object: set, selector: this.#kind.selectorOf(set) };
    const active = await claim(this.#context, owner, POD, candidates);
    const leaving = set.metadata.deletionTimestamp !== undefined;
    const failure = mayAct && !leaving ? await this.#manage(set, active) : undefined;
    const now = this.#context.clock.now();
    const status = replicaSetStatus(set, active, failure?.message, now);
    if (!sameStatus(set.status, status)) {
      const body = { ...set, apiVersion: kind.apiVersion, kind: kind.kind, status };
      await this.#context.client.replace(pathOf(kind, set, 'status'), body).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
    if (failure !== undefined) throw failure;
    const wait = nextAvailableInMs(active, set.spec.minReadySeconds ?? 0, now);
    if (wait !== undefined) this.queue.addAfter(key, wait);
  }

  /** Creates or deletes what is needed; returns the first failure. */
  async #manage(set: T, active: readonly Pod[]): Promise<Error | undefined> {
    const { kind } = this.#kind;
    const missing = replicasOf(set) - active.length;
    const { template = {} } = set.spec;
    const templates = Array.from({ length: Math.min(Math.max(0, missing), BURST) }, () => template);
    const now = this.#context.clock.now();
    const surplus = missing < 0 ? choosePodsToDelete(active, this.#relatedPods(set), -missing, now) : [];
    return await this.#batches.apply({ kind, object: set }, templates, surplus);
  }

  /** Pods of all sets with the same controller, as their selectors find them. */
  #relatedPods(set: T): readonly Pod[] {
    const owner = controllerOf(set);
    if (owner === undefined) return [];
    const selectors = this.#sets.ownedBy(owner.uid).map((each) => this.#kind.selectorOf(each));
    const { namespace } = set.metadata;
    return this.#allPods
      .list()
      .filter((pod) => pod.metadata.namespace === namespace && selectors.some((selector) => selects(selector, pod)));
  }
}
