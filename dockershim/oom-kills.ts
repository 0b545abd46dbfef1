// Containers that the kernel killed for memory without Docker's knowing (translate/oom.ts has why, and decides): reads the
// kernel's counts when a container starts and when its end is first read, and keeps what it found in one small file a
// sandbox, since it has to outlive the shim and Docker's labels cannot be changed. Does nothing on cgroup v1, and for pods
// without a cgroup of their own.

import { readFileSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerInspectInfo } from 'dockerode';
import { readFileIfExists, writeFileAtomic } from '../lib/atomic.ts';
import { errorMessage, isErrno } from '../lib/errors.ts';
import { Gate } from '../lib/gate.ts';
import type { Log } from '../lib/log.ts';
import { containerState } from './translate/container-status.ts';
import {
  afterEnds,
  cgroupOf,
  containerCgroup,
  type EndedContainer,
  oomKills,
  type PodKills,
  type PodOomRecord,
  parseOomRecord,
} from './translate/oom.ts';

/** Containers go on while they are counted: so often until two counts of the pod agree. */
const READS = 5;
const SUFFIX = '.json';
/** A process or a cgroup that went, also between open and read. */
const GONE = ['ENOENT', 'ENODEV', 'ESRCH'] as const;

export type ContainerState = ContainerInspectInfo['State'];

export interface OomKillsParts {
  /** Where records are kept. */
  readonly directory: string;
  /** Docker's state of a container; undefined for one that is gone. */
  readonly stateOf: (id: string) => Promise<ContainerState | undefined>;
  readonly log: Log;
  /** Where cgroup v2 and proc are mounted. */
  readonly cgroupRoot?: string;
  readonly procRoot?: string;
}

interface Pod {
  /** One look at a time. */
  readonly gate: Gate;
  /** Until the record has been read. */
  readonly loaded: Promise<void>;
  /** Undefined for a pod without one. */
  record: PodOomRecord | undefined;
  /** All kills in the pod when the end of a container was reported. */
  readonly totals: Map<string, number>;
}

/** The text of a file of proc or of a cgroup; undefined when the process or the cgroup has gone. */
async function kernelFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, ...GONE)) return undefined;
    throw error;
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    // It is made with the first record.
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

export class OomKills {
  readonly #parts: OomKillsParts;
  readonly #cgroupRoot: string;
  readonly #procRoot: string;
  readonly #pods = new Map<string, Pod>();

  constructor(parts: OomKillsParts) {
    this.#parts = parts;
    this.#cgroupRoot = parts.cgroupRoot ?? '/sys/fs/cgroup';
    this.#procRoot = parts.procRoot ?? '/proc';
  }

  /** To be called when the pause process of a sandbox with a cgroup parent runs, on cgroup v2. */
  async sandboxStarted(sandboxId: string, pid: number): Promise<void> {
    const own = await this.#cgroup(pid);
    const cgroup = own?.slice(0, own.lastIndexOf('/'));
    // No kills of what was there before the sandbox.
    const total = cgroup === undefined || cgroup === '' ? undefined : await this.#kills(cgroup);
    if (cgroup === undefined || total === undefined) return;
    await this.#change(sandboxId, () => ({ cgroup, total, ofEnded: total, open: [], killed: [] }));
  }

  /** Before a container is started: what has ended until now is none of its doing. */
  async starting(sandboxId: string, id: string): Promise<void> {
    await this.#change(sandboxId, async (record, totals) => {
      if (record === undefined) return undefined;
      const looked = await this.#look(record, totals);
      return { ...looked, open: [...looked.open, id] };
    });
  }

  /** At once when Docker reports an end: a kill that comes later is another container's. */
  ended(sandboxId: string, id: string): void {
    const pod = this.#pods.get(sandboxId);
    if (pod?.record?.open.includes(id) !== true) return;
    const total = this.#killsNow(pod.record.cgroup);
    if (total !== undefined) pod.totals.set(id, total);
  }

  /** Whether a container that has ended was killed for memory, where Docker may not know it. */
  async wasKilled(sandboxId: string, id: string): Promise<boolean> {
    const record = await this.#change(sandboxId, (before, totals) =>
      before?.open.includes(id) === true ? this.#look(before, totals) : before,
    );
    return record?.killed.includes(id) === true;
  }

  async forgetContainer(sandboxId: string, id: string): Promise<void> {
    await this.#change(sandboxId, async (record, totals) => {
      if (record === undefined || !(record.open.includes(id) || record.killed.includes(id))) return record;
      const looked = await this.#look(record, totals);
      const others = (ids: readonly string[]): readonly string[] => ids.filter((each) => each !== id);
      return { ...looked, open: others(looked.open), killed: others(looked.killed) };
    });
  }

  async forgetSandbox(sandboxId: string): Promise<void> {
    this.#pods.delete(sandboxId);
    await rm(this.#path(sandboxId), { force: true });
  }

  /** Removes the records of sandboxes that are gone, and what an interrupted write has left. `list`: ids of those that are there. */
  async collectGarbage(list: () => Promise<readonly string[]>): Promise<void> {
    const { directory } = this.#parts;
    // The names first: a sandbox that is made meanwhile is in the list, or its record not among them.
    const names = await namesIn(directory);
    const kept = new Set((await list()).map((id) => `${id}${SUFFIX}`));
    for (const name of names) if (!kept.has(name)) await rm(join(directory, name), { force: true });
  }

  #path(sandboxId: string): string {
    return join(this.#parts.directory, `${sandboxId}${SUFFIX}`);
  }

  /** Resolves with the record after the change. A record that cannot be written is lost with the shim, and no call fails for it. */
  async #change(
    sandboxId: string,
    change: (
      record: PodOomRecord | undefined,
      totals: Map<string, number>,
    ) => PodOomRecord | undefined | Promise<PodOomRecord | undefined>,
  ): Promise<PodOomRecord | undefined> {
    const pod = this.#pod(sandboxId);
    return pod.gate.run(async () => {
      await pod.loaded;
      const after = await change(pod.record, pod.totals);
      if (after === undefined || after === pod.record) return after;
      pod.record = after;
      try {
        await writeFileAtomic(this.#path(sandboxId), JSON.stringify(after));
      } catch (error) {
        const why = errorMessage(error);
        this.#parts.log('warn', 'what is known of OOM kills cannot be kept', { sandbox: sandboxId, error: why });
      }
      return after;
    });
  }

  #pod(sandboxId: string): Pod {
    const known = this.#pods.get(sandboxId);
    if (known !== undefined) return known;
    const load = async (): Promise<void> => {
      const text = await readFileIfExists(this.#path(sandboxId));
      pod.record = text === undefined ? undefined : parseOomRecord(text);
    };
    const pod: Pod = { gate: new Gate(1), loaded: Promise.resolve().then(load), record: undefined, totals: new Map() };
    this.#pods.set(sandboxId, pod);
    return pod;
  }

  /** The record after all that has ended. */
  async #look(record: PodOomRecord, totals: Map<string, number>): Promise<PodOomRecord> {
    const states = await Promise.all(record.open.map(async (id) => ({ id, state: await this.#parts.stateOf(id) })));
    const running: number[] = [];
    const ended: EndedContainer[] = [];
    for (const { id, state } of states) {
      if (state === undefined) ended.push({ id, exitCode: 0, oomKilled: false, totalAtEnd: undefined });
      else if (state.Running) running.push(state.Pid);
      // One that is about to be started has not ended.
      else if (containerState(state) === 'CONTAINER_EXITED')
        ended.push({ id, exitCode: state.ExitCode, oomKilled: state.OOMKilled, totalAtEnd: totals.get(id) });
    }
    if (ended.length === 0) return record;
    const after = afterEnds(record, ended, await this.#podKills(record.cgroup, running));
    for (const { id } of ended) totals.delete(id);
    for (const id of after.killed.slice(record.killed.length)) {
      this.#parts.log('info', 'the kernel killed a container for memory, and Docker has not noticed', {
        container: id,
      });
    }
    return after;
  }

  /** `pids`: first processes of the containers that run. Undefined when the pod's cgroup is gone. */
  async #podKills(pod: string, pids: readonly number[]): Promise<PodKills | undefined> {
    const cgroups = await Promise.all(
      pids.map(async (pid) => {
        const own = await this.#cgroup(pid);
        return own === undefined ? undefined : containerCgroup(pod, own);
      }),
    );
    const running = cgroups.filter((each) => each !== undefined);
    for (let read = 1; ; read++) {
      const total = await this.#kills(pod);
      const own = await Promise.all(running.map((cgroup) => this.#kills(cgroup)));
      const after = await this.#kills(pod);
      if (total === undefined || after === undefined) return undefined;
      // Rather too few than too many: what a running container has lost meanwhile is not counted for the ended ones.
      if (total === after || read === READS)
        return { total, ofEnded: total - own.reduce<number>((sum, kills) => sum + (kills ?? 0), 0) };
    }
  }

  async #kills(cgroup: string): Promise<number | undefined> {
    const text = await kernelFile(this.#eventsFile(cgroup));
    return text === undefined ? undefined : oomKills(text);
  }

  /** In this turn of the event loop: the kernel answers from memory, and the next kill may be near. */
  #killsNow(cgroup: string): number | undefined {
    try {
      return oomKills(readFileSync(this.#eventsFile(cgroup), 'utf8'));
    } catch (error) {
      if (isErrno(error, ...GONE)) return undefined;
      throw error;
    }
  }

  #eventsFile(cgroup: string): string {
    return join(this.#cgroupRoot, cgroup, 'memory.events');
  }

  async #cgroup(pid: number): Promise<string | undefined> {
    const text = await kernelFile(join(this.#procRoot, String(pid), 'cgroup'));
    return text === undefined ? undefined : cgroupOf(text);
  }
}
