// Containers that the kernel killed for memory without Docker's knowing (translate/oom.ts has why, and decides): reads the
// kernel's counts when a container starts and when its end is first looked at, and keeps what it found in one small file a
// sandbox, since it has to outlive the shim and Docker's labels cannot be changed. Does nothing on cgroup v1, and for pods
// without a cgroup of their own.

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
  type PodOomRecord,
  parseOomRecord,
} from './translate/oom.ts';

/** Containers go on while they are counted: so often until two counts of the pod agree. */
const READS = 5;
const SUFFIX = '.json';

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
  /** Undefined for a pod without a record. */
  readonly record: Promise<PodOomRecord | undefined>;
}

/** The text of a file of proc or of a cgroup; undefined when the process or the cgroup has gone, in the midst of reading, too. */
async function kernelFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV', 'ESRCH')) return undefined;
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
    const seen = cgroup === undefined || cgroup === '' ? undefined : await this.#kills(cgroup);
    if (cgroup === undefined || seen === undefined) return;
    await this.#change(sandboxId, () => ({ cgroup, seen, open: [], killed: [] }));
  }

  /** Before a container is started: what has ended until now is none of its doing. */
  async starting(sandboxId: string, id: string): Promise<void> {
    await this.#change(sandboxId, async (record) => {
      if (record === undefined) return undefined;
      const looked = await this.#look(record);
      return { ...looked, open: [...looked.open, id] };
    });
  }

  /** Whether a container that has ended was killed for memory, where Docker may not know it. */
  async wasKilled(sandboxId: string, id: string): Promise<boolean> {
    const record = await this.#change(sandboxId, (before) =>
      before?.open.includes(id) === true ? this.#look(before) : before,
    );
    return record?.killed.includes(id) === true;
  }

  async forgetContainer(sandboxId: string, id: string): Promise<void> {
    await this.#change(sandboxId, async (record) => {
      if (record === undefined || !(record.open.includes(id) || record.killed.includes(id))) return record;
      const looked = await this.#look(record);
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

  async #read(sandboxId: string): Promise<PodOomRecord | undefined> {
    const text = await readFileIfExists(this.#path(sandboxId));
    return text === undefined ? undefined : parseOomRecord(text);
  }

  /** Resolves with the record after the change. A record that cannot be written is lost with the shim, and no call fails for it. */
  async #change(
    sandboxId: string,
    change: (record: PodOomRecord | undefined) => PodOomRecord | undefined | Promise<PodOomRecord | undefined>,
  ): Promise<PodOomRecord | undefined> {
    const { gate } = this.#pod(sandboxId);
    return gate.run(async () => {
      const before = await this.#pod(sandboxId).record;
      const after = await change(before);
      if (after === undefined || after === before) return after;
      this.#pods.set(sandboxId, { gate, record: Promise.resolve(after) });
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
    let pod = this.#pods.get(sandboxId);
    if (pod === undefined) {
      pod = { gate: new Gate(1), record: this.#read(sandboxId) };
      this.#pods.set(sandboxId, pod);
    }
    return pod;
  }

  /** The record after all that has ended. */
  async #look(record: PodOomRecord): Promise<PodOomRecord> {
    const states = await Promise.all(record.open.map(async (id) => ({ id, state: await this.#parts.stateOf(id) })));
    const running: number[] = [];
    const ended: EndedContainer[] = [];
    for (const { id, state } of states) {
      if (state === undefined) ended.push({ id, exitCode: 0, oomKilled: false });
      else if (state.Running) running.push(state.Pid);
      // One that is about to be started has not ended.
      else if (containerState(state) === 'CONTAINER_EXITED')
        ended.push({ id, exitCode: state.ExitCode, oomKilled: state.OOMKilled });
    }
    if (ended.length === 0) return record;
    const after = afterEnds(record, ended, await this.#killsOfEnded(record.cgroup, running));
    for (const id of after.killed.slice(record.killed.length)) {
      this.#parts.log('info', 'the kernel killed a container for memory, and Docker has not noticed', {
        container: id,
      });
    }
    return after;
  }

  /** Kills in containers of the pod that do not run any more; undefined when its cgroup is gone. */
  async #killsOfEnded(pod: string, pids: readonly number[]): Promise<number | undefined> {
    const cgroups = await Promise.all(
      pids.map(async (pid) => {
        const own = await this.#cgroup(pid);
        return own === undefined ? undefined : containerCgroup(pod, own);
      }),
    );
    const running = cgroups.filter((each) => each !== undefined);
    for (let read = 1; ; read++) {
      const before = await this.#kills(pod);
      const own = await Promise.all(running.map((cgroup) => this.#kills(cgroup)));
      const after = await this.#kills(pod);
      if (before === undefined || after === undefined) return undefined;
      // Rather too few than too many: what a running container has lost meanwhile is not counted for the ended ones.
      if (before === after || read === READS) return before - own.reduce<number>((sum, kills) => sum + (kills ?? 0), 0);
    }
  }

  async #kills(cgroup: string): Promise<number | undefined> {
    const text = await kernelFile(join(this.#cgroupRoot, cgroup, 'memory.events'));
    return text === undefined ? undefined : oomKills(text);
  }

  async #cgroup(pid: number): Promise<string | undefined> {
    const text = await kernelFile(join(this.#procRoot, String(pid), 'cgroup'));
    return text === undefined ? undefined : cgroupOf(text);
  }
}
