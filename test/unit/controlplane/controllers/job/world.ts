// A small API server for one job and its pods, in memory and in virtual time: finalizers hold back deletions, a stale status is
// refused, and caches lag. A node runs the pods. The controller can be killed after any write; the next one starts with
// nothing but what is stored.

import { Store } from '../../../../../client/store.ts';
import type { Pod } from '../../../../../client/types.ts';
import { JobController } from '../../../../../controlplane/controllers/job/job.ts';
import type { Job } from '../../../../../controlplane/controllers/shared/objects.ts';
import { runController } from '../../../../../controlplane/runtime.ts';
import type { MonotonicMs } from '../../../../../lib/clock.ts';
import { rfc3339 } from '../../../../../lib/rfc3339.ts';
import { apiError } from '../../../../support/fake-client.ts';
import { VirtualClock } from '../../../../support/virtual-clock.ts';
import { FINALIZER } from './cases.ts';

type Phase = 'Succeeded' | 'Failed';
/** Ms that a pod runs for, and how it ends. */
export interface Run {
  readonly ms: number;
  readonly phase: Phase;
}

interface Controlled {
  readonly jobs: Store<Job>;
  readonly pods: Store<Pod>;
  readonly stop: AbortController;
}

export class World {
  readonly clock = new VirtualClock();
  readonly events: string[] = [];
  /** Uids of all pods that have ended, by how. */
  readonly ended = new Map<string, Phase>();
  created = 0;
  /** Ms from the start. */
  readonly createdAt: MonotonicMs[] = [];
  /** Most active pods at a time. */
  mostActive = 0;
  writes = 0;
  job: Job;
  readonly #pods = new Map<string, Pod>();
  readonly #lagMs: () => number;
  readonly #runOf: (pod: Pod) => Run;
  #version = 1000;
  #killAfter = Number.POSITIVE_INFINITY;
  #controlled: Controlled | undefined;

  constructor(job: Job, runOf: (pod: Pod) => Run, lagMs: () => number = () => 0) {
    this.job = job;
    this.#runOf = runOf;
    this.#lagMs = lagMs;
  }

  get pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  /** Starts a controller; it is killed after `killAfter` writes, and another one starts a second later. */
  start(killAfter = Number.POSITIVE_INFINITY): void {
    this.#killAfter = this.writes + killAfter;
    const controlled = { jobs: new Store<Job>(), pods: new Store<Pod>(), stop: new AbortController() };
    this.#controlled = controlled;
    const alive = (): void => {
      if (controlled.stop.signal.aborted) throw new Error('this controller is dead');
    };
    const wrote = <T>(value: T): T => {
      this.writes++;
      // The response does not arrive.
      if (this.writes >= this.#killAfter) this.#kill(controlled);
      alive();
      return structuredClone(value);
    };
    const read = async (): Promise<unknown> => {
      alive();
      return structuredClone(this.job);
    };
    const client = {
      get: <T>() => read() as Promise<T>,
      list: () => Promise.reject(new Error('no lists')),
      create: async <T>(_path: string, body: unknown) => {
        alive();
        return wrote(this.#create(body as Pod)) as T;
      },
      replace: async <T>(_path: string, body: unknown) => {
        alive();
        return wrote(this.#replaceStatus(body as Job)) as T;
      },
      patch: async <T>(path: string, body: unknown) => {
        alive();
        return wrote(this.#patch(path, body as { metadata: object })) as T;
      },
      delete: async <T>(path: string) => {
        alive();
        return wrote(this.#delete(path)) as T;
      },
    };
    const recorder = {
      event: (_subject: object, _type: string, reason: string, message: string) =>
        void this.events.push(`${reason}: ${message}`),
    };
    const context = { client, clock: this.clock, recorder, log: () => undefined };
    const controller = new JobController(context, controlled);
    controlled.pods.replace(this.pods);
    controlled.jobs.replace([this.job]);
    void runController(controller, () => undefined, controlled.stop.signal);
  }

  #kill(controlled: Controlled): void {
    controlled.stop.abort(new Error('killed'));
    this.clock.after(1000, () => this.start());
  }

  update(spec: Partial<Job['spec']>): void {
    const generation = (this.job.metadata.generation ?? 1) + 1;
    this.#setJob({ ...this.job, metadata: { ...this.job.metadata, generation }, spec: { ...this.job.spec, ...spec } });
  }

  #setJob(job: Job): void {
    this.job = { ...job, metadata: { ...job.metadata, resourceVersion: String(this.#version++) } };
    const { job: state } = this;
    this.#later('jobs', ({ jobs }) => jobs.upsert(state));
  }

  #setPod(pod: Pod): void {
    const state = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(this.#version++) } };
    const { name, deletionTimestamp, finalizers = [] } = state.metadata;
    const running = state.status?.phase === 'Running' && deletionTimestamp !== undefined;
    if (deletionTimestamp !== undefined && finalizers.length === 0 && !running) {
      this.#pods.delete(name);
      this.#later('pods', ({ pods }) => pods.remove(state));
      return;
    }
    this.#pods.set(name, state);
    this.#later('pods', ({ pods }) => pods.upsert(state));
  }

  /** To a cache, in order; the two are not of one age. */
  readonly #due = { jobs: 0, pods: 0 };
  #later(kind: 'jobs' | 'pods', change: (controlled: Controlled) => void): void {
    const controlled = this.#controlled;
    if (controlled === undefined) return;
    const elapsed = this.clock.monotonic();
    this.#due[kind] = Math.max(this.#due[kind], elapsed + this.#lagMs());
    this.clock.after(this.#due[kind] - elapsed, () => change(controlled));
  }

  #create(body: Pod): Pod {
    const number = this.created++;
    this.createdAt.push(this.clock.monotonic());
    const name = `${body.metadata.generateName}${number}`;
    const pod: Pod = {
      ...body,
      metadata: {
        ...body.metadata,
        name,
        namespace: 'demo',
        uid: `pod-${number}`,
        resourceVersion: '1',
        creationTimestamp: rfc3339(this.clock.now()),
      },
      status: { phase: 'Running' },
    };
    this.#setPod(pod);
    this.mostActive = Math.max(this.mostActive, this.pods.filter(({ status }) => status?.phase === 'Running').length);
    const { ms, phase } = this.#runOf(pod);
    this.clock.after(ms, () => this.#end(name, phase));
    return this.#need(name);
  }

  #need(name: string): Pod {
    const pod = this.#pods.get(name);
    if (pod === undefined) throw apiError(404, 'NotFound');
    return pod;
  }

  #end(name: string, phase: Phase): void {
    const pod = this.#pods.get(name);
    if (pod === undefined || pod.status?.phase !== 'Running') return;
    this.ended.set(pod.metadata.uid, phase);
    const finishedAt = rfc3339(this.clock.now());
    const state = { terminated: { exitCode: phase === 'Failed' ? 1 : 0, finishedAt } };
    const container = { name: 'c', image: '', imageID: '', ready: false, restartCount: 0, state };
    this.#setPod({ ...pod, status: { phase, containerStatuses: [container] } });
  }

  #replaceStatus(body: Job): Job {
    if (body.metadata.resourceVersion !== this.job.metadata.resourceVersion) throw apiError(409, 'Conflict');
    const status = body.status ?? {};
    this.#setJob({ ...this.job, status });
    this.#check();
    return this.job;
  }

  /** Never more pods are counted than have ended or been deleted. */
  #check(): void {
    const { succeeded = 0, uncountedTerminatedPods: lists } = this.job.status ?? {};
    const count = succeeded + (lists?.succeeded ?? []).length;
    const really = [...this.ended.values()].filter((phase) => phase === 'Succeeded').length;
    if (count > really) this.faults.push(`${count} pods are counted as succeeded, and ${really} have`);
  }
  readonly faults: string[] = [];

  #patch(path: string, { metadata }: { metadata: object }): Pod {
    const pod = this.#need(path.split('/').at(-1) ?? '');
    if (JSON.stringify(metadata) !== `{"$deleteFromPrimitiveList/finalizers":["${FINALIZER}"]}`) {
      throw new Error(`not expected: ${JSON.stringify(metadata)}`);
    }
    this.#setPod({ ...pod, metadata: { ...pod.metadata, finalizers: [] } });
    return pod;
  }

  #delete(path: string): object {
    const pod = this.#need(path.split('/').at(-1) ?? '');
    if (pod.metadata.deletionTimestamp === undefined) {
      this.#setPod({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: rfc3339(this.clock.now()) } });
      // The node ends it.
      this.clock.after(2000, () => this.#end(pod.metadata.name, 'Failed'));
    }
    return {};
  }
}
