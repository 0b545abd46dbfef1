// Which processes are of one node of a lab: what carries the node's root in its environment, what is below that, and what is in the cgroups of
// the node's pods; the last are found when everything between is gone.

import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { markedProcesses } from '../../../lib/marked-processes.ts';
import { listProcesses, type ProcessEntry, signalProcess } from '../../../lib/processes.ts';
import { poll } from '../../../lib/retry.ts';
import { cgroupDirectories } from '../clean-cgroups.ts';
import type { LabPaths } from '../paths.ts';
import { labEnvironment } from '../processes.ts';

const NODE_VARIABLE = 'NODELET_LAB_NODE';
/** For giving up only: a busy machine may need long to reap a process. */
const GONE_MS = 60_000;

/** Beside the lab's own mark. */
export function nodeEnvironment(lab: LabPaths, node: LabPaths): Readonly<Record<string, string | undefined>> {
  return { ...labEnvironment(lab.root), [NODE_VARIABLE]: node.root };
}

async function nodeProcesses(node: LabPaths): Promise<readonly ProcessEntry[]> {
  const [marked, inPods] = await Promise.all([markedProcesses(NODE_VARIABLE, node.root), podProcesses(node)]);
  const seen = new Set(inPods.map(({ pid }) => pid));
  return [...inPods, ...marked.filter(({ pid }) => !seen.has(pid))];
}

/** What runs in the cgroups of the node's pods: containers and their pause processes. */
async function podProcesses(node: LabPaths): Promise<readonly ProcessEntry[]> {
  const pids = new Set<number>();
  for (const top of await cgroupDirectories(node.cgroupRoot)) await collect(top, pids);
  return pids.size === 0 ? [] : (await listProcesses()).filter(({ pid, state }) => pids.has(pid) && state !== 'Z');
}

async function collect(directory: string, pids: Set<number>): Promise<void> {
  try {
    for (const pid of readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n')) {
      if (pid !== '') pids.add(Number(pid));
    }
    const entries = await readdir(directory, { withFileTypes: true });
    for (const entry of entries) if (entry.isDirectory()) await collect(join(directory, entry.name), pids);
  } catch (error) {
    // A container that ends takes its cgroup with it.
    if (!isErrno(error, 'ENOENT', 'ENODEV')) throw error;
  }
}

/** SIGKILL to everything of the node until nothing is left: a process may start another one before it dies. */
export async function killNodeProcesses(node: LabPaths, clock: Clock): Promise<void> {
  let left: readonly ProcessEntry[] = [];
  const look = async (): Promise<boolean> => {
    left = await nodeProcesses(node);
    for (const entry of left) await signalProcess(entry, 'SIGKILL');
    return left.length === 0;
  };
  if (await poll(look, { clock, everyMs: 20, limitMs: GONE_MS })) return;
  throw new Error(`processes do not end after SIGKILL: ${left.map(({ pid, comm }) => `${pid} (${comm})`).join(', ')}`);
}

/** TERM to everything in the node's pods, and time for it to end, as a machine that is shut down gives it. */
export async function endPodProcesses(node: LabPaths, clock: Clock, graceMs: number): Promise<void> {
  for (const entry of await podProcesses(node)) await signalProcess(entry, 'SIGTERM');
  const look = async (): Promise<boolean> => (await podProcesses(node)).every(isPause);
  await poll(look, { clock, everyMs: 50, limitMs: graceMs });
}

/** What holds a pod's namespaces, and does nothing else. */
function isPause({ argv }: ProcessEntry): boolean {
  return argv[0]?.endsWith('pause') === true;
}
