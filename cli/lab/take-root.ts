// How a lab takes its root directory: resolves the directory, refuses protected ones, locks it, and checks that its content
// is this lab's. Changes nothing but the lock, the root itself and its marker.

import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno, UserError } from '../../lib/errors.ts';
import { lockRoot, type RootLock } from './lock.ts';
import {
  directoryIdentity,
  type LabPurpose,
  type MarkerEntry,
  MarkerFile,
  type RootIdentity,
  readMarker,
  rootIdentity,
  sameRoot,
} from './marker.ts';
import { classifyRoot, unprovenMessage } from './ownership.ts';
import { DEFAULT_ROOT, type LabPaths, labPaths } from './paths.ts';
import { protectedBecause, protectionFacts } from './protected.ts';
import { exists, type LabDirectory, mountAreas, rootEntries, rootFacts } from './root.ts';

/**
 * The lab of a root: an alias of a lab's root that is no symbolic link (a bind mount) has the marker of the
 * lab, which names the root's own path.
 */
export async function labAt(root: string = DEFAULT_ROOT): Promise<LabPaths> {
  const paths = labPaths(root);
  const reading = await readMarker(paths.root);
  if (reading.kind !== 'valid' || reading.marker.root === paths.root) return paths;
  const [here, there] = await Promise.all([rootIdentity(paths.root), rootIdentity(reading.marker.root)]);
  const same = here !== undefined && there !== undefined && sameRoot(here, there);
  return same ? labPaths(reading.marker.root) : paths;
}

/** Rejects with UserError for a protected directory, whatever it contains. */
export async function assertNotProtected(root: string): Promise<void> {
  const because = protectedBecause(await protectionFacts(root));
  if (because !== undefined)
    throw new UserError(`${root} ${because}: no lab may have it; give one of its own with --root`);
}

export interface TakenRoot {
  readonly marker: MarkerFile;
  readonly lock: RootLock;
  /** A lab was here before: what it left has to go first. */
  readonly earlier: boolean;
}

/**
 * Locks a root for this process and takes it for the lab: with its existing marker, or with a new one where the directory
 * is empty. Rejects with UserError, having changed nothing, when the root is protected, in use or not a lab's.
 */
export async function takeRoot(paths: LabPaths, purpose: LabPurpose = 'lab'): Promise<TakenRoot> {
  await assertNotProtected(paths.root);
  const made = !(await exists(paths.root));
  await makeRoot(paths.root);
  let lock: RootLock | undefined;
  try {
    const identity = await rootIdentity(paths.root);
    if (identity === undefined) throw new UserError(`${paths.root} is no directory`);
    lock = await lockRoot(paths, identity);
    return { ...(await markerFor(paths, identity, made, purpose)), lock };
  } catch (error) {
    await lock?.release();
    if (made) await removeIfEmpty(paths.root);
    throw error;
  }
}

async function makeRoot(root: string): Promise<void> {
  try {
    await mkdir(root, { recursive: true, mode: 0o711 });
  } catch (error) {
    if (isErrno(error, 'EEXIST', 'ENOTDIR')) throw new UserError(`${root} is no directory`);
    throw error;
  }
}

async function markerFor(
  paths: LabPaths,
  identity: RootIdentity,
  made: boolean,
  purpose: LabPurpose,
): Promise<Pick<TakenRoot, 'marker' | 'earlier'>> {
  const ownership = classifyRoot(await rootFacts(paths), paths.stateFile);
  switch (ownership.kind) {
    case 'proven':
      return { marker: MarkerFile.of(ownership.marker), earlier: true };
    case 'unproven':
      throw new UserError(`${unprovenMessage(paths.root, ownership)}; give the lab a directory of its own with --root`);
    case 'nothing': {
      const entries = [
        ...(made ? [{ kind: 'root' as const, path: paths.root }] : []),
        { kind: 'run-directory' as const, path: paths.runDir },
        ...mountAreas(paths),
        ...(paths.isDefaultRoot ? [{ kind: 'pod-logs' as const, path: paths.podLogsDir }] : []),
      ];
      return { marker: await MarkerFile.create(paths.root, identity, purpose, entries), earlier: false };
    }
  }
}

/**
 * Makes the directories that the lab needs under its root; all are on the list before the first is made. Nothing is put
 * into them before their inodes are on the list, too. Rejects with UserError where other files exist.
 */
export async function makeEntries(
  paths: LabPaths,
  marker: MarkerFile,
  parts: { readonly csi: boolean; readonly docker: boolean; readonly nodes?: boolean },
): Promise<void> {
  const { directories, files } = rootEntries(paths);
  const wanted = directories.filter(({ path }) => {
    if (path === paths.csi.stateDir) return parts.csi;
    if (path === join(paths.root, 'docker')) return parts.docker;
    if (path === paths.nodesDir) return parts.nodes === true;
    // Each of several nodes has its own.
    if (path === paths.kubeletDir || path === join(paths.root, 'cni')) return parts.nodes !== true;
    // The default root's pods log where the kubelet's do.
    return !paths.isDefaultRoot || path !== join(paths.root, 'log');
  });
  const missing: LabDirectory[] = [];
  for (const directory of wanted) {
    const there = await exists(directory.path);
    if (there && marker.isMade(directory.path)) continue;
    // A lab was killed between writing the entry and making the directory, or right after it.
    if (there && marker.has(directory.path)) await removeIfEmpty(directory.path);
    if (await exists(directory.path)) throw notOurs(directory.path);
    missing.push(directory);
  }
  for (const { path } of files) if (!marker.has(path) && (await exists(path))) throw notOurs(path);
  const entry = (path: string) => ({ kind: 'directory' as const, path });
  await marker.put(
    ...missing.map(({ path }) => entry(path)),
    ...files.map(({ path }) => ({ kind: 'file' as const, path })),
  );
  const made: MarkerEntry[] = [];
  for (const { path, mode } of missing) {
    try {
      await mkdir(path, { mode });
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error;
      // It is on the list only since this attempt, and no lab made it.
      await marker.forget(new Set([path]));
      throw notOurs(path);
    }
    const identity = await directoryIdentity(path);
    if (identity === undefined) throw new Error(`${path} was made and is gone again`);
    made.push({ ...entry(path), identity });
  }
  await marker.put(...made);
}

function notOurs(path: string): UserError {
  return new UserError(`${path} exists and was not made by a lab: move it away`);
}

async function removeIfEmpty(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    if (!isErrno(error, 'ENOTEMPTY', 'ENOENT', 'EBUSY')) throw error;
  }
}
