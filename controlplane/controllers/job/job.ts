// The Job controller: runs pods until a job's work is done, and counts each of them once. facts.ts sorts the pods, end.ts and
// manage.ts decide, tracking.ts counts. Changes of pods are gathered for a second, as upstream does, since many come at once.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { isNotFound } from '../../../client/errors.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claim } from '../shared/claim.ts';
import { Expectations } from '../shared/expectations.ts';
import { JOB, type Job, type JobCondition, type JobStatus, pathOf, subjectOf } from '../shared/objects.ts';
import { controllerOf, OwnerIndex, selects } from '../shared/owners.ts';
import { PendingWrites } from '../shared/pending-writes.ts';
import { createPod, deletePod } from '../shared/pod-control.ts';
import { isReady, POD } from '../shared/pods.ts';
import { slowStart } from '../shared/slow-start.ts';
import { addFailures, type Failures } from './backoff.ts';
import { finishedBy, newCondition, setCondition } from './conditions.ts';
import { completed, deadlineLeftMs, decideEnd } from './end.ts';
import { type JobFacts, jobFacts } from './facts.ts';
import { hasFinalizer, isSuspended, TRACKING_FINALIZER } from './job-pods.ts';
import { planPods } from './manage.ts';
import { JobMetrics, type SyncAction } from './metrics.ts';
import { podToCreate } from './template.ts';
import { countReleased, finishedStatus, sameStatus, trackPods } from './tracking.ts';

/** How long changes of pods are gathered before the job is synced. */
const BATCH_MS = 1000;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
/** Jobs that name another controller are left to it. */
const CONTROLLER_NAME = 'kubernetes.io/job-controller';
/** Keys of pods whose finalizer no job removes. Names contain no colon. */
const ORPHAN = 'orphan:';

type Needed = Pick<Informers, 'pods' | 'jobs'>;

/** What a sync has done to pods: how many are left, and what failed. */
interface Acted {
  readonly active: number;
  readonly ready: number;
  readonly terminating: number;
  readonly action?: SyncAction;
  readonly error?: unknown;
}

const isManagedElsewhere = ({ spec }: Job): boolean => (spec.managedBy ?? CONTROLLER_NAME) !== CONTROLLER_NAME;

/** Keys are those of jobs, and of pods with a prefix. */
export class JobController implements Controller {
  readonly name = 'job';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly metrics = new JobMetrics();
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #pods: OwnerIndex<Pod>;
  readonly #expectations: Expectations;
  readonly #writes: PendingWrites<Job>;
  /** Uids of pods whose finalizer has been removed, until the cache shows it. */
  readonly #released = new Set<string>();
  /** By uid of the job. */
  readonly #failures = new Map<string, Failures>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    const { clock } = context;
    this.queue = new WorkQueue({ clock, initialDelayMs: FIRST_RETRY_MS, maxDelayMs: MAX_RETRY_MS });
    this.#expectations = new Expectations(clock);
    this.#writes = new PendingWrites(informers.jobs, clock);
    this.#pods = new OwnerIndex(informers.pods);
    informers.jobs.onChange((changes) => {
      for (const change of changes) this.#jobChanged(change);
    });
    informers.pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
  }

  #jobChanged(change: Change<Job>): void {
    const { object: job } = change;
    const key = objectKey(job);
    if (change.type === 'removed') {
      const { uid } = job.metadata;
      this.#expectations.forget(uid);
      this.#failures.delete(uid);
      this.#writes.forget(key);
    }
    if (change.type === 'removed' || finishedBy(job) !== undefined) this.#enqueueLeftPods(job);
    else if (change.type === 'modified' && change.old.metadata.generation === job.metadata.generation) {
      this.queue.addAfter(key, BATCH_MS);
    } else this.queue.add(key);
  }

  /** A job ends when its pods have no finalizer any more; this is for those that the cache did not show by then. */
  #enqueueLeftPods(job: Job): void {
    for (const pod of this.#pods.ownedBy(job.metadata.uid)) this.#enqueueOrphan(pod);
  }

  #enqueueOrphan(pod: Pod): void {
    if (hasFinalizer(pod)) this.queue.add(ORPHAN + objectKey(pod));
  }

  #podChanged(change: Change<Pod>): void {
    const { object: pod } = change;
    const { uid } = pod.metadata;
    const removed = change.type === 'removed';
    if (removed || !hasFinalizer(pod)) this.#released.delete(uid);
    const owner = controllerOf(pod);
    if (change.type === 'modified') {
      const before = controllerOf(change.old);
      if (before !== undefined && before.uid !== owner?.uid) this.#enqueueOwner(pod, before);
    }
    if (owner !== undefined) {
      const leaving = removed || pod.metadata.deletionTimestamp !== undefined;
      if (leaving) this.#expectations.observedDeletion(owner.uid, uid);
      else if (change.type === 'added') this.#expectations.observedCreation(owner.uid, uid);
      const counted = this.#enqueueOwner(pod, owner);
      // A controller that did not know yet that the job has ended may have made it.
      const late = this.#jobOf(pod, owner) !== undefined;
      if (!counted && !removed && (leaving || late)) this.#enqueueOrphan(pod);
      return;
    }
    if (removed) return;
    this.#enqueueOrphan(pod);
    // Every job that selects it may adopt it.
    for (const job of this.#informers.jobs.list()) {
      const same = job.metadata.namespace === pod.metadata.namespace;
      if (same && selects(job.spec.selector, pod)) this.queue.addAfter(objectKey(job), BATCH_MS);
    }
  }

  /** Whether there is such a job, and it still counts its pods. */
  #enqueueOwner(pod: Pod, reference: OwnerReference): boolean {
    const job = this.#jobOf(pod, reference);
    if (job === undefined || finishedBy(job) !== undefined) return false;
    this.queue.addAfter(objectKey(job), BATCH_MS);
    return true;
  }

  #jobOf({ metadata }: Pod, { kind, name, uid }: OwnerReference): Job | undefined {
    const job = kind === JOB.kind ? this.#informers.jobs.get(`${metadata.namespace}/${name}`) : undefined;
    return job?.metadata.uid === uid ? job : undefined;
  }

  async sync(key: string): Promise<void> {
    if (key.startsWith(ORPHAN)) {
      await this.#releaseOrphan(key.slice(ORPHAN.length));
      return;
    }
    const job = this.#informers.jobs.get(key);
    if (job === undefined || isManagedElsewhere(job)) return;
    if (finishedBy(job) !== undefined) {
      this.#failures.delete(job.metadata.uid);
      return;
    }
    // By a status that is older than the last one written, pods would be counted or created twice.
    if (!this.#writes.settled(key)) return;
    const { completionMode = 'NonIndexed' } = job.spec;
    if (completionMode !== 'NonIndexed' && completionMode !== 'Indexed') {
      const message = 'Skipped Job sync because completion mode is unknown';
      this.#context.recorder.event(subjectOf(JOB, job), 'Warning', 'UnknownCompletionMode', message);
      return;
    }
    const { clock } = this.#context;
    const began = clock.monotonic();
    const did: { action: SyncAction; result: 'success' | 'error' } = { action: 'reconciling', result: 'error' };
    try {
      await this.#syncJob(key, job, (action) => {
        did.action = action;
      });
      did.result = 'success';
    } finally {
      this.metrics.synced(job, did.action, did.result, elapsedMs(began, clock.monotonic()));
    }
  }

  async #syncJob(key: string, job: Job, report: (action: SyncAction) => void): Promise<void> {
    const { clock } = this.#context;
    const unsatisfiedMs = this.#expectations.unsatisfiedForMs(job.metadata.uid);
    const mayAct = unsatisfiedMs === undefined;
    if (!mayAct) this.queue.addAfter(key, unsatisfiedMs);
    const candidates = this.#pods.candidates(job);
    const released = new Set(candidates.map(({ metadata }) => metadata.uid).filter((uid) => this.#released.has(uid)));
    const owner = { kind: JOB, object: job, selector: job.spec.selector, finalizer: TRACKING_FINALIZER };
    const pods = await claim(this.#context, owner, POD, candidates);
    const now = clock.now();
    const facts = jobFacts(job, pods, released);
    const { newlySucceeded, newlyFailed } = facts;
    const failures = addFailures(this.#failures.get(job.metadata.uid), newlySucceeded, newlyFailed);
    let status: JobStatus = { ...job.status };
    if (!isSuspended(job)) status.startTime ??= rfc3339(now);
    let end = decideEnd(facts, status, now);
    const leftMs = end === undefined ? deadlineLeftMs(job, status, now) : undefined;
    if (leftMs !== undefined) this.queue.addAfter(key, leftMs);

    let acted: Acted;
    if (end !== undefined) {
      acted = await this.#endPods(facts);
      // Pods that are not deleted, or not seen, may still have to be counted.
      if (acted.active > 0 || !mayAct) end = undefined;
    } else {
      const manages = mayAct && job.metadata.deletionTimestamp === undefined;
      acted = manages ? await this.#managePods(key, facts, failures) : countsOf(facts);
      if (manages) report(acted.action ?? 'tracking');
      end = completed(facts, acted.active, clock.now());
      if (end === undefined && manages) status = this.#reportSuspension(job, status);
    }
    const { active, ready, terminating, error } = acted;
    await this.#track(key, facts, { ...status, active, ready, terminating }, end, failures);
    if (error !== undefined) throw error;
  }

  /** Deletes every active pod; the finalizers go when the pods are counted. */
  async #endPods(facts: JobFacts): Promise<Acted> {
    const { job, active } = facts;
    return await settleDeletions(facts, active, (pod) => deletePod(this.#context, JOB, job, pod));
  }

  async #managePods(key: string, facts: JobFacts, failures: Failures | undefined): Promise<Acted> {
    const plan = planPods(facts, failures, this.#context.clock.now());
    if (plan.do === 'delete') return await this.#removePods(facts, plan.pods);
    if (plan.do === 'create') return await this.#createPods(facts, plan.indexes);
    if (plan.do === 'wait') this.queue.addAfter(key, Math.max(plan.ms, BATCH_MS));
    return countsOf(facts);
  }

  /** Deletes pods that are too many: they do not count, so that their finalizers go first. */
  async #removePods(facts: JobFacts, pods: readonly Pod[]): Promise<Acted> {
    const { job } = facts;
    const { uid: owner } = job.metadata;
    this.#expectations.expect(
      owner,
      0,
      pods.map(({ metadata }) => metadata.uid),
    );
    const acted = await settleDeletions(facts, pods, async (pod) => {
      try {
        await this.#removeFinalizer(pod);
        if (!(await deletePod(this.#context, JOB, job, pod))) {
          this.#expectations.observedDeletion(owner, pod.metadata.uid);
        }
      } catch (error) {
        this.#expectations.observedDeletion(owner, pod.metadata.uid);
        throw error;
      }
    });
    return { ...acted, action: 'pods_deleted' };
  }

  async #createPods(facts: JobFacts, indexes: readonly (number | undefined)[]): Promise<Acted> {
    const { job, lastFailed } = facts;
    const { uid } = job.metadata;
    const left = [...indexes];
    let created = 0;
    this.#expectations.expect(uid, indexes.length, []);
    const { succeeded, error } = await slowStart(indexes.length, async () => {
      const index = left.shift();
      const { template, generateName } = podToCreate(
        job,
        index,
        index === undefined ? undefined : lastFailed.get(index),
      );
      const pod = await createPod(this.#context, JOB, job, template, generateName);
      if (pod === undefined) this.#expectations.notCreated(uid, 1);
      else {
        this.#expectations.created(uid, pod.metadata.uid);
        created++;
      }
    });
    this.#expectations.notCreated(uid, indexes.length - succeeded);
    const counts = countsOf(facts);
    const active = counts.active + created;
    return { ...counts, active, action: 'pods_created', ...(error === undefined ? {} : { error }) };
  }

  /** A job that is resumed starts anew: activeDeadlineSeconds count from then. */
  #reportSuspension(job: Job, status: JobStatus): JobStatus {
    const { clock, recorder } = this.#context;
    const now = clock.now();
    const suspended = isSuspended(job);
    const [reason, message] = suspended ? ['Suspended', 'Job suspended'] : ['Resumed', 'Job resumed'];
    const next = newCondition('Suspended', `Job${reason}`, message, now, suspended ? 'True' : 'False');
    const { conditions = [] } = status;
    const changed = setCondition(conditions, next);
    if (changed === conditions) return status;
    recorder.event(subjectOf(JOB, job), 'Normal', reason, message);
    return { ...status, conditions: [...changed], ...(suspended ? {} : { startTime: rfc3339(now) }) };
  }

  /** Writes what is to be counted, removes finalizers, and counts. Each write is whole: the next sync can go on from any. */
  async #track(
    key: string,
    facts: JobFacts,
    status: JobStatus,
    end: JobCondition | undefined,
    failures: Failures | undefined,
  ): Promise<void> {
    const { uid } = facts.job.metadata;
    const { release, withFinalizer, final, full, ...tracked } = trackPods(
      facts,
      status,
      end,
      this.#context.clock.now(),
    );
    const first = await this.#write(key, facts.job, tracked.status);
    if (first === undefined) return;
    if (failures === undefined) this.#failures.delete(uid);
    else this.#failures.set(uid, failures);
    const { left, error } = await this.#release(release, withFinalizer);
    const counted = countReleased(first.status ?? {}, left);
    const finished = full || error !== undefined ? undefined : finishedStatus(counted, final);
    const last = await this.#write(key, first, finished ?? counted);
    if (last !== undefined) this.metrics.counted(facts.job, facts.job.status ?? {}, last.status ?? {});
    if (error !== undefined) throw error;
    if (finished !== undefined && last !== undefined && final !== undefined) this.#reportEnd(last, final);
  }

  /** The job with this status, written where it is another; undefined where the job is gone. */
  async #write(key: string, job: Job, status: JobStatus): Promise<Job | undefined> {
    if (sameStatus(job.status, status)) return job;
    const body = { ...job, apiVersion: JOB.apiVersion, kind: JOB.kind, status };
    try {
      const written = await this.#context.client.replace<Job>(pathOf(JOB, job, 'status'), body);
      this.#writes.written(key, written);
      return written;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Uids of the pods that still have the finalizer, and the first failure. */
  async #release(
    pods: readonly Pod[],
    withFinalizer: ReadonlySet<string>,
  ): Promise<{ readonly left: ReadonlySet<string>; readonly error?: unknown }> {
    const results = await Promise.allSettled(pods.map((pod) => this.#removeFinalizer(pod)));
    const left = new Set(withFinalizer);
    for (const [place, { metadata }] of pods.entries()) {
      if (results[place]?.status === 'fulfilled') left.delete(metadata.uid);
    }
    const failure = results.find((result) => result.status === 'rejected');
    return failure === undefined ? { left } : { left, error: failure.reason };
  }

  /** A pod that is gone has none any more. */
  async #removeFinalizer(pod: Pod): Promise<void> {
    if (!hasFinalizer(pod)) return;
    const { uid } = pod.metadata;
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': [TRACKING_FINALIZER] } };
    this.#released.add(uid);
    try {
      await this.#context.client.patch(pathOf(POD, pod), patch, 'strategic');
    } catch (error) {
      if (isNotFound(error)) {
        // The cache may have shown it before.
        if (this.#informers.pods.get(objectKey(pod))?.metadata.uid !== uid) this.#released.delete(uid);
        return;
      }
      this.#released.delete(uid);
      throw new Error(`removing tracking finalizer: ${errorMessage(error)}`, { cause: error });
    }
  }

  #reportEnd(job: Job, condition: JobCondition): void {
    const { recorder } = this.#context;
    const { type, reason = '', message = '' } = condition;
    this.metrics.finished(job, condition);
    const subject = subjectOf(JOB, job);
    if (type !== 'Complete') {
      recorder.event(subject, 'Warning', reason, message);
      return;
    }
    const { completions } = job.spec;
    if (completions !== undefined && (job.status?.succeeded ?? 0) > completions) {
      const tooMany = 'Too many succeeded pods running after completion count reached';
      recorder.event(subject, 'Warning', 'TooManySucceededPods', tooMany);
    }
    recorder.event(subject, 'Normal', 'Completed', 'Job completed');
  }

  /** Removes the finalizer of a pod that no job counts: its job has ended, is gone, or no longer owns it. */
  async #releaseOrphan(key: string): Promise<void> {
    const pod = this.#informers.pods.get(key);
    if (pod === undefined) return;
    const owner = controllerOf(pod);
    if (owner !== undefined) {
      if (owner.kind !== JOB.kind || owner.apiVersion !== JOB.apiVersion) return;
      const job = this.#jobOf(pod, owner);
      if (job !== undefined && (isManagedElsewhere(job) || finishedBy(job) === undefined)) return;
    }
    await this.#removeFinalizer(pod);
  }
}

function countsOf({ active, ready, terminating }: JobFacts): Acted {
  return { active: active.length, ready, terminating };
}

/** Deletes all, and counts those that went. */
async function settleDeletions(
  facts: JobFacts,
  pods: readonly Pod[],
  remove: (pod: Pod) => Promise<unknown>,
): Promise<Acted> {
  const results = await Promise.allSettled(pods.map(remove));
  const gone = pods.filter((_, place) => results[place]?.status === 'fulfilled');
  const failure = results.find((result) => result.status === 'rejected');
  const { active, ready, terminating } = countsOf(facts);
  return {
    active: active - gone.length,
    ready: ready - gone.filter(isReady).length,
    terminating: terminating + gone.length,
    ...(failure === undefined ? {} : { error: failure.reason }),
  };
}
