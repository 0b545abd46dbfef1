// cgroup v2: one hierarchy in which every level enables controllers for the next. Knows nothing of pods.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import type { CgroupHierarchy } from './cgroup-hierarchy.ts';
import { type CgroupLimits, cpuWeight } from './cgroup-limits.ts';
import {
  cgroupTree,
  isDirectory,
  killAll,
  readBytes,
  readPids,
  removeCgroupTree,
  writeControl,
} from './cgroup-tree.ts';

/** The controllers that pods need, of which a machine may lack some. */
const CONTROLLERS = ['cpu', 'cpuset', 'memory', 'pids', 'io', 'hugetlb', 'rdma', 'misc'];

function words(path: string): string[] {
  return readFileSync(path, 'utf8').split(/\s+/).filter(Boolean);
}

/** Whether the kernel accounts for swap per cgroup: the root has no such file, its children do. */
export function hasSwapController(mountPoint: string): boolean {
  return readdirSync(mountPoint, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .some((entry) => {
      try {
        readFileSync(join(mountPoint, entry.name, 'memory.swap.max'));
        return true;
      } catch (error) {
        if (isErrno(error, 'ENOENT')) return false;
        throw error;
      }
    });
}

function orMax(value: number): string {
  return value < 0 ? 'max' : String(value);
}

/** Files to write for `limits`, with the controller that each belongs to. */
export function v2Files(limits: CgroupLimits): { controller: string; file: string; value: string }[] {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes, pids } = limits;
  const files: { controller: string; file: string; value: string }[] = [];
  if (cpuShares !== undefined)
    files.push({ controller: 'cpu', file: 'cpu.weight', value: String(cpuWeight(cpuShares)) });
  if (cpuQuotaUs !== undefined) {
    const value = `${orMax(cpuQuotaUs)} ${cpuPeriodUs ?? 100_000}`;
    files.push({ controller: 'cpu', file: 'cpu.max', value });
  }
  if (memoryBytes !== undefined) files.push({ controller: 'memory', file: 'memory.max', value: orMax(memoryBytes) });
  if (pids !== undefined) files.push({ controller: 'pids', file: 'pids.max', value: orMax(pids) });
  return files;
}

export class CgroupsV2 implements CgroupHierarchy {
  readonly version = 2;
  readonly #mountPoint: string;

  constructor(mountPoint: string) {
    this.#mountPoint = mountPoint;
  }

  /** Throws with the controller's name when the machine does not hand down one that a limit needs. */
  ensure(path: string, limits: CgroupLimits): void {
    let directory = this.#mountPoint;
    for (const part of path.split('/').filter((name) => name !== '')) {
      const child = join(directory, part);
      // A level that exists has been given its controllers when it was made.
      if (!isDirectory(child)) {
        this.#handDown(directory);
        mkdirSync(child, { recursive: true, mode: 0o755 });
      }
      directory = child;
    }
    // Containers get their own cgroups below a pod's, by the runtime, and need the controllers there.
    this.#handDown(directory);
    for (const { controller, file, value } of v2Files(limits)) {
      try {
        writeControl(join(directory, file), value);
      } catch (error) {
        if (!isErrno(error, 'ENOENT')) throw error;
        throw new Error(`cgroup ${directory} has no ${file}: the ${controller} controller is not enabled above it`, {
          cause: error,
        });
      }
    }
  }

  #handDown(directory: string): void {
    const available = words(join(directory, 'cgroup.controllers'));
    const enabled = new Set(words(join(directory, 'cgroup.subtree_control')));
    const missing = CONTROLLERS.filter((name) => available.includes(name) && !enabled.has(name));
    // One at a time: a controller that cannot be enabled must not affect the others.
    for (const name of missing) {
      try {
        writeControl(join(directory, 'cgroup.subtree_control'), `+${name}`);
      } catch (error) {
        // Whether it was needed shows when a limit is written; EBUSY: the level has processes of its own.
        if (!isErrno(error, 'EBUSY', 'EINVAL', 'ENOENT', 'EOPNOTSUPP')) throw error;
      }
    }
  }

  exists(path: string): boolean {
    return isDirectory(join(this.#mountPoint, path));
  }

  children(path: string): string[] {
    try {
      return readdirSync(join(this.#mountPoint, path), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => entry.name);
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }

  memoryBytes(path: string): number | undefined {
    return readBytes(join(this.#mountPoint, path, 'memory.current'));
  }

  processes(path: string): number[] {
    return cgroupTree(join(this.#mountPoint, path)).flatMap(readPids);
  }

  kill(path: string): void {
    try {
      // Kills the whole subtree atomically, so that no process can fork out of it (Linux 5.14).
      writeControl(join(this.#mountPoint, path, 'cgroup.kill'), '1');
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENODEV', 'EOPNOTSUPP')) throw error;
      killAll(this.processes(path));
    }
  }

  remove(path: string): boolean {
    return removeCgroupTree(join(this.#mountPoint, path));
  }
}
