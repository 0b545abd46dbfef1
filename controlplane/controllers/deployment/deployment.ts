// The Deployment controller: one replica set for each template, and their sizes step by step. scaling.ts, sets.ts and
// status.ts decide. What a sync changes of the deployment itself is written once, at its end.

import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claim } from '../shared/claim.ts';
import { EXPECTATION_MS } from '../shared/expectations.ts';
import {
  DEPLOYMENT,
  type Deployment,
  type DeploymentCondition,
  type DeploymentStatus,
  pathOf,
  REPLICA_SET,
  type ReplicaSet,
  replicasOf,
  subjectOf,
} from '../shared/objects.ts';
import { controllerOf, OwnerIndex, selects } from '../shared/owners.ts';
import { PendingWrites } from '../shared/pending-writes.ts';
import { newSetAnnotations, nextRevision, REVISION, revisionOf, sizeAnnotations } from './annotations.ts';
import { actualReplicas, isRolling } from './counts.ts';
import { currentSetSize, isScalingEvent, rollingStep, type Scaling, scaleAll } from './scaling.ts';
import { activeSets, newSet, type Split, sameTemplate, setsToDelete, splitSets } from './sets.ts';
import {
  deploymentStatus,
  isComplete,
  nextCheckMs,
  rolloutStatus,
  sameStatus,
  withFoundSet,
  withPause,
  withProgress,
} from './status.ts';

type Needed = Pick<Informers, 'pods' | 'replicaSets' | 'deployments'>;

/** One deployment during a sync: what is known, and what will be written of it. */
interface Draft {
  readonly deployment: Deployment;
  split: Split;
  conditions: readonly DeploymentCondition[];
  /** Of the current set; undefined while there is none. */
  revision: bigint | undefined;
}

/** Keys are those of deployments. */
export class DeploymentController implements Controller {
  readonly name = 'deployment';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #sets: OwnerIndex<ReplicaSet>;
  readonly #pods: OwnerIndex<Pod>;
  /** Replica sets as this process left them, until the cache shows them so. */
  readonly #written: PendingWrites<ReplicaSet>;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#sets = new OwnerIndex(informers.replicaSets);
    this.#pods = new OwnerIndex(informers.pods);
    this.#written = new PendingWrites(informers.replicaSets, context.clock);
    informers.deployments.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.#written.forget(objectKey(object));
        this.queue.add(objectKey(object));
      }
    });
    informers.replicaSets.onChange((changes) => {
      for (const change of changes) {
        const released = change.type === 'modified' && !sameOwner(change.old, change.object);
        if (released) this.#enqueueOwner(change.old);
        if (change.type === 'removed') this.#setRemoved(change.object);
        this.#enqueueOwner(change.object);
      }
    });
    // Recreate waits for the last pod of the old template, whose end changes no replica set.
    informers.pods.onChange((changes) => {
      for (const { type, object } of changes) if (type === 'removed') this.#podRemoved(object);
    });
  }

  #enqueueOwner(set: ReplicaSet): void {
    const owner = controllerOf(set);
    if (owner !== undefined) {
      if (owner.kind === DEPLOYMENT.kind) this.queue.add(`${set.metadata.namespace}/${owner.name}`);
      return;
    }
    for (const deployment of this.#informers.deployments.list()) {
      const same = deployment.metadata.namespace === set.metadata.namespace;
      if (same && selects(deployment.spec.selector, set)) this.queue.add(objectKey(deployment));
    }
  }

  /** What was written of it is never shown. */
  #setRemoved({ metadata }: ReplicaSet): void {
    for (const { kind, name } of metadata.ownerReferences ?? []) {
      if (kind === DEPLOYMENT.kind) this.#written.forget(`${metadata.namespace}/${name}`);
    }
  }

  #podRemoved(pod: Pod): void {
    const owner = controllerOf(pod);
    if (owner?.kind !== REPLICA_SET.kind) return;
    const set = this.#informers.replicaSets.get(`${pod.metadata.namespace}/${owner.name}`);
    const deployment = set === undefined ? undefined : controllerOf(set);
    if (deployment === undefined) return;
    const key = `${pod.metadata.namespace}/${deployment.name}`;
    const known = this.#informers.deployments.get(key);
    if (known !== undefined && !isRolling(known)) this.queue.add(key);
  }

  async sync(key: string): Promise<void> {
    const deployment = this.#informers.deployments.get(key);
    if (deployment === undefined) return;
    // By sizes that are older than those it has given them, sets would come to more pods than the strategy allows, or to fewer.
    if (!this.#written.settled(key)) {
      this.queue.addAfter(key, EXPECTATION_MS);
      return;
    }
    const owner = { kind: DEPLOYMENT, object: deployment, selector: deployment.spec.selector };
    const sets = await claim(this.#context, owner, REPLICA_SET, this.#sets.candidates(deployment));
    const draft: Draft = {
      deployment,
      split: splitSets(deployment, sets),
      conditions: deployment.status?.conditions ?? [],
      revision: undefined,
    };
    const leaving = deployment.metadata.deletionTimestamp !== undefined;
    if (!leaving) draft.conditions = withPause(deployment, draft.conditions, this.#context.clock.now());
    await this.#syncRevision(draft);
    await this.#write(draft, leaving ? this.#plainStatus(draft) : await this.#act(draft));
  }

  /** Scales, creates and deletes replica sets; the status to report. */
  async #act(draft: Draft): Promise<DeploymentStatus> {
    const { deployment } = draft;
    const paused = deployment.spec.paused === true;
    const scalings = paused || isScalingEvent(deployment, draft.split) ? scaleAll(deployment, draft.split) : [];
    // Sets that it has adopted may be of a size that no scaling changes: then the rollout has to.
    if (paused || scalings.length > 0) {
      await this.#scale(deployment, scalings);
      if (paused) await this.#cleanUp(draft);
      return this.#plainStatus(draft);
    }
    if (isRolling(deployment)) await this.#roll(draft);
    else await this.#recreate(draft);
    return rolloutStatus(deployment, draft.split, draft.conditions, this.#context.clock.now());
  }

  #plainStatus({ deployment, split, conditions }: Draft): DeploymentStatus {
    return deploymentStatus(deployment, split, conditions, this.#context.clock.now());
  }

  async #roll(draft: Draft): Promise<void> {
    const { deployment } = draft;
    const current = draft.split.current ?? (await this.#createSet(draft));
    const step = rollingStep(deployment, current, draft.split.old);
    await this.#scale(deployment, step);
    if (step.length === 0 && isComplete(deployment, deployment.status)) await this.#cleanUp(draft);
  }

  async #recreate(draft: Draft): Promise<void> {
    const { deployment, split } = draft;
    const down = activeSets(split.old).map((set) => ({ set, replicas: 0 }));
    await this.#scale(deployment, down);
    if (down.length > 0 || this.#oldPodsRun(split)) return;
    const current = split.current ?? (await this.#createSet(draft));
    const wanted = replicasOf(deployment);
    if (replicasOf(current) !== wanted) await this.#scale(deployment, [{ set: current, replicas: wanted }]);
    if (isComplete(deployment, deployment.status)) await this.#cleanUp(draft);
  }

  /** A pod on its way out still runs. */
  #oldPodsRun({ old }: Split): boolean {
    if (actualReplicas(old) > 0) return true;
    const finished = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';
    return old.some(({ metadata }) => this.#pods.ownedBy(metadata.uid).some((pod) => !finished(pod)));
  }

  /** The annotations of the set that has the template now: they make a rollback the newest revision. */
  async #syncRevision(draft: Draft): Promise<void> {
    const { deployment, split } = draft;
    if (split.current === undefined) return;
    let { current } = split;
    const known = current.metadata.annotations ?? {};
    const annotations = newSetAnnotations(deployment, known, nextRevision(split.old));
    const { minReadySeconds = 0 } = deployment.spec;
    if (!sameJson(annotations, known) || (current.spec.minReadySeconds ?? 0) !== minReadySeconds) {
      current = await this.#replaceSet(draft, current, annotations, { minReadySeconds });
      draft.split = { ...split, current };
    }
    draft.revision = revisionOf(current);
    draft.conditions = withFoundSet(deployment, draft.conditions, current.metadata.name, this.#context.clock.now());
  }

  async #replaceSet(
    { deployment }: Pick<Draft, 'deployment'>,
    set: ReplicaSet,
    annotations: Readonly<Record<string, string>>,
    spec: Partial<ReplicaSet['spec']>,
  ): Promise<ReplicaSet> {
    const written = await this.#context.client.replace<ReplicaSet>(pathOf(REPLICA_SET, set), {
      ...set,
      apiVersion: REPLICA_SET.apiVersion,
      kind: REPLICA_SET.kind,
      metadata: { ...set.metadata, annotations },
      spec: { ...set.spec, ...spec },
    });
    this.#written.written(objectKey(deployment), written);
    return written;
  }

  async #createSet(draft: Draft): Promise<ReplicaSet> {
    const { deployment, split } = draft;
    const { client, clock, recorder } = this.#context;
    const revision = nextRevision(split.old);
    const body = newSet(deployment, currentSetSize(deployment, split.old, 0), revision);
    const { name, namespace } = body.metadata;
    let created: ReplicaSet;
    try {
      created = await client.create<ReplicaSet>(resourcePath('apps/v1', 'replicasets', { namespace }), body);
      const { replicas } = body.spec;
      if (replicas > 0) this.#scaled(deployment, name, 0, replicas);
      draft.conditions = withProgress(
        deployment,
        draft.conditions,
        { status: 'True', reason: 'NewReplicaSetCreated', message: `Created new replica set "${name}"` },
        clock.now(),
      );
    } catch (error) {
      if (isAlreadyExists(error)) created = await this.#existingSet(draft, namespace, name, error);
      else {
        const reason = 'ReplicaSetCreateError';
        const message = `Failed to create new replica set "${name}": ${errorMessage(error)}`;
        recorder.event(subjectOf(DEPLOYMENT, deployment), 'Warning', reason, message);
        draft.conditions = withProgress(
          deployment,
          draft.conditions,
          { status: 'False', reason, message },
          clock.now(),
        );
        await this.#write(draft, { ...deployment.status, conditions: [...draft.conditions] });
        throw error;
      }
    }
    this.#written.written(objectKey(deployment), created);
    draft.revision = revision;
    draft.split = { ...split, current: created };
    return created;
  }

  /** The cache did not show the set yet, or another template has the same hash: then the next name is another. */
  async #existingSet(draft: Draft, namespace: string, name: string, error: unknown): Promise<ReplicaSet> {
    const { deployment } = draft;
    const set = await this.#context.client.get<ReplicaSet>(resourcePath('apps/v1', 'replicasets', { namespace, name }));
    const own = controllerOf(set)?.uid === deployment.metadata.uid;
    if (own && sameTemplate(set.spec.template, deployment.spec.template)) return set;
    const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
    await this.#write(draft, { ...deployment.status, collisionCount, conditions: [...draft.conditions] });
    throw error;
  }

  async #scale(deployment: Deployment, scalings: readonly Scaling[]): Promise<void> {
    for (const { set, replicas } of scalings) {
      const known = set.metadata.annotations ?? {};
      const annotations = { ...known, ...sizeAnnotations(deployment) };
      const before = replicasOf(set);
      if (before === replicas && sameJson(known, annotations)) continue;
      await this.#replaceSet({ deployment }, set, annotations, { replicas });
      if (before !== replicas) this.#scaled(deployment, set.metadata.name, before, replicas);
    }
  }

  #scaled(deployment: Deployment, name: string, from: number, to: number): void {
    const message = `Scaled ${from < to ? 'up' : 'down'} replica set ${name} from ${from} to ${to}`;
    this.#context.recorder.event(subjectOf(DEPLOYMENT, deployment), 'Normal', 'ScalingReplicaSet', message);
  }

  async #cleanUp({ deployment, split }: Draft): Promise<void> {
    for (const set of setsToDelete(deployment, split.old)) {
      const preconditions = { uid: set.metadata.uid };
      await this.#context.client.delete(pathOf(REPLICA_SET, set), { preconditions }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
  }

  /** Status and revision in one write, where either has changed. */
  async #write({ deployment, revision }: Draft, status: DeploymentStatus): Promise<void> {
    const { client, clock } = this.#context;
    const known = deployment.metadata.annotations ?? {};
    const annotations = revision === undefined ? known : { ...known, [REVISION]: String(revision) };
    if (!sameStatus(deployment.status, status) || !sameJson(known, annotations)) {
      await client
        .replace(pathOf(DEPLOYMENT, deployment, 'status'), {
          ...deployment,
          apiVersion: DEPLOYMENT.apiVersion,
          kind: DEPLOYMENT.kind,
          metadata: { ...deployment.metadata, annotations },
          status,
        })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
    }
    const wait = nextCheckMs(deployment, status, clock.now());
    if (wait !== undefined) this.queue.addAfter(objectKey(deployment), wait);
  }
}

function sameOwner(a: ReplicaSet, b: ReplicaSet): boolean {
  return controllerOf(a)?.uid === controllerOf(b)?.uid;
}
