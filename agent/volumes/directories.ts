// Making the directories and tmpfs mounts that volumes lie in. Idempotent, also after a crash between the directory and
// its mount. File calls are synchronous here: each takes some 20 µs, the way through the thread pool and back 1 to 3 ms.

import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { mountAt } from '../../lib/mountinfo.ts';
import { quantityValue } from '../../lib/quantity.ts';
import { podLimits } from '../model/pod-resources.ts';
import type { PlanInput, VolumeHost } from './volume-type.ts';

/** Directories above a volume are the agent's own: not readable by other users. */
const PARENT_MODE = 0o750;

/** Makes the directory and its parents; returns whether it was not there before. */
function ensure(path: string, mode: number): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: PARENT_MODE });
  try {
    mkdirSync(path, mode);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}

/** A directory with exactly `mode` when it is new. Resolves to whether it is. */
export async function makeDirectory(path: string, mode: number): Promise<boolean> {
  const made = ensure(path, mode);
  if (made) chmodSync(path, mode);
  return made;
}

/** A tmpfs at `path`. Resolves to whether it was mounted now. */
export async function makeTmpfs(path: string, sizeBytes: number | undefined, host: VolumeHost): Promise<boolean> {
  const made = ensure(path, 0o755);
  // A directory that did not exist cannot be mounted on: no need to read the mount table.
  if (!made && mountAt(await host.mounter.list(), path)?.fsType === 'tmpfs') return false;
  const options = sizeBytes === undefined ? [] : [`size=${sizeBytes}`];
  await host.mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: path, options });
  return true;
}

/** A hugetlbfs at `path`; `option` sets its page size. Resolves to whether it was mounted now. */
export async function makeHugetlbfs(path: string, mode: number, option: string, host: VolumeHost): Promise<boolean> {
  const made = await makeDirectory(path, mode);
  if (!made && mountAt(await host.mounter.list(), path)?.fsType === 'hugetlbfs') return false;
  await host.mounter.mount({ fsType: 'hugetlbfs', source: 'nodev', target: path, options: [option] });
  return true;
}

/**
 * Bytes of a memory volume: the least of the node's allocatable memory, the pod's memory limit and the volume's own
 * sizeLimit (KEP-1967). Undefined when none is known.
 */
export function tmpfsSize({ pod, allocatable }: PlanInput, sizeLimit: string | undefined): number | undefined {
  const known = [
    allocatable['memory'] === undefined ? 0 : quantityValue(allocatable['memory']),
    podLimits(pod, { withOverhead: true }).memoryBytes ?? 0,
    sizeLimit === undefined ? 0 : quantityValue(sizeLimit),
  ].filter((bytes) => bytes > 0);
  return known.length === 0 ? undefined : Math.min(...known);
}
