// The ReplicaSet controller: as many pods as the set says. ranking.ts and status.ts decide; expectations keep a cache that
// lags from making it create or delete twice.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claim } from '../shared/claim.ts';
import { Expectations } from '../shared/expectations.ts';
import { isNamespaceTerminating } from '../shared/namespace-terminating.ts';
import { controllerReference, pathOf, REPLICA_SET, type ReplicaSet, replicasOf, subjectOf } from '../shared/objects.ts';
import { controllerOf, OwnerIndex, selects } from '../shared/owners.ts';
import { isActive, POD, podFromTemplate } from '../shared/pods.ts';
import { slowStart } from '../shared/slow-start.ts';
import { choosePodsToDelete } from './ranking.ts';
import { nextAvailabilityMs, replicaSetStatus, sameStatus } from './status.ts';

/** Pods that one sync creates or deletes at most; the next one follows when they are seen. */
export const BURST = 500;

type Needed = Pick<Informers, 'pods' | 'replicaSets'>;

/** Keys are those of replica sets. */
export class ReplicaSetController implements Controller {
  readonly name = 'replicaset';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #pods: OwnerIndex<Pod>;
  readonly #sets: OwnerIndex<ReplicaSet>;
  readonly #expectations: Expectations;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#expectations = new Expectations(context.clock);
    this.#pods = new OwnerIndex(informers.pods);
    this.#sets = new OwnerIndex(informers.replicaSets);
    informers.replicaSets.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.#expectations.forget(object.metadata.uid);
        this.queue.add(objectKey(object));
      }
    });
    informers.pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
  }

  #podChanged(change: Change<Pod>): void {
    const { object: pod } = change;
    const owner = controllerOf(pod);
    if (change.type === 'modified') {
      const before = controllerOf(change.old);
      if (before !== undefined && before.uid !== owner?.uid) this.#enqueueOwner(pod, before);
    }
    if (owner !== undefined) {
      const gone = change.type === 'removed' || pod.metadata.deletionTimestamp !== undefined;
      if (gone) this.#expectations.observedDeletion(owner.uid, pod.metadata.uid);
      else if (change.type === 'added') this.#expectations.observedCreation(owner.uid, pod.metadata.uid);
      this.#enqueueOwner(pod, owner);
      return;
    }
    if (change.type === 'removed') return;
    // An orphan: every set that selects it may adopt it.
    for (const set of this.#informers.replicaSets.list()) {
      const same = set.metadata.namespace === pod.metadata.namespace;
      if (same && selects(set.spec.selector, pod)) this.queue.add(objectKey(set));
    }
  }

  #enqueueOwner(pod: Pod, { name, uid }: OwnerReference): void {
    const key = `${pod.metadata.namespace}/${name}`;
    if (this.#informers.replicaSets.get(key)?.metadata.uid === uid) this.queue.add(key);
  }

  async sync(key: string): Promise<void> {
    const set = this.#informers.replicaSets.get(key);
    if (set === undefined) return;
    const { clock } = this.#context;
    const mayAct = this.#expectations.satisfied(set.metadata.uid);
    const candidates = this.#pods.candidates(set).filter(isActive);
    const owner = { kind: REPLICA_SET, object: set, selector: set.spec.selector };
    const active = await claim(this.#context, owner, POD, candidates);
    const leaving = set.metadata.deletionTimestamp !== undefined;
    const failure = mayAct && !leaving ? await this.#manage(set, active) : undefined;
    const now = clock.now();
    const status = replicaSetStatus(set, active, failure?.message, now);
    if (!sameStatus(set.status, status)) {
      const body = { ...set, apiVersion: REPLICA_SET.apiVersion, kind: REPLICA_SET.kind, status };
      await this.#context.client.replace(pathOf(REPLICA_SET, set, 'status'), body).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
    if (failure !== undefined) throw failure;
    const wait = nextAvailabilityMs(set, active, now);
    if (wait !== undefined) this.queue.addAfter(key, wait);
  }

  /** Creates or deletes what is needed; returns the first failure. */
  async #manage(set: ReplicaSet, active: readonly Pod[]): Promise<Error | undefined> {
    const missing = replicasOf(set) - active.length;
    if (missing > 0) return await this.#createPods(set, Math.min(missing, BURST));
    if (missing < 0) return await this.#deletePods(set, active, Math.min(-missing, BURST));
    return undefined;
  }

  async #createPods(set: ReplicaSet, count: number): Promise<Error | undefined> {
    const { uid } = set.metadata;
    this.#expectations.expectCreations(uid, count);
    const { succeeded, error } = await slowStart(count, () => this.#createPod(set));
    this.#expectations.notCreated(uid, count - succeeded);
    return error === undefined ? undefined : asError(error);
  }

  async #createPod(set: ReplicaSet): Promise<void> {
    const { client, recorder } = this.#context;
    const { template } = set.spec;
    const subject = subjectOf(REPLICA_SET, set);
    const body = podFromTemplate(template ?? {}, controllerReference(REPLICA_SET, set));
    const path = resourcePath('v1', 'pods', { namespace: set.metadata.namespace });
    try {
      const pod = await client.create<Pod>(path, body);
      this.#expectations.created(set.metadata.uid, pod.metadata.uid);
      recorder.event(subject, 'Normal', 'SuccessfulCreate', `Created pod: ${pod.metadata.name}`);
    } catch (error) {
      if (isNamespaceTerminating(error)) {
        // Nothing can be created there any more; the set goes with its namespace.
        this.#expectations.notCreated(set.metadata.uid, 1);
        return;
      }
      recorder.event(subject, 'Warning', 'FailedCreate', `Error creating: ${errorMessage(error)}`);
      throw error;
    }
  }

  async #deletePods(set: ReplicaSet, active: readonly Pod[], count: number): Promise<Error | undefined> {
    const { uid } = set.metadata;
    const { client, clock, recorder } = this.#context;
    const chosen = choosePodsToDelete(active, this.#relatedPods(set), count, clock.now());
    this.#expectations.expectDeletions(
      uid,
      chosen.map((pod) => pod.metadata.uid),
    );
    const subject = subjectOf(REPLICA_SET, set);
    const results = await Promise.all(
      chosen.map(async (pod): Promise<Error | undefined> => {
        try {
          await client.delete(pathOf(POD, pod), { preconditions: { uid: pod.metadata.uid } });
          recorder.event(subject, 'Normal', 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`);
          return undefined;
        } catch (error) {
          this.#expectations.observedDeletion(uid, pod.metadata.uid);
          if (isNotFound(error)) return undefined;
          recorder.event(subject, 'Warning', 'FailedDelete', `Error deleting: ${errorMessage(error)}`);
          return new Error(`unable to delete pods: ${errorMessage(error)}`, { cause: error });
        }
      }),
    );
    return results.find((result) => result !== undefined);
  }

  /** Pods of all sets with the same controller, as their selectors find them. */
  #relatedPods(set: ReplicaSet): readonly Pod[] {
    const owner = controllerOf(set);
    if (owner === undefined) return [];
    const sets = this.#sets.ownedBy(owner.uid);
    const { namespace } = set.metadata;
    return this.#informers.pods
      .list()
      .filter((pod) => pod.metadata.namespace === namespace && sets.some(({ spec }) => selects(spec.selector, pod)));
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(errorMessage(error));
}
