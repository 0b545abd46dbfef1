// The notes beside CSI volumes (vol_data.json, as the kubelet's): what is, or may be, staged, and what each pod uses.
// They are written before the call that makes them true, so that an agent started after a crash finds what to undo.

import { type Dirent, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeFileAtomicSync } from '../../../lib/atomic.ts';
import { isErrno } from '../../../lib/errors.ts';
import { podsDir } from '../volume-type.ts';
import { BLOCK_DIRECTORY, NOTE_FILE, podNoteDirs, stagingRoot } from './layout.ts';

export interface StagedNote {
  readonly driverName: string;
  readonly volumeHandle: string;
  /** Set for a volume in block mode, whose paths contain it. */
  readonly specVolID?: string;
  /** '' where nothing is attached. A kubelet that was here before does not write it. */
  readonly attachmentID?: string;
}

export interface PodNote {
  readonly specVolID: string;
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly nodeName: string;
  readonly attachmentID: string;
  readonly volumeLifecycleMode: string;
  readonly volumeMode: 'Filesystem' | 'Block';
  /** 'published' from just before NodePublishVolume is called. */
  readonly phase: 'referenced' | 'published';
}

export interface FoundPodNote {
  readonly podUid: string;
  readonly note: PodNote;
}

/** Replaces the note at once or not at all. */
export function writeNote(path: string, note: StagedNote | PodNote): void {
  writeFileAtomicSync(path, JSON.stringify(note), { file: 0o600, directory: 0o750 });
}

/** Removes the note, and its directory when nothing else is in it. */
export function removeNote(path: string): void {
  rmSync(path, { force: true });
  removeEmpty(dirname(path));
}

/** True when the directory is gone, or was empty and is removed now. */
export function removeEmpty(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return true;
    if (isErrno(error, 'ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOTDIR')) return false;
    throw error;
  }
}

/** Strings by name; undefined when there is no such file, or a power loss left none of its content. */
function readStrings(path: string): Readonly<Record<string, string>> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof value !== 'object' || value === null) return undefined;
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, String(entry)]));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR') || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function readStagedNote(path: string): StagedNote | undefined {
  const { driverName, volumeHandle, specVolID, attachmentID } = readStrings(path) ?? {};
  if (driverName === undefined || volumeHandle === undefined) return undefined;
  return {
    driverName,
    volumeHandle,
    ...(specVolID === undefined ? {} : { specVolID }),
    ...(attachmentID === undefined ? {} : { attachmentID }),
  };
}

export function readPodNote(path: string): PodNote | undefined {
  const found = readStrings(path) ?? {};
  const { specVolID, driverName, volumeHandle } = found;
  if (specVolID === undefined || driverName === undefined || volumeHandle === undefined) return undefined;
  return {
    specVolID,
    driverName,
    volumeHandle,
    nodeName: found['nodeName'] ?? '',
    attachmentID: found['attachmentID'] ?? '',
    volumeLifecycleMode: found['volumeLifecycleMode'] ?? 'Persistent',
    volumeMode: found['volumeMode'] === 'Block' ? 'Block' : 'Filesystem',
    // A kubelet that was here before writes no phase, and writes its note when it publishes.
    phase: found['phase'] === 'referenced' ? 'referenced' : 'published',
  };
}

function entries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

const directoriesIn = (path: string): string[] =>
  entries(path).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));

/** What the pods on this machine use, or may use. */
export function findPodNotes(root: string): FoundPodNote[] {
  return directoriesIn(podsDir(root)).flatMap((podUid) =>
    podNoteDirs(root, podUid).flatMap((directory) =>
      directoriesIn(directory).flatMap((name) => {
        const note = readPodNote(join(directory, name, NOTE_FILE));
        return note === undefined ? [] : [{ podUid, note }];
      }),
    ),
  );
}

/** What is staged on this machine, or may be. */
export function findStagedNotes(root: string): StagedNote[] {
  const base = stagingRoot(root);
  const mounted = directoriesIn(base)
    .filter((driver) => driver !== BLOCK_DIRECTORY)
    .flatMap((driver) => directoriesIn(join(base, driver)).map((hash) => join(base, driver, hash, NOTE_FILE)));
  const mapped = directoriesIn(join(base, BLOCK_DIRECTORY)).map((name) =>
    join(base, BLOCK_DIRECTORY, name, 'data', NOTE_FILE),
  );
  return [...mounted, ...mapped].flatMap((path) => readStagedNote(path) ?? []);
}
