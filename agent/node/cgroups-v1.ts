// cgroup v1: the same path in every controller's own hierarchy, systemd's named one among them, so that a pod's
// processes are together in each of them. Knows nothing of pods.

import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { type MountEntry, parseMountInfo } from '../../lib/mountinfo.ts';
import type { CgroupHierarchy } from './cgroup-hierarchy.ts';
import type { CgroupLimits } from './cgroup-limits.ts';
import {
  cgroupTree,
  isDirectory,
  killAll,
  readBytes,
  readPids,
  removeCgroupTree,
  writeControl,
} from './cgroup-tree.ts';

export interface V1Hierarchy {
  readonly mountPoint: string;
  readonly controllers: readonly string[];
}

/**
 * v1 hierarchies below `mountPoint`. On a hybrid machine the v2 hierarchy beside them is one more, without controllers:
 * runc makes cgroups there, too, which have to be removed. Pure.
 */
export function v1HierarchiesOf(mounts: readonly MountEntry[], mountPoint: string): V1Hierarchy[] {
  const found = new Map<string, V1Hierarchy>();
  for (const { path, fsType, superOptions } of mounts) {
    if (!path.startsWith(`${mountPoint}/`)) continue;
    if (fsType === 'cgroup2') found.set('unified', { mountPoint: path, controllers: [] });
    if (fsType !== 'cgroup') continue;
    const controllers = superOptions.filter((option) => KNOWN.has(option) || option.startsWith('name='));
    // The same hierarchy may be mounted twice (cpu and cpu,cpuacct); once is enough.
    const key = controllers.join(',');
    if (key !== '' && !found.has(key)) found.set(key, { mountPoint: path, controllers });
  }
  return [...found.values()];
}

/** Whether swap is counted (`swapaccount=1`): each memory cgroup, the root too, then has a limit of both together. */
export function hasSwapV1(hierarchies: readonly V1Hierarchy[]): boolean {
  const memory = hierarchies.find(({ controllers }) => controllers.includes('memory'));
  return memory !== undefined && existsSync(join(memory.mountPoint, 'memory.memsw.limit_in_bytes'));
}

const KNOWN = new Set([
  'cpu',
  'cpuacct',
  'cpuset',
  'memory',
  'devices',
  'freezer',
  'blkio',
  'pids',
  'net_cls',
  'net_prio',
  'perf_event',
  'hugetlb',
  'rdma',
  'misc',
]);

/** Empty on a machine with cgroup v2 alone, or when the v1 hierarchies have no cpu controller. */
export function findV1Hierarchies(mountPoint: string): V1Hierarchy[] {
  const found = v1HierarchiesOf(parseMountInfo(readFileSync('/proc/self/mountinfo', 'utf8')), mountPoint);
  return found.some(({ controllers }) => controllers.includes('cpu')) ? found : [];
}

/** Files to write for `limits`, by controller. The period goes before the quota that refers to it. */
export function v1Files(limits: CgroupLimits): { controller: string; file: string; value: string }[] {
  const files: [string, string, number | undefined][] = [
    ['cpu', 'cpu.shares', limits.cpuShares],
    ['cpu', 'cpu.cfs_period_us', limits.cpuPeriodUs],
    ['cpu', 'cpu.cfs_quota_us', limits.cpuQuotaUs],
    ['memory', 'memory.limit_in_bytes', limits.memoryBytes],
  ];
  const written = files.flatMap(([controller, file, value]) =>
    value === undefined ? [] : [{ controller, file, value: String(value) }],
  );
  if (limits.pids === undefined) return written;
  return [...written, { controller: 'pids', file: 'pids.max', value: limits.pids < 0 ? 'max' : String(limits.pids) }];
}

const CPUSET_FILES = ['cpuset.cpus', 'cpuset.mems'];

export class CgroupsV1 implements CgroupHierarchy {
  readonly version = 1;
  readonly #hierarchies: readonly V1Hierarchy[];

  constructor(hierarchies: readonly V1Hierarchy[]) {
    this.#hierarchies = hierarchies;
  }

  ensure(path: string, limits: CgroupLimits): void {
    const files = v1Files(limits);
    for (const { mountPoint, controllers } of this.#hierarchies) {
      const directory = join(mountPoint, path);
      const made = mkdirSync(directory, { recursive: true, mode: 0o755 });
      // A new cpuset is empty and takes no process until it is given cpus and memory nodes.
      if (made !== undefined && controllers.includes('cpuset')) {
        for (const file of CPUSET_FILES) this.#inherit(mountPoint, directory, file);
      }
      for (const { controller, file, value } of files) {
        if (controllers.includes(controller)) writeControl(join(directory, file), value);
      }
    }
  }

  /** The cgroup's own value, or that of the nearest one above it that has one, which it is given then. */
  #inherit(mountPoint: string, directory: string, file: string): string {
    const own = readFileSync(join(directory, file), 'utf8').trim();
    if (own !== '' || directory === mountPoint) return own;
    const inherited = this.#inherit(mountPoint, dirname(directory), file);
    writeControl(join(directory, file), inherited);
    return inherited;
  }

  exists(path: string): boolean {
    return this.#hierarchies.some(({ mountPoint }) => isDirectory(join(mountPoint, path)));
  }

  children(path: string): string[] {
    const names = new Set<string>();
    for (const { mountPoint } of this.#hierarchies) {
      try {
        for (const entry of readdirSync(join(mountPoint, path), { withFileTypes: true })) {
          if (entry.isDirectory()) names.add(entry.name);
        }
      } catch (error) {
        if (!isErrno(error, 'ENOENT')) throw error;
      }
    }
    return [...names];
  }

  memoryBytes(path: string): number | undefined {
    const memory = this.#hierarchies.find(({ controllers }) => controllers.includes('memory'));
    return memory === undefined ? undefined : readBytes(join(memory.mountPoint, path, 'memory.usage_in_bytes'));
  }

  processes(path: string): number[] {
    const pids = new Set<number>();
    for (const { mountPoint } of this.#hierarchies) {
      for (const directory of cgroupTree(join(mountPoint, path))) {
        for (const pid of readPids(directory)) pids.add(pid);
      }
    }
    return [...pids];
  }

  kill(path: string): void {
    killAll(this.processes(path));
  }

  remove(path: string): boolean {
    let gone = true;
    for (const { mountPoint } of this.#hierarchies) {
      if (!removeCgroupTree(join(mountPoint, path))) gone = false;
    }
    return gone;
  }
}
