// What a lab puts right under its root directory, and whether what stands there under these names is a lab's. Only then
// is it ever unmounted or removed: a root may be a directory of somebody's own.

import { access, constants } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import type { LabPaths } from './paths.ts';

export interface RootEntries {
  /** Made anew at every start. */
  readonly volatile: readonly string[];
  /** What --keep keeps. The state file is the last: while anything is left, it tells whose it is. */
  readonly persistent: readonly string[];
}

/** Absolute paths. Pure. */
export function rootEntries(paths: LabPaths): RootEntries {
  return {
    volatile: [paths.kubeletDir, join(paths.root, 'cni'), join(paths.root, 'log'), paths.kubeletConfig],
    persistent: [
      join(paths.root, 'containerd'),
      paths.csi.stateDir,
      dirname(paths.storeFile),
      paths.kubeconfig,
      dirname(paths.kubeconfigs.agent),
      paths.logDir,
      paths.pkiDir,
      paths.stateFile,
    ],
  };
}

/** Any of these shows that a lab, or one of its programs alone, was here. */
function signs(paths: LabPaths): readonly string[] {
  return [
    paths.stateFile,
    join(paths.pkiDir, 'ca.crt'),
    dirname(paths.kubeconfigs.agent),
    paths.kubeletConfig,
    paths.kubeletDir,
  ];
}

/** Names right under the root that a lab would take for its own, where no lab has been. */
export async function strangers(paths: LabPaths): Promise<readonly string[]> {
  for (const sign of signs(paths)) if (await exists(sign)) return [];
  const { volatile, persistent } = rootEntries(paths);
  const found: string[] = [];
  for (const path of [...volatile, ...persistent]) if (await exists(path)) found.push(relative(paths.root, path));
  return found;
}

/** "/srv/x holds cni, which no lab made". Pure. */
export function strangersSentence(paths: LabPaths, names: readonly string[]): string {
  return `${paths.root} holds ${names.join(', ')}, which no lab made`;
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
