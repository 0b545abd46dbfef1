// Removes what a lab made under its root: exactly what is on the marker's list. The marker is removed last, so that an
// interrupted removal can be repeated.

import { readdir, readlink, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { unmountWhere } from '../../lib/mounts.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { detachLoopsBelow, thawBelow } from './loops.ts';
import { MARKER_NAME, type MarkerFile } from './marker.ts';
import { isLabMount, isTemporaryOf, planRemoval, type RootFacts } from './ownership.ts';
import type { LabPaths } from './paths.ts';
import { rootEntries } from './root.ts';

type Step = (what: string, work: () => Promise<unknown>) => Promise<void>;

export interface RootCleaning {
  readonly paths: LabPaths;
  readonly facts: RootFacts;
  readonly marker: MarkerFile;
  /** Leave what is for the next start. */
  readonly keep: boolean;
  readonly step: Step;
}

export interface RootCleaned {
  /** What stays though it is on the list, one sentence each. */
  readonly left: readonly string[];
  /** What is on the list and not there any more. */
  readonly gone: readonly string[];
}

/** Mounts, loop devices and files. Writes nothing: there may be no room before something is removed. */
export async function clearRoot({ paths, facts, marker, keep, step }: RootCleaning): Promise<RootCleaned> {
  const all = planRemoval(marker.marker, facts, () => false);
  const persistent = new Set(persistentPaths(paths));
  const plan = planRemoval(marker.marker, facts, (path) => keep && persistent.has(path));
  await step('filesystems', () => forEach(all.directories, thawBelow));
  await step('mounts', () => unmountWhere((mount) => isLabMount(marker.marker, facts, mount)));
  await step('loop devices', () => forEach(all.directories, detachLoopsBelow));
  if (all.directories.includes(paths.kubeletDir)) await step('pod logs', () => removePodLogs(paths));
  const gone = [...plan.gone];
  const remove = (path: string, work: () => Promise<unknown>): Promise<void> =>
    step('files', async () => {
      await work();
      gone.push(path);
    });
  for (const path of plan.directories) await remove(path, () => removeTree(path));
  for (const path of plan.files) await remove(path, () => removeFile(path));
  return { left: plan.left, gone };
}

function persistentPaths(paths: LabPaths): readonly string[] {
  const { directories, files } = rootEntries(paths);
  return [...directories, ...files].filter((entry) => !entry.volatile).map((entry) => entry.path);
}

/** The end of a lab that is gone but for its marker: that, and the root where the lab made it and nothing else is in it. */
export async function removeMarker(paths: LabPaths, marker: MarkerFile): Promise<void> {
  await removeFile(join(paths.root, MARKER_NAME));
  if (marker.marker.made.some((entry) => entry.kind === 'root')) await removeEmpty(paths.root);
}

/** A file, and what a killed process left that was about to replace it. */
async function removeFile(path: string): Promise<void> {
  for (const name of await listDirectory(dirname(path))) {
    if (name !== basename(path) && isTemporaryOf(name, path)) await rm(join(dirname(path), name), { force: true });
  }
  await rm(path, { force: true });
}

async function forEach(paths: readonly string[], work: (path: string) => Promise<void>): Promise<void> {
  for (const path of paths) await work(path);
}

async function listDirectory(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

/** Logs in the machine's shared places: only those of pods that this lab's agent has a directory for. */
async function removePodLogs(paths: LabPaths): Promise<void> {
  const uids = await listDirectory(join(paths.kubeletDir, 'pods'));
  for (const name of await listDirectory(paths.podLogsDir)) {
    if (uids.some((uid) => name.endsWith(`_${uid}`))) {
      await removeTree(join(paths.podLogsDir, name));
    }
  }
  for (const name of await listDirectory(paths.containerLogsDir)) {
    const link = join(paths.containerLogsDir, name);
    if (await dangles(link, paths.podLogsDir)) await rm(link, { force: true });
  }
}

/** A link whose log directory under `logs` is gone. */
async function dangles(link: string, logs: string): Promise<boolean> {
  try {
    const target = await readlink(link);
    return target.startsWith(`${logs}/`) && (await listDirectory(dirname(target))).length === 0;
  } catch (error) {
    if (isErrno(error, 'EINVAL', 'ENOENT')) return false;
    throw error;
  }
}

/** Removes a directory that nothing is in. */
export async function removeEmpty(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    // Other files are in it, of another lab or of a user; or it was made a mount point, as `ip netns add` does.
    if (!isErrno(error, 'ENOTEMPTY', 'ENOENT', 'EBUSY'))
      throw new Error(`${path}: ${errorMessage(error)}`, { cause: error });
  }
}
