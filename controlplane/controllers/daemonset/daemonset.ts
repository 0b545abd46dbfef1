// The DaemonSet controller: a pod on each node that it is for. placement.ts, manage.ts and rolling.ts decide, status.ts says what is
// reported; this reads and writes. Pods are bound by the scheduler.

import { isNotFound } from '../../../client/errors.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { type BackoffEntry, type BackoffPolicy, backoffRemaining, nextBackoff } from '../../../lib/backoff.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claim } from '../shared/claim.ts';
import { Expectations } from '../shared/expectations.ts';
import { followPods } from '../shared/follow-pods.ts';
import {
  CONTROLLER_REVISION,
  type ControllerRevision,
  DAEMON_SET,
  type DaemonSet,
  pathOf,
  subjectOf,
} from '../shared/objects.ts';
import { OwnerIndex } from '../shared/owners.ts';
import { PodBatches } from '../shared/pod-batches.ts';
import { nextAvailableInMs, POD } from '../shared/pods.ts';
import { deleteRevisions, writeRevision } from '../shared/revision-control.ts';
import { historyOf, REVISION_HASH, revisionsToDelete } from '../shared/revisions.ts';
import { type Changes, type Facts, type Finished, manage, podsByNode } from './manage.ts';
import { placementOn, templateFor } from './placement.ts';
import { rollingStep } from './rolling.ts';
import { daemonSetStatus, sameStatus } from './status.ts';

/** For pods that fail again and again on a node, as when its kubelet rejects them. */
const FAILED_PODS: BackoffPolicy = { initialMs: 1000, maxMs: 900_000, factor: 2, resetMs: 1_800_000 };

type Needed = Pick<Informers, 'pods' | 'nodes' | 'daemonSets' | 'controllerRevisions'>;

/** Keys are those of daemon sets. */
export class DaemonSetController implements Controller {
  readonly name = 'daemonset';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #pods: OwnerIndex<Pod>;
  readonly #revisions: OwnerIndex<ControllerRevision>;
  readonly #expectations: Expectations;
  readonly #batches: PodBatches;
  /** By uid of the set, then by generation and node. */
  readonly #backoff = new Map<string, Map<string, BackoffEntry>>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#pods = new OwnerIndex(informers.pods);
    this.#revisions = new OwnerIndex(informers.controllerRevisions);
    this.#expectations = new Expectations(context.clock);
    this.#batches = new PodBatches(context, this.#expectations);
    informers.daemonSets.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') {
          this.#expectations.forget(object.metadata.uid);
          this.#backoff.delete(object.metadata.uid);
        }
        this.queue.add(objectKey(object));
      }
    });
    followPods(informers.pods, {
      owners: informers.daemonSets,
      selectorOf: ({ spec }) => spec.selector,
      enqueue: (key) => this.queue.add(key),
      expectations: this.#expectations,
    });
    informers.nodes.onChange((changes) => {
      for (const change of changes) this.#nodeChanged(change);
    });
  }

  #nodeChanged(change: Change<Node>): void {
    for (const set of this.#informers.daemonSets.list()) {
      const now = placementOn(set, change.object);
      const before = change.type === 'modified' ? placementOn(set, change.old) : { run: false, stay: false };
      const changed = now.run !== before.run || now.stay !== before.stay;
      if (changed || change.type === 'removed') this.queue.add(objectKey(set));
    }
  }

  async sync(key: string): Promise<void> {
    const set = this.#informers.daemonSets.get(key);
    // Of one that is being deleted nothing is done or reported: its revisions may be gone before its pods.
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return;
    const { client, clock } = this.#context;
    const owner = { kind: DAEMON_SET, object: set, selector: set.spec.selector };
    // Before the pods are read: what is seen while requests are under way is not among them.
    const unsatisfiedMs = this.#expectations.unsatisfiedForMs(set.metadata.uid);
    const pods = await claim(this.#context, owner, POD, this.#pods.candidates(set));
    const { hash, old, collisions } = await this.#history(set, pods);
    const nodes = this.#informers.nodes.list();
    const facts: Facts = { set, nodes, pods: podsByNode(pods), hash, now: clock.now() };
    const { generation = 0 } = set.metadata;
    if (unsatisfiedMs !== undefined) {
      this.queue.addAfter(key, unsatisfiedMs);
      await this.#writeStatus(facts, set.status?.observedGeneration ?? 0, collisions);
      return;
    }
    const failure = await this.#act(key, facts);
    if (failure === undefined) {
      const { revisionHistoryLimit: limit = 10 } = set.spec;
      const live = new Set(pods.map(({ metadata }) => metadata.labels?.[REVISION_HASH]));
      const isLive = ({ metadata }: ControllerRevision): boolean => live.has(metadata.labels?.[REVISION_HASH]);
      await deleteRevisions(client, revisionsToDelete(old, isLive, old.length - limit));
    }
    await this.#writeStatus(facts, generation, collisions);
    if (failure !== undefined) throw failure;
    const wait = nextAvailableInMs(pods, set.spec.minReadySeconds ?? 0, facts.now);
    if (wait !== undefined) this.queue.addAfter(key, wait);
  }

  /** The revision of the template, the others, and no two with one template. */
  async #history(set: DaemonSet, pods: readonly Pod[]) {
    const { client } = this.#context;
    const { template, selector } = set.spec;
    const owner = { kind: DAEMON_SET, object: set, selector };
    const revisions = await claim(this.#context, owner, CONTROLLER_REVISION, this.#revisions.candidates(set));
    const labelled = await Promise.all(revisions.map((revision) => this.#withHash(revision)));
    const { step, old, duplicates } = historyOf(labelled, template);
    const collisions = set.status?.collisionCount;
    const revised = { kind: DAEMON_SET, object: set, template, hashLabel: REVISION_HASH, collisions };
    const current = await writeRevision(client, revised, step);
    const hash = current.revision.metadata.labels?.[REVISION_HASH] ?? '';
    const others = new Set(duplicates.map(({ metadata }) => metadata.labels?.[REVISION_HASH]));
    for (const pod of pods) {
      if (!others.has(pod.metadata.labels?.[REVISION_HASH])) continue;
      const patch = { metadata: { uid: pod.metadata.uid, labels: { [REVISION_HASH]: hash } } };
      await client.patch(pathOf(POD, pod), patch, 'merge');
    }
    await deleteRevisions(client, duplicates);
    return { hash, old, collisions: current.collisions };
  }

  /** One without the label gets its name as the hash. */
  async #withHash(revision: ControllerRevision): Promise<ControllerRevision> {
    const { name, uid, labels } = revision.metadata;
    if (labels?.[REVISION_HASH] !== undefined) return revision;
    const patch = { metadata: { uid, labels: { [REVISION_HASH]: name } } };
    return await this.#context.client.patch(pathOf(CONTROLLER_REVISION, revision), patch, 'merge');
  }

  /** Pods where they belong; where they are, a step of the rolling update. Returns the first failure. */
  async #act(key: string, facts: Facts): Promise<Error | undefined> {
    const { set } = facts;
    const backoff = this.#backoffOf(set);
    const now = this.#context.clock.monotonic();
    const remaining = (node: string): number => {
      const entry = backoff.get(backoffKey(set, node));
      return entry === undefined ? 0 : backoffRemaining(entry, entry.since, now);
    };
    const managed = manage(facts, (node) => remaining(node) > 0);
    for (const finished of managed.finished) this.#report(set, finished);
    for (const { node, kind } of managed.finished) {
      const backoffId = backoffKey(set, node);
      if (kind === 'failed') backoff.set(backoffId, nextBackoff(FAILED_PODS, backoff.get(backoffId), now));
    }
    for (const node of managed.delayed) this.queue.addAfter(key, remaining(node));
    const isRolling = (set.spec.updateStrategy?.type ?? 'RollingUpdate') === 'RollingUpdate';
    const settled = managed.create.length + managed.remove.length === 0;
    return await this.#apply(facts, settled && isRolling ? rollingStep(facts) : managed);
  }

  #apply({ set, hash }: Facts, { create, remove }: Changes): Promise<Error | undefined> {
    const templates = create.map((node) => templateFor(set, hash, node));
    return this.#batches.apply({ kind: DAEMON_SET, object: set }, templates, remove);
  }

  /** The set's delays, without those that have expired. */
  #backoffOf({ metadata }: DaemonSet): Map<string, BackoffEntry> {
    const known = this.#backoff.get(metadata.uid) ?? new Map<string, BackoffEntry>();
    const now = this.#context.clock.monotonic();
    for (const [key, { since }] of known) if (now - since > FAILED_PODS.resetMs) known.delete(key);
    this.#backoff.set(metadata.uid, known);
    return known;
  }

  #report(set: DaemonSet, { node, pod, kind }: Finished): void {
    const { recorder } = this.#context;
    const what = `Found ${kind} daemon pod ${pod.metadata.namespace}/${pod.metadata.name} on node ${node}`;
    const subject = subjectOf(DAEMON_SET, set);
    if (kind === 'failed') recorder.event(subject, 'Warning', 'FailedDaemonPod', `${what}, will try to kill it`);
    else recorder.event(subject, 'Normal', 'SucceededDaemonPod', `${what}, will try to delete it`);
  }

  async #writeStatus(facts: Facts, observed: number, collisions: number | undefined): Promise<void> {
    const { set } = facts;
    const status = daemonSetStatus(facts, observed, collisions);
    if (sameStatus(set.status, status)) return;
    const body = { ...set, apiVersion: DAEMON_SET.apiVersion, kind: DAEMON_SET.kind, status };
    await this.#context.client.replace(pathOf(DAEMON_SET, set, 'status'), body).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

/** A new template begins anew. */
function backoffKey({ status }: DaemonSet, node: string): string {
  return `${status?.observedGeneration ?? 0}/${node}`;
}
