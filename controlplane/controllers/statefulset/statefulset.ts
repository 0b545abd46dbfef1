// The StatefulSet controller: pods with names, and volumes that stay with the name. plan.ts decides, claims.ts and identity.ts say what
// the objects are like, status.ts what is reported; this reads and writes. At most one pod of a name is the server's promise: a pod
// that is Terminating on a node that is lost keeps its name until it is gone.

import { isAlreadyExists, isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { aggregate } from '../../../lib/aggregate.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claim } from '../shared/claim.ts';
import { followPods } from '../shared/follow-pods.ts';
import {
  CLAIM,
  CONTROLLER_REVISION,
  type ControllerRevision,
  pathOf,
  STATEFUL_SET,
  type StatefulSet,
  type StatefulSetStatus,
  subjectOf,
} from '../shared/objects.ts';
import { OwnerIndex } from '../shared/owners.ts';
import { nextAvailableInMs, POD } from '../shared/pods.ts';
import { deleteRevisions, writeRevision } from '../shared/revision-control.ts';
import { byNumber, historyOf, revisionsToDelete, templateOf } from '../shared/revisions.ts';
import { slowStart } from '../shared/slow-start.ts';
import type { ClaimWork, OwnerUpdate } from './claims.ts';
import { ordinalOf, podRevision } from './identity.ts';
import { type Facts, type Plan, plan, type Step, type Unit } from './plan.ts';
import { sameStatus, statefulSetStatus } from './status.ts';

const HASH_LABEL = 'controller.kubernetes.io/hash';

type Needed = Pick<Informers, 'pods' | 'statefulSets' | 'controllerRevisions' | 'persistentVolumeClaims'>;
type Verb = 'create' | 'update' | 'delete';

const REASONS: Readonly<Record<Verb, string>> = { create: 'Create', update: 'Update', delete: 'Delete' };

/** Keys are those of stateful sets. */
export class StatefulSetController implements Controller {
  readonly name = 'statefulset';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #pods: OwnerIndex<Pod>;
  readonly #revisions: OwnerIndex<ControllerRevision>;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#pods = new OwnerIndex(informers.pods);
    this.#revisions = new OwnerIndex(informers.controllerRevisions);
    informers.statefulSets.onChange((changes) => {
      for (const { object } of changes) this.queue.add(objectKey(object));
    });
    followPods(informers.pods, {
      owners: informers.statefulSets,
      selectorOf: ({ spec }) => spec.selector,
      enqueue: (key) => this.queue.add(key),
    });
    // A pod may wait for a claim of the one before it to go.
    informers.persistentVolumeClaims.onChange((changes) => {
      for (const { type, object } of changes) if (type === 'removed') this.#claimRemoved(object.metadata);
    });
  }

  #claimRemoved({ name, namespace }: { readonly name: string; readonly namespace?: string }): void {
    for (const set of this.#informers.statefulSets.list()) {
      const { metadata, spec } = set;
      if (metadata.namespace !== namespace) continue;
      const templates = spec.volumeClaimTemplates ?? [];
      if (templates.some((template) => name.startsWith(`${template.metadata?.name}-${metadata.name}-`))) {
        this.queue.add(objectKey(set));
      }
    }
  }

  async sync(key: string): Promise<void> {
    const set = this.#informers.statefulSets.get(key);
    if (set === undefined) return;
    const owner = { kind: STATEFUL_SET, object: set, selector: set.spec.selector };
    const candidates = this.#revisions.candidates(set);
    const revisions = await claim(this.#context, owner, CONTROLLER_REVISION, candidates);
    const accepts = (pod: Parameters<typeof ordinalOf>[1]): boolean => ordinalOf(set, pod) !== undefined;
    const pods = await claim(this.#context, { ...owner, accepts }, POD, this.#pods.candidates(set));
    if (set.metadata.deletionTimestamp !== undefined) return await this.#syncLeaving(set, pods);
    const { facts, collisionCount, old } = await this.#versions(set, pods, revisions);
    const next = plan(facts);
    const failure = await this.#perform(set, next);
    const updating = failure === undefined ? next.updating : undefined;
    await this.#writeStatus(set, statefulSetStatus(facts, updating, collisionCount));
    await this.#truncateHistory(facts, old);
    if (failure !== undefined) throw failure;
    const wait = nextAvailableInMs(pods, set.spec.minReadySeconds ?? 0, facts.now);
    if (wait !== undefined) this.queue.addAfter(key, wait);
  }

  /** Its pods and revisions go with it, or stay without it; only what is left of them is reported. */
  async #syncLeaving(set: StatefulSet, pods: readonly Pod[]): Promise<void> {
    const { currentRevision = '', updateRevision = '', collisionCount = 0 } = set.status ?? {};
    const { template } = set.spec;
    const facts: Facts = {
      ...this.#facts(set, pods),
      current: { name: currentRevision, template },
      update: { name: updateRevision, template },
    };
    await this.#writeStatus(set, statefulSetStatus(facts, undefined, collisionCount));
  }

  #facts(set: StatefulSet, pods: readonly Pod[]): Omit<Facts, 'current' | 'update'> {
    const { namespace } = set.metadata;
    const findClaim = (name: string) => this.#informers.persistentVolumeClaims.get(`${namespace}/${name}`);
    return { set, pods, findClaim, now: this.#context.clock.now() };
  }

  /** The update version is that of the set's template; the current one that of the status, as long as it is there. */
  async #versions(set: StatefulSet, pods: readonly Pod[], revisions: readonly ControllerRevision[]) {
    const { template } = set.spec;
    const { currentRevision, collisionCount = 0 } = set.status ?? {};
    const { step, old, duplicates } = historyOf(revisions, template);
    const revised = { kind: STATEFUL_SET, object: set, template, hashLabel: HASH_LABEL, collisions: collisionCount };
    const written = await writeRevision(this.#context.client, revised, step);
    const update = { name: written.revision.metadata.name, template };
    const known = revisions.find(({ metadata }) => metadata.name === currentRevision);
    const current = known === undefined ? update : { name: known.metadata.name, template: templateOf(known) };
    const facts: Facts = { ...this.#facts(set, pods), current, update };
    return { facts, collisionCount: written.collisions ?? 0, old: byNumber([...old, ...duplicates]) };
  }

  /** Everything of the plan that can be done; returns the first failure, with which it ends. */
  async #perform(set: StatefulSet, { ordered, phases }: Plan): Promise<Error | undefined> {
    const performUnit = async (unit: Unit = []): Promise<void> => {
      for (const step of unit) await this.#performStep(set, step);
    };
    for (const units of phases) {
      try {
        if (ordered) for (const unit of units) await performUnit(unit);
        else {
          const { error } = await slowStart(units.length, (index) => performUnit(units[index]));
          if (error !== undefined) throw error;
        }
      } catch (error) {
        return error instanceof Error ? error : new Error(errorMessage(error));
      }
    }
    return undefined;
  }

  async #performStep(set: StatefulSet, step: Step): Promise<void> {
    switch (step.kind) {
      case 'create':
        return await this.#create(set, step);
      case 'claims':
        await this.#createClaims(set, step.pod, step.claims);
        return await this.#writeOwners(step.owners);
      case 'repair':
        return await this.#recorded(set, step.pod, 'update', async () => {
          await this.#createClaims(set, step.pod, step.claims);
          await this.#writeOwners(step.owners);
          if (step.body === undefined) return;
          const body = { ...step.body, apiVersion: POD.apiVersion, kind: POD.kind };
          await this.#context.client.replace(pathOf(POD, step.pod), body);
        });
      case 'owners':
        return await this.#writeOwners(step.owners);
      case 'delete':
        return await this.#recorded(set, step.pod, 'delete', async () => {
          // Of the one that was decided on, and no other that has its name by now.
          const preconditions = { uid: step.pod.metadata.uid };
          await this.#context.client.delete(pathOf(POD, step.pod), { preconditions });
        });
    }
  }

  #create(set: StatefulSet, { pod, claims, owners }: Extract<Step, { kind: 'create' }>): Promise<void> {
    const { namespace } = set.metadata;
    return this.#recorded(set, pod, 'create', async () => {
      await this.#createClaims(set, pod, claims);
      await this.#context.client.create(resourcePath('v1', 'pods', { namespace }), pod);
      await this.#writeOwners(owners);
    });
  }

  /** The names of claims are taken for good: one that is there already, of whatever origin, is the pod's. */
  async #createClaims(set: StatefulSet, pod: { metadata: { name: string } }, claims: ClaimWork): Promise<void> {
    const { client, recorder } = this.#context;
    const path = resourcePath('v1', CLAIM.plural, { namespace: set.metadata.namespace });
    const subject = subjectOf(STATEFUL_SET, set);
    const problems = claims.leaving.map((name) => `pvc ${name} is being deleted`);
    for (const body of claims.missing) {
      const { name } = body.metadata;
      const what = `Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`;
      try {
        await client.create(path, body);
        recorder.event(subject, 'Normal', 'SuccessfulCreate', `create Claim ${name} ${what} success`);
      } catch (error) {
        problems.push(`failed to create PVC ${name}: ${errorMessage(error)}`);
        if (isAlreadyExists(error)) continue;
        const message = `create Claim ${name} for ${what} failed error: ${errorMessage(error)}`;
        recorder.event(subject, 'Warning', 'FailedCreate', message);
      }
    }
    if (problems.length > 0) throw new Error(aggregate(problems));
  }

  async #writeOwners(updates: readonly OwnerUpdate[]): Promise<void> {
    const { apiVersion, kind } = CLAIM;
    for (const { claim: known, ownerReferences } of updates) {
      const body = { ...known, apiVersion, kind, metadata: { ...known.metadata, ownerReferences } };
      await this.#context.client.replace(pathOf(CLAIM, known), body).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
  }

  /**
   * With an event of how it went. There is none where the cache lagged: a pod of the name exists already, or is another by
   * now, or has gone.
   */
  async #recorded(
    set: StatefulSet,
    pod: { metadata: { name: string } },
    verb: Verb,
    act: () => Promise<void>,
  ): Promise<void> {
    const { recorder } = this.#context;
    const subject = subjectOf(STATEFUL_SET, set);
    const what = `${verb} Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`;
    try {
      await act();
    } catch (error) {
      const lagged = verb === 'create' ? isAlreadyExists(error) : isConflict(error) || isNotFound(error);
      const message = `${what} failed error: ${errorMessage(error)}`;
      if (!lagged) recorder.event(subject, 'Warning', `Failed${REASONS[verb]}`, message);
      throw error;
    }
    recorder.event(subject, 'Normal', `Successful${REASONS[verb]}`, `${what} successful`);
  }

  async #writeStatus(set: StatefulSet, status: StatefulSetStatus): Promise<void> {
    if (sameStatus(set.status, status)) return;
    const body = { ...set, apiVersion: STATEFUL_SET.apiVersion, kind: STATEFUL_SET.kind, status };
    await this.#context.client.replace(pathOf(STATEFUL_SET, set, 'status'), body).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  /** Beyond revisionHistoryLimit, of those that neither the set nor a pod has. */
  async #truncateHistory({ set, pods, current, update }: Facts, old: readonly ControllerRevision[]): Promise<void> {
    const { revisionHistoryLimit: limit = 10 } = set.spec;
    if (limit < 0) return;
    const live = new Set([current.name, update.name, ...pods.map(podRevision)]);
    const isLive = ({ metadata }: ControllerRevision): boolean => live.has(metadata.name);
    const surplus = old.filter((revision) => !isLive(revision)).length - limit;
    await deleteRevisions(this.#context.client, revisionsToDelete(old, isLive, surplus));
  }
}
