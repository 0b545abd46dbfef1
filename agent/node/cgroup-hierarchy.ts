// What cgroup v1 and v2 have in common. An interface only.

import type { CgroupLimits } from './cgroup-limits.ts';

/** One way of keeping cgroups; paths are absolute below the hierarchy's root. Synchronous: each call is a few µs. */
export interface CgroupHierarchy {
  readonly version: 1 | 2;
  /** Makes the cgroup, and those above it, and writes the limits that are given. Idempotent. */
  ensure(path: string, limits: CgroupLimits): void;
  /** Whether there is such a cgroup, in any of its places. */
  exists(path: string): boolean;
  /** Names of the cgroups directly below; empty when there is no such cgroup. */
  children(path: string): string[];
  /** Bytes of memory in use there, page cache included; undefined when there is no such cgroup. */
  memoryBytes(path: string): number | undefined;
  /** Pids in the cgroup and everywhere below it. */
  processes(path: string): number[];
  /** Sends KILL to everything in the cgroup and below. */
  kill(path: string): void;
  /** Removes the cgroup and everything below; false when something still holds it. */
  remove(path: string): boolean;
}
