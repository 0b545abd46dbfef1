// The marker of a lab: the file in its root that identifies the lab and lists what the lab made. It is written before
// anything else, and each entry before the object itself is made, so that everything a lab made is on the list, however
// the lab ended. Only a marker that is whole and names its own directory proves anything. Encoding and decoding are pure;
// what may be removed is decided in ownership.ts.

import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { link, lstat, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { isErrno } from '../../lib/errors.ts';

export const MARKER_NAME = '.nodelet-lab.json';
const PROGRAM = 'nodelet';
const FORMAT = 1;
/** A marker has about twenty entries; something of this size is none. */
const MARKER_BYTES = 1024 * 1024;

/** The identity of a directory in its file system. Decimal strings: inode numbers have 64 bits. */
export interface DirectoryIdentity {
  readonly inode: string;
  /** Birth time in ns: an inode number is used again for the next directory. "0" where the file system has none. */
  readonly born: string;
}

export interface RootIdentity extends DirectoryIdentity {
  /** st_dev. Comparable within one boot only: the kernel numbers devices as it finds them. */
  readonly device: string;
  readonly bootId: string;
}

/**
 * root: the root directory itself, removed when it is empty. directory, file: below the root. mounts: the lab's programs
 * mount below this directory. run-directory: sockets and volatile state. shared-directory: a place outside that labs
 * share, removed when it is empty and no other lab is up. pod-logs: the logs of this lab's pods in a shared directory.
 * cgroup: the highest one that is this lab's.
 */
const ENTRY_KINDS = [
  'root',
  'directory',
  'file',
  'mounts',
  'run-directory',
  'shared-directory',
  'pod-logs',
  'cgroup',
] as const;
export type EntryKind = (typeof ENTRY_KINDS)[number];

export interface MarkerEntry {
  readonly kind: EntryKind;
  /** Absolute; for a cgroup its path below the hierarchy. */
  readonly path: string;
  /** Of a directory, once it is made: another directory under the same name is not the one that the lab made. */
  readonly identity?: DirectoryIdentity;
}

export interface LabMarker {
  readonly program: typeof PROGRAM;
  readonly format: typeof FORMAT;
  /** Nothing of a demo is ever kept. */
  readonly purpose: LabPurpose;
  /** Random; differs between any two labs, also on the same root. */
  readonly id: string;
  /** The root's resolved path. */
  readonly root: string;
  readonly identity: RootIdentity;
  readonly made: readonly MarkerEntry[];
}

export type LabPurpose = 'lab' | 'demo';

export type MarkerReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'damaged'; readonly why: string }
  | { readonly kind: 'valid'; readonly marker: LabMarker };

function checksum(body: string): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}

/** The file's text: the marker and a checksum over the whole of it. Pure. */
export function encodeMarker(marker: LabMarker): string {
  return `${JSON.stringify({ checksum: checksum(JSON.stringify(marker)), marker }, undefined, 1)}\n`;
}

/** Pure. A marker of a newer nodelet counts as damaged: what is in it is not known here. */
export function decodeMarker(text: string): MarkerReading {
  const damaged = (why: string): MarkerReading => ({ kind: 'damaged', why });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return damaged('it is not JSON');
    throw error;
  }
  if (!isObject(file) || !isObject(file['marker'])) return damaged('it has no marker');
  const { marker } = file;
  if (marker['program'] !== PROGRAM) return damaged('another program wrote it');
  if (marker['format'] !== FORMAT)
    return damaged(`its format is ${String(marker['format'])}, this nodelet writes ${FORMAT}`);
  if (file['checksum'] !== checksum(JSON.stringify(marker))) return damaged('its checksum does not match');
  if (!isMarker(marker)) return damaged('fields are missing');
  return { kind: 'valid', marker };
}

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isIdentity(value: unknown): value is DirectoryIdentity {
  return isObject(value) && typeof value['inode'] === 'string' && typeof value['born'] === 'string';
}

function isEntry(value: unknown): value is MarkerEntry {
  if (!isObject(value) || typeof value['path'] !== 'string' || !value['path'].startsWith('/')) return false;
  if (value['identity'] !== undefined && !isIdentity(value['identity'])) return false;
  return ENTRY_KINDS.some((kind) => kind === value['kind']);
}

function isMarker(value: Fields): value is Fields & LabMarker {
  const { id, purpose, root, identity, made } = value;
  if (purpose !== 'lab' && purpose !== 'demo') return false;
  if (typeof id !== 'string' || typeof root !== 'string' || !isIdentity(identity)) return false;
  if (!isObject(identity) || typeof identity['device'] !== 'string' || typeof identity['bootId'] !== 'string')
    return false;
  return Array.isArray(made) && made.every(isEntry);
}

/** Whether a marker written for `written` is in the same directory as `now`. Pure. */
export function sameRoot(written: RootIdentity, now: RootIdentity): boolean {
  if (written.inode !== now.inode || written.born !== now.born) return false;
  return written.bootId !== now.bootId || written.device === now.device;
}

// ---------------------------------------------------------------- on disk

/** Undefined when there is no such directory. A symbolic link at `path` itself is not followed. */
export async function directoryIdentity(path: string): Promise<DirectoryIdentity | undefined> {
  const stat = await lstatIfExists(path);
  return stat?.isDirectory() === true ? { inode: String(stat.ino), born: String(stat.birthtimeNs) } : undefined;
}

async function lstatIfExists(path: string) {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Undefined when there is no such directory. */
export async function rootIdentity(root: string): Promise<RootIdentity | undefined> {
  const stat = await lstatIfExists(root);
  if (stat?.isDirectory() !== true) return undefined;
  return {
    device: String(stat.dev),
    inode: String(stat.ino),
    born: String(stat.birthtimeNs),
    bootId: (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
  };
}

/** Only a regular file owned by root is a marker: no link, FIFO or file of another user. */
export async function readMarker(root: string): Promise<MarkerReading> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(join(root, MARKER_NAME), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return { kind: 'none' };
    if (isErrno(error, 'ELOOP', 'ENXIO')) return { kind: 'damaged', why: 'it is no plain file' };
    throw error;
  }
  try {
    const stat = await file.stat();
    if (!stat.isFile()) return { kind: 'damaged', why: 'it is no plain file' };
    if (stat.uid !== 0) return { kind: 'damaged', why: `it belongs to user ${stat.uid}` };
    if (stat.size > MARKER_BYTES) return { kind: 'damaged', why: `it has ${stat.size} bytes` };
    return decodeMarker(await file.readFile('utf8'));
  } finally {
    await file.close();
  }
}

/** The marker of a lab that is at work here: extends and shortens the list on disk. Calls must not overlap. */
export class MarkerFile {
  #marker: LabMarker;

  private constructor(marker: LabMarker) {
    this.#marker = marker;
  }

  /** For a marker that was read and found to prove the root. */
  static of(marker: LabMarker): MarkerFile {
    return new MarkerFile(marker);
  }

  /** Writes the marker of a new lab. Rejects with EEXIST where one exists. */
  static async create(
    root: string,
    identity: RootIdentity,
    purpose: LabPurpose,
    made: readonly MarkerEntry[],
  ): Promise<MarkerFile> {
    const marker: LabMarker = { program: PROGRAM, format: FORMAT, purpose, id: randomUUID(), root, identity, made };
    const path = join(root, MARKER_NAME);
    const fresh = `${path}.tmp-${process.pid}-new`;
    await writeFileAtomic(fresh, encodeMarker(marker), 0o600, true);
    try {
      // A link appears whole or not at all, and never replaces one that is there.
      await link(fresh, path);
    } finally {
      await rm(fresh, { force: true });
    }
    return new MarkerFile(marker);
  }

  get marker(): LabMarker {
    return this.#marker;
  }

  /** Reads the marker again: another process may have shortened the list. */
  async reload(): Promise<void> {
    const reading = await readMarker(this.#marker.root);
    if (reading.kind !== 'valid')
      throw new Error(`the marker ${join(this.#marker.root, MARKER_NAME)} is gone or damaged`);
    this.#marker = reading.marker;
  }

  has(path: string): boolean {
    return this.#marker.made.some((entry) => entry.path === path && entry.kind !== 'mounts');
  }

  /** Whether a directory on the list is known to have been made. */
  isMade(path: string): boolean {
    return this.#marker.made.some((entry) => entry.path === path && entry.identity !== undefined);
  }

  /** Adds entries to the list, or replaces those of the same kind and path. Must be called before the objects are made. */
  async put(...entries: readonly MarkerEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const made = [...this.#marker.made];
    for (const entry of entries) {
      const at = made.findIndex((other) => other.kind === entry.kind && other.path === entry.path);
      if (at < 0) made.push(entry);
      else made[at] = entry;
    }
    await this.#write(made);
  }

  /** Removes entries from the list, after the objects are gone. The directories in which the lab mounts stay. */
  async forget(paths: ReadonlySet<string>): Promise<void> {
    const made = this.#marker.made.filter((entry) => entry.kind === 'mounts' || !paths.has(entry.path));
    if (made.length !== this.#marker.made.length) await this.#write(made);
  }

  async #write(made: readonly MarkerEntry[]): Promise<void> {
    const marker = { ...this.#marker, made };
    await writeFileAtomic(join(marker.root, MARKER_NAME), encodeMarker(marker), 0o600, true);
    this.#marker = marker;
  }
}
