// The mounted volumes of a pod, and the processes of this machine that keep the kernel from unmounting them: by their working and
// root directories and their open files (fuser -m finds the same). Reads /proc; changes nothing and starts nothing.

import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../../lib/errors.ts';
import { isWithin } from '../../../lib/mountinfo.ts';
import { readMounts } from '../../../lib/mounts.ts';
import { listProcesses, type ProcessEntry } from '../../../lib/processes.ts';
import type { MountFact, MountUser } from '../facts.ts';

/** Of one mount. */
const MAX_USERS = 10;

async function target(link: string): Promise<string | undefined> {
  try {
    return await readlink(link);
  } catch (error) {
    // It ended meanwhile, or is a process of the kernel's.
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined;
    throw error;
  }
}

async function descriptors(pid: number): Promise<readonly string[]> {
  try {
    return await readdir(`/proc/${pid}/fd`);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return [];
    throw error;
  }
}

/** The paths that a process uses, each with how. */
async function pathsOf(pid: number): Promise<readonly (readonly [path: string, uses: string])[]> {
  const [cwd, root, ...files] = await Promise.all([
    target(`/proc/${pid}/cwd`),
    target(`/proc/${pid}/root`),
    ...(await descriptors(pid)).map((name) => target(join(`/proc/${pid}/fd`, name))),
  ]);
  return [
    ...(cwd === undefined ? [] : [[cwd, 'its working directory'] as const]),
    ...(root === undefined || root === '/' ? [] : [[root, 'its root directory'] as const]),
    ...files.flatMap((path) => (path === undefined ? [] : [[path, path] as const])),
  ];
}

function commandOf({ argv, comm }: ProcessEntry): string {
  return argv.length === 0 ? `[${comm}]` : argv.join(' ').replaceAll('\n', ' ').slice(0, 120);
}

/** Mount points below the pod's directory of the kubelet, whatever its root is. */
export async function collectMounts(uid: string): Promise<readonly MountFact[]> {
  const paths = (await readMounts()).map(({ path }) => path).filter((path) => path.includes(`/pods/${uid}/volumes/`));
  if (paths.length === 0) return [];
  const users = new Map<string, MountUser[]>(paths.map((path) => [path, []]));
  for (const entry of await listProcesses()) {
    if (entry.pid === process.pid) continue;
    for (const [path, uses] of await pathsOf(entry.pid)) {
      const mount = paths.find((each) => isWithin(path, each));
      const found = mount === undefined ? undefined : users.get(mount);
      if (found === undefined || found.length >= MAX_USERS) continue;
      if (found.every(({ pid }) => pid !== entry.pid)) found.push({ pid: entry.pid, command: commandOf(entry), uses });
    }
  }
  return [...users].map(([path, each]) => ({ path, users: each }));
}
