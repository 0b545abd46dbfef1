// What a lab makes directly under its root directory, and what exists there now. Never changes anything.

import { access, constants, lstat, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { readMounts } from '../../lib/mounts.ts';
import { directoryIdentity, type MarkerEntry, readMarker, rootIdentity } from './marker.ts';
import { nodePaths } from './node/plan.ts';
import type { ExistingFile, RootFacts } from './ownership.ts';
import type { LabPaths } from './paths.ts';

export interface LabDirectory {
  readonly path: string;
  readonly mode: number;
  /** Made anew at every start; the others are what --keep keeps. */
  readonly volatile: boolean;
}

export interface RootEntries {
  readonly directories: readonly LabDirectory[];
  readonly files: readonly { readonly path: string; readonly volatile: boolean }[];
}

/** Absolute paths. Pure. */
export function rootEntries(paths: LabPaths): RootEntries {
  const volatile = (path: string, mode = 0o755): LabDirectory => ({ path, mode, volatile: true });
  const persistent = (path: string, mode = 0o755): LabDirectory => ({ path, mode, volatile: false });
  return {
    directories: [
      volatile(paths.kubeletDir, 0o750),
      volatile(join(paths.root, 'cni')),
      volatile(join(paths.root, 'log')),
      volatile(paths.exercisesDir),
      volatile(paths.nodesDir),
      persistent(join(paths.root, 'containerd'), 0o711),
      persistent(join(paths.root, 'docker'), 0o711),
      persistent(paths.csi.stateDir, 0o700),
      persistent(dirname(paths.storeFile), 0o700),
      persistent(dirname(paths.kubeconfigs.agent)),
      persistent(paths.logDir),
      persistent(paths.pkiDir, 0o700),
    ],
    files: [
      { path: paths.kubeletConfig, volatile: true },
      { path: paths.kubeconfig, volatile: false },
      { path: paths.stateFile, volatile: false },
    ],
  };
}

/**
 * Where the lab's programs mount: the agent pods' volumes, the CSI drivers theirs, containerd its snapshots while it
 * unpacks them, dockerd its containers. A mount anywhere else below the root is not the lab's. Pure.
 */
export function mountAreas(paths: LabPaths): readonly MarkerEntry[] {
  const ofPod = ['volumes', 'volume-subpaths', 'volumeDevices', 'plugins', 'containers'];
  return [
    ...ofPod.map((name) => join(paths.kubeletDir, 'pods', '*', name)),
    join(paths.kubeletDir, 'plugins'),
    paths.csi.stateDir,
    paths.containerd.root,
    paths.docker.root,
  ].map((path) => ({ kind: 'mounts', path }));
}

/** The same for each node of a lab with several. Pure. */
export function nodeMountAreas(lab: LabPaths): readonly MarkerEntry[] {
  return mountAreas(nodePaths(lab, '*'));
}

async function existingAt(path: string): Promise<ExistingFile | undefined> {
  try {
    const stat = await lstat(path);
    if (stat.isFile()) return { kind: 'file' };
    if (!stat.isDirectory()) return { kind: 'other' };
    const identity = await directoryIdentity(path);
    if (identity === undefined) return undefined;
    return { kind: 'directory', identity, empty: (await readdir(path)).length === 0 };
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** All facts for a decision about a root (ownership.ts). */
export async function rootFacts(paths: LabPaths): Promise<RootFacts> {
  const { root } = paths;
  const marker = await readMarker(root);
  const { directories, files } = rootEntries(paths);
  const listed = marker.kind === 'valid' && marker.marker.root === root ? marker.marker.made : [];
  const names = [...directories, ...files, ...listed.filter(({ kind }) => kind === 'directory' || kind === 'file')];
  const existing = new Map<string, ExistingFile>();
  for (const path of new Set(names.map((entry) => entry.path))) {
    const there = await existingAt(path);
    if (there !== undefined) existing.set(path, there);
  }
  const mounts = (await readMounts()).map((mount) => mount.path);
  return { root, identity: await rootIdentity(root), marker, existing, mounts };
}

export async function exists(path: string): Promise<boolean> {
  try {
    await access(path, constants.F_OK);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}
