// Facts about open directories for the removal of trees: the mount that one is on, and the names in it, a few at a
// time. Linux alone. Never changes anything on disk.
//
// Names are bytes and need not be UTF-8: here each is a string of as many characters (latin1).

import { closeSync, type Dir, fstatSync, opendirSync, openSync, readdirSync, readSync } from 'node:fs';
import { isErrno } from './errors.ts';

/** The path of a name in a directory that is open as `fd`: resolved from that very directory, as openat(2) does it. */
export function nameIn(fd: number, name: string): string | Buffer {
  const path = `/proc/self/fd/${fd}/${name}`;
  // A string is cheaper, and the same where the name is ASCII.
  return /[\x80-\xff]/.test(name) ? Buffer.from(path, 'latin1') : path;
}

const fdinfo = Buffer.alloc(4096);

/** The id of the mount that a descriptor is on (proc(5), fdinfo). Throws where /proc does not show it. */
export function mountIdOf(fd: number): number {
  const info = openSync(`/proc/self/fdinfo/${fd}`, 'r');
  let text: string;
  try {
    text = fdinfo.toString('latin1', 0, readSync(info, fdinfo));
  } finally {
    closeSync(info);
  }
  const [, id] = /^mnt_id:\s*(\d+)$/m.exec(text) ?? [];
  if (id === undefined) throw new Error(`/proc/self/fdinfo/${fd} shows no mnt_id: Linux 3.15 or newer is needed`);
  return Number(id);
}

/** The identity of a file among all that exist at the same time. */
export function identityOf(fd: number): string {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
}

export interface Entry {
  readonly name: string;
  /** As far as the listing shows it: false may also be "not known". */
  readonly isDirectory: boolean;
}

/** Bytes of a directory that is read as a whole, which is cheaper: some hundred names. */
const SMALL_BYTES = 16_384;
/** Names that are read at a time of a larger one. */
const BUFFERED = 256;

/** The names in a directory. An entry that is made or removed during the reading may be listed or not. */
export class Listing {
  readonly #fd: number;
  #stream: Dir | undefined;
  #entries: Entry[] | undefined;

  /** `fd` stays the caller's. A directory that is removed has no names. */
  constructor(fd: number) {
    this.#fd = fd;
    if (fstatSync(fd).size <= SMALL_BYTES) this.#entries = allEntries(fd);
    else this.#stream = ifThere(() => opendirSync(nameIn(fd, '.'), { encoding: 'latin1', bufferSize: BUFFERED }));
  }

  /** Undefined at the end. */
  next(): Entry | undefined {
    if (this.#entries === undefined) {
      try {
        const entry = this.#stream?.readSync();
        return entry ? { name: entry.name, isDirectory: entry.isDirectory() } : undefined;
      } catch (error) {
        if (!isErrno(error, 'ENOENT')) throw error;
        this.#entries = untypedEntries(this.#fd);
      }
    }
    return this.#entries.pop();
  }

  close(): void {
    this.#stream?.closeSync();
    this.#stream = undefined;
    this.#entries = [];
  }
}

function ifThere<T>(body: () => T): T | undefined {
  try {
    return body();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function allEntries(fd: number): Entry[] {
  const entries = ifThere(() => readdirSync(nameIn(fd, '.'), { encoding: 'latin1', withFileTypes: true }));
  return entries?.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() })) ?? untypedEntries(fd);
}

/**
 * Where a file system does not show types (ext4 without the feature "filetype", some of FUSE's), Node looks every name
 * up, and fails with ENOENT for one that is not UTF-8 or was removed since. Here it does not.
 */
function untypedEntries(fd: number): Entry[] {
  const names = ifThere(() => readdirSync(nameIn(fd, '.'), 'latin1')) ?? [];
  return names.map((name) => ({ name, isDirectory: false }));
}
