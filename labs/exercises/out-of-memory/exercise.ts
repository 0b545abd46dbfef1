// CrashLoopBackOff, because the kernel kills the container's process for lack of memory.

import type { Pod } from '../../../client/types.ts';
import { formatBytes } from '../../../lib/quantity.ts';
import { memoryLimitOf } from '../cgroups.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, mainPid, readyFinding } from '../pods.ts';

/** What the program loads, bytes. */
const NEEDED = 32 * 1024 * 1024;

export interface Facts {
  readonly pods: readonly Pod[];
  /** Of the container's cgroup, bytes; `none` where it has none, undefined while no process runs. */
  readonly limit: number | 'none' | undefined;
}

/** Pure. */
export function evaluate({ pods, limit }: Facts): readonly Finding[] {
  const found = limit === undefined ? 'no process runs' : limit === 'none' ? 'no limit' : formatBytes(limit);
  return [
    finding(
      'memory limit in the cgroup of the container’s process',
      found,
      typeof limit === 'number' && limit > NEEDED,
      'a limit above the 32 MiB that the program loads',
    ),
    readyFinding(pods, 'hungry', 'it is to load its data and become Ready'),
  ];
}

export const outOfMemory: Exercise = {
  name: 'out-of-memory',
  title: 'CrashLoopBackOff: killed for lack of memory',
  lesson:
    'A memory limit is a number in a cgroup, and the kernel enforces it with SIGKILL; the log of the container is silent about it.',
  minutes: 5,
  hints: [
    'The log is empty. Look at the reason and the exit code of the last state.',
    'OOMKilled: compare what the program loads (`bs=32M`) with its limit.',
    'Write `limits: {memory: 64Mi}` in world.yaml, delete the pod, and apply it.',
  ],
  check: async (machine) => {
    const pods = await listPods(machine);
    return evaluate({ pods, limit: await memoryLimitOf(await mainPid(machine, findPod(pods, 'hungry'))) });
  },
};
