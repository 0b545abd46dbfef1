// The one recursive removal of this code base. Works by file descriptors, so that no process can exchange what a name leads to
// between the check and the removal. It never follows a symbolic link and never crosses a mount point, also not one of
// the same device: the content of a mount is not part of the tree.
//
// Node has no openat(2): a child of a directory that is open as descriptor n is reached as /proc/self/fd/n/<name>, which
// the kernel resolves from that very directory. The mount that a descriptor is on is read from /proc/self/fdinfo/<n>
// (`mnt_id`, proc(5)). unlink(2) and rmdir(2) of a mount point are EBUSY.

import { closeSync, constants, openSync, readFileSync, readlinkSync, rmdirSync, unlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';
import { type Entry, identityOf, Listing, mountIdOf, nameIn } from './directory-handle.ts';
import { errnoOf, errorMessage, isErrno } from './errors.ts';
import { firstMountUnder } from './mountinfo.ts';

/** Linux's O_PATH, which Node has no name for: a handle to the place itself, whatever it is. */
const O_PATH = 0o10000000;
const PLACE = O_PATH | constants.O_NOFOLLOW;
const PARENT = O_PATH | constants.O_DIRECTORY;
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Names handled in one turn of the event loop: some milliseconds, where the thread pool takes as long for each. */
const BATCH = 256;
/** Directories on the way down that are open at a time; those above them are reached again through "..". */
const OPEN_DIRECTORIES = 16;
/** Directories with content that are kept from one listing; a larger directory is listed again. */
const REMEMBERED = 1024;
/** How often a directory may turn out to have new content before that is an error. */
const CHANGES = 20;
/** How often one name may be exchanged between two calls before that is an error: a few milliseconds of calls. */
const EXCHANGES = 1000;

/** The tree contains a mount point; nothing behind it was removed. */
export class MountPointError extends Error {
  override name = 'MountPointError';
  readonly code = 'EBUSY';
  /** The mount point. Bytes that are not UTF-8 are shown as U+FFFD. */
  readonly path: string;

  constructor(path: string) {
    super(`${path} is a mount point: neither it nor what is mounted there is removed; unmount it first`);
    this.path = path;
  }
}

export interface RemoveTreeOptions {
  /**
   * Does not read the mount table first, which costs some 10 µs for each mount of the machine. For small trees of a busy
   * path: mount points are refused all the same, though what was listed before them is removed then.
   */
  readonly withoutTable?: boolean;
}

/**
 * Removes `path`, an absolute path, and everything below it. The way to its last name is resolved as usual; a link under
 * the last name is removed itself. Succeeds when there is nothing.
 *
 * Rejects with MountPointError when there is a mount point in the tree, `path` itself included. When the mount table
 * shows it beforehand, nothing is removed at all. When it is made during the removal, what was removed until then is gone, the
 * rest stays, and so does all that is behind the mount. Other failures have the errno as `code` and name the path.
 */
export async function removeTree(path: string, options: RemoveTreeOptions = {}): Promise<void> {
  const name = latin1(basename(path));
  if (!isAbsolute(path) || ['', '.', '..'].includes(name)) {
    throw new RangeError(`"${path}" is not removed: that takes an absolute path that ends in a name`);
  }
  let parent: number;
  try {
    parent = openSync(dirname(path), PARENT);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  const removal = new Removal(parent, latin1(dirname(path)));
  try {
    // Most often there is nothing, or a file, or an empty directory.
    for (let tries = 0; removal.removeOne(name, true) === 'content'; tries++) {
      if (tries > CHANGES) throw removal.failure(name, busyError());
      if (options.withoutTable !== true) refuseMountsUnder(parent, name);
      removal.enter(name);
      while (!removal.work()) await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    removal.close();
  }
}

/** Throws MountPointError when the mount table of this process has a mount at or below the name. */
function refuseMountsUnder(parent: number, name: string): void {
  const above = readlinkSync(`/proc/self/fd/${parent}`, 'latin1');
  const path = `${above === '/' ? '' : above}/${name}`;
  const mount = firstMountUnder(readFileSync('/proc/self/mountinfo', 'latin1'), path);
  if (mount !== undefined) throw new MountPointError(utf8(mount));
}

// Names are bytes, and need not be UTF-8: inside this file each is a string of as many characters (latin1).
const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
const utf8 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

function busyError(): Error {
  return Object.assign(new Error('other processes keep creating files there'), { code: 'ENOTEMPTY' });
}

/** A directory on the way down. */
interface Level {
  /** Undefined while it is closed, to spare descriptors. */
  fd: number | undefined;
  readonly name: string;
  /** The id of the mount that it is on. */
  readonly mount: number;
  /** What it must be when it is opened again. */
  identity: string;
  /** While it is listed. */
  listing: Listing | undefined;
  /** Everything that the last listing met was removed or is in `inside`. */
  listed: boolean;
  /** Names of directories in it that have content. */
  readonly inside: string[];
  /** How often new content was found in it. */
  changes: number;
}

function newLevel(fd: number, name: string): Level {
  return { fd, name, mount: mountIdOf(fd), identity: '', listing: undefined, listed: false, inside: [], changes: 0 };
}

/** One removal under way. Its methods take names in the current directory. */
class Removal {
  /** The directory that the tree is in, which stays, and from there down to the one that is being emptied. */
  readonly #levels: Level[];
  readonly #prefix: string;

  /** Takes over the descriptor. */
  constructor(parent: number, prefix: string) {
    this.#prefix = prefix;
    try {
      this.#levels = [newLevel(parent, '')];
    } catch (error) {
      closeSync(parent);
      throw error;
    }
  }

  close(): void {
    for (const { fd, listing } of this.#levels) {
      listing?.close();
      if (fd !== undefined) closeSync(fd);
    }
  }

  /** Removes for one turn of the event loop. Returns whether it is back in the parent directory of the tree. */
  work(): boolean {
    for (let left = BATCH; left > 0; left--) {
      if (this.#levels.length === 1) return true;
      const level = this.#current();
      const entry = this.#next(level);
      if (entry !== undefined) {
        if (this.removeOne(entry.name, entry.isDirectory) === 'content') level.inside.push(entry.name);
        continue;
      }
      const inside = level.inside.pop();
      if (inside !== undefined) this.enter(inside);
      else this.#leave(level);
    }
    return false;
  }

  /** The next name of the listing; undefined at its end, and while enough names are kept. */
  #next(level: Level): Entry | undefined {
    if (level.listed) return undefined;
    try {
      level.listing ??= new Listing(this.#fd());
      const entry = level.inside.length < REMEMBERED ? level.listing.next() : undefined;
      if (entry !== undefined) return entry;
    } catch (error) {
      throw this.failure('', error);
    }
    if (level.inside.length >= REMEMBERED) level.changes--;
    level.listing.close();
    level.listing = undefined;
    level.listed = true;
    return undefined;
  }

  /** Removes what is not a directory, and a directory that is empty. `content`: one that is not. */
  removeOne(name: string, isDirectory: boolean): 'removed' | 'content' {
    const path = this.#at(name);
    for (let changes = 0; ; changes++) {
      try {
        if (isDirectory) rmdirSync(path);
        else unlinkSync(path);
        return 'removed';
      } catch (error) {
        const code = errnoOf(error);
        if (code === 'ENOENT') return 'removed';
        if (isDirectory && (code === 'ENOTEMPTY' || code === 'EEXIST')) return 'content';
        if (code === 'EBUSY' && this.#isMountPoint(name)) throw new MountPointError(this.#shown(name));
        const isOther = isDirectory ? code === 'ENOTDIR' : code === 'EISDIR';
        if (!isOther || changes === EXCHANGES) throw this.failure(name, error);
        isDirectory = !isDirectory;
      }
    }
  }

  #isMountPoint(name: string): boolean {
    let fd: number;
    try {
      fd = openSync(this.#at(name), PLACE);
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return false;
      throw this.failure(name, error);
    }
    try {
      return mountIdOf(fd) !== this.#current().mount;
    } finally {
      closeSync(fd);
    }
  }

  /** Goes down into a directory that has content. */
  enter(name: string): void {
    let fd: number;
    try {
      fd = openSync(this.#at(name), DIRECTORY);
    } catch (error) {
      // Removed, or replaced by a file or link: handled when the directory above turns out not to be empty.
      if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return;
      throw this.failure(name, error);
    }
    try {
      const level = newLevel(fd, name);
      if (level.mount !== this.#current().mount) throw new MountPointError(this.#shown(name));
      this.#closeOneAbove();
      this.#levels.push(level);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Removes the current directory, which ought to be empty, and goes up. */
  #leave(level: Level): void {
    this.#reopenAbove(level);
    this.#levels.pop();
    try {
      if (this.removeOne(level.name, true) === 'removed') {
        if (level.fd !== undefined) closeSync(level.fd);
        level.fd = undefined;
        return;
      }
    } catch (error) {
      this.#levels.push(level);
      throw error;
    }
    this.#levels.push(level);
    level.listed = false;
    if (++level.changes > CHANGES) throw this.failure('', busyError());
  }

  /** Keeps few descriptors open, however deep the tree is. The directory that the tree is in stays open. */
  #closeOneAbove(): void {
    const index = this.#levels.length - OPEN_DIRECTORIES;
    const level = index > 0 ? this.#levels[index] : undefined;
    if (level?.fd === undefined) return;
    level.identity = identityOf(level.fd);
    closeSync(level.fd);
    level.fd = undefined;
  }

  /** Opens the directory above again, if it is closed. Throws when the current one was moved to another parent. */
  #reopenAbove(level: Level): void {
    const above = this.#levels.at(-2);
    if (above === undefined || above.fd !== undefined) return;
    let fd: number;
    try {
      fd = openSync(this.#at('..'), DIRECTORY);
    } catch (error) {
      throw this.failure('', error);
    }
    // Closed with the rest, whatever it is.
    above.fd = fd;
    if (mountIdOf(fd) === level.mount && identityOf(fd) === above.identity) return;
    throw this.failure('', new Error('it was moved to another directory during the removal'));
  }

  #current(): Level {
    const level = this.#levels.at(-1);
    if (level === undefined) throw new Error('the removal has ended already');
    return level;
  }

  /** Of the current directory, which is always open. */
  #fd(): number {
    const { fd } = this.#current();
    if (fd === undefined) throw new Error('the directory that is being emptied is not open');
    return fd;
  }

  #at(name: string): string | Buffer {
    return nameIn(this.#fd(), name);
  }

  /** The path for messages; a very long one without its middle. */
  #shown(name: string): string {
    const names = [...this.#levels.slice(1).map((level) => level.name), ...(name === '' ? [] : [name])];
    const path = utf8([this.#prefix === '/' ? '' : this.#prefix, ...names].join('/'));
    return path.length <= 4096 ? path : `${path.slice(0, 2048)}…${path.slice(-2048)}`;
  }

  /** `error` with the path that it is about, which it only knows as a descriptor. '' is the current directory. */
  failure(name: string, error: unknown): Error {
    const why = errorMessage(error).replace(/, \w+ '\/proc\/self\/fd\/.*$/s, '');
    const failure = new Error(`cannot remove ${this.#shown(name)}: ${why}`, { cause: error });
    const code = errnoOf(error);
    return code === undefined ? failure : Object.assign(failure, { code, path: this.#shown(name) });
  }
}
