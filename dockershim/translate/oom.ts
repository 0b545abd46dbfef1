// Which containers the kernel killed for memory where Docker does not know it: on cgroup v2 containerd reads a container's own
// memory.events, and systemd, which removes a scope once its last process is gone, may be faster. The kernel adds each kill
// to all cgroups above as well, and the pod's stays. Pure.

import { isJsonObject } from '../../cni/json.ts';

/** 128 + SIGKILL, which is how a container ends whose first process was killed for memory. */
const KILLED = 137;

/** What is kept of a sandbox whose pod has a cgroup of its own. */
export interface PodOomRecord {
  /** The pod's cgroup, as /proc/PID/cgroup has it. */
  readonly cgroup: string;
  /** All kills in the pod at the last look. */
  readonly total: number;
  /** Of these, those in containers that had ended. */
  readonly ofEnded: number;
  /** Ids of containers that were started, and whose end has not been read yet. */
  readonly open: readonly string[];
  /** Ids of containers that were killed for memory. */
  readonly killed: readonly string[];
}

export interface EndedContainer {
  readonly id: string;
  readonly exitCode: number;
  /** In Docker's eyes. */
  readonly oomKilled: boolean;
  /** All kills in the pod when its end was reported; undefined where the shim did not run then. */
  readonly totalAtEnd: number | undefined;
}

/** The kernel's counts of a pod. */
export interface PodKills {
  readonly total: number;
  /** All but those in containers that run. */
  readonly ofEnded: number;
}

/** `oom_kill` of a cgroup's memory.events: processes that were killed in it and, from Linux 5.2 on, in all cgroups below it. */
export function oomKills(events: string): number {
  return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
}

/** The cgroup (v2) in the text of /proc/PID/cgroup; undefined for one that is gone, or on cgroup v1. */
export function cgroupOf(text: string): string | undefined {
  const path = /^0::(\/.*)$/m.exec(text)?.[1];
  return path?.endsWith(' (deleted)') ? undefined : path;
}

/** The cgroup of the container that a process is in: the one right below the pod's, since a container may divide its own. */
export function containerCgroup(pod: string, cgroup: string): string | undefined {
  if (!cgroup.startsWith(`${pod}/`)) return undefined;
  const [name] = cgroup.slice(pod.length + 1).split('/');
  return `${pod}/${name}`;
}

/**
 * The record after these containers have ended. `kills` is undefined where the pod's cgroup is gone. Kills that Docker knows of are
 * its own business. A container whose end was reported before there was a new kill was not killed; where that leaves several that ended
 * with 137 since the last look, it may have been any one, and all are marked.
 */
export function afterEnds(
  record: PodOomRecord,
  ended: readonly EndedContainer[],
  kills: PodKills | undefined,
): PodOomRecord {
  const ids = new Set(ended.map(({ id }) => id));
  const open = record.open.filter((id) => !ids.has(id));
  if (kills === undefined) return { ...record, open };
  const isUnexplained = kills.ofEnded > record.ofEnded && !ended.some(({ oomKilled }) => oomKilled);
  const killed = ended.filter(
    ({ exitCode, totalAtEnd = kills.total }) => isUnexplained && exitCode === KILLED && totalAtEnd > record.total,
  );
  return {
    cgroup: record.cgroup,
    // Counts never go back: a lower one was read too early.
    total: Math.max(kills.total, record.total),
    ofEnded: Math.max(kills.ofEnded, record.ofEnded),
    open,
    killed: [...record.killed, ...killed.map(({ id }) => id)],
  };
}

/** A record as it was written; undefined for anything else. */
export function parseOomRecord(text: string): PodOomRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!isJsonObject(value)) return undefined;
  const { cgroup, total, ofEnded, open, killed } = value;
  if (typeof cgroup !== 'string' || typeof total !== 'number' || typeof ofEnded !== 'number') return undefined;
  return isIds(open) && isIds(killed) ? { cgroup, total, ofEnded, open, killed } : undefined;
}

const isIds = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
