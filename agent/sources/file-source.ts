// Static pods from a directory of manifests (or one file): staticPodPath. A change is detected by inotify within a moment;
// every fileCheckFrequency everything is read anyway. An invalid file is logged once and does not affect others.

import type { Stats } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { rfc3339Milli } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import { CONFIG_SEEN } from '../model/static-pods.ts';
import type { PodSource } from '../ports/api.ts';
import { decodeAside } from './decode-aside.ts';
import { MAX_MANIFEST_BYTES, ManifestError, podOf } from './manifest.ts';
import { Complaints, type FoundPod, podSet, samePods } from './pod-set.ts';
import { type PathWatcher, watchPath } from './watch-path.ts';

export interface FilePodSourceOptions {
  /** A directory, or one file. It need not exist yet. */
  readonly path: string;
  readonly nodeName: string;
  /** fileCheckFrequency, ms. */
  readonly checkMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly watch?: typeof watchPath;
}

/** Writers touch a file more than once: looking waits this long after the first sign. ms. */
const GATHER_MS = 20;

interface KnownFile {
  /** What the file was when it was read: size, times and inode. */
  readonly stamp: string;
  readonly outcome: { readonly pod: Pod } | { readonly wrong: string };
  /** The newest pod that could be used; still run until the next full scan when the file has become invalid. */
  readonly lastGood: Pod | undefined;
}

export function createFilePodSource(options: FilePodSourceOptions): PodSource {
  return new FilePodSource(options);
}

class FilePodSource implements PodSource {
  readonly name = 'file';
  readonly #options: FilePodSourceOptions;
  readonly #complaints: Complaints;
  readonly #watcher: PathWatcher;
  #listener: ((pods: ReadonlyMap<string, Pod>) => void) | undefined;
  #files = new Map<string, KnownFile>();
  #listed: ReadonlyMap<string, Pod> | undefined;
  #looking = false;
  #again = false;
  #soon: Timer | undefined;
  #periodic: Timer | undefined;

  constructor(options: FilePodSourceOptions) {
    this.#options = options;
    this.#complaints = new Complaints(options.log);
    this.#watcher = (options.watch ?? watchPath)(
      options.path,
      () => this.#changed(),
      (error) =>
        options.log('warn', `${options.path} cannot be watched, changes are seen late: ${errorMessage(error)}`),
      options.clock,
    );
  }

  start(listener: (pods: ReadonlyMap<string, Pod>) => void): void {
    this.#listener = listener;
    void this.#look(true);
    this.#scheduleFullLook();
  }

  stop(): void {
    this.#listener = undefined;
    this.#soon?.cancel();
    this.#periodic?.cancel();
    this.#watcher.close();
  }

  #scheduleFullLook(): void {
    this.#periodic = this.#options.clock.after(this.#options.checkMs, () => {
      void this.#look(true);
      this.#scheduleFullLook();
    });
  }

  #changed(): void {
    if (this.#listener === undefined || this.#soon !== undefined) return;
    this.#soon = this.#options.clock.after(GATHER_MS, () => {
      this.#soon = undefined;
      void this.#look(false);
    });
  }

  /** One scan at a time; changes during a scan are read right after. */
  async #look(full: boolean): Promise<void> {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    do {
      this.#again = false;
      try {
        await this.#read(full);
      } catch (error) {
        // What runs keeps running: an unreadable directory does not remove its pods.
        this.#complaints.are(new Map([[this.#options.path, `cannot be read: ${errorMessage(error)}`]]));
      }
    } while (this.#again && this.#listener !== undefined);
    this.#looking = false;
  }

  async #read(full: boolean): Promise<void> {
    const complaints = new Map<string, string>();
    try {
      await this.#watcher.follow();
    } catch (error) {
      // For example without permission: the full scan remains.
      complaints.set(`${this.#options.path} (watch)`, `changes are seen late: ${errorMessage(error)}`);
    }
    const files = new Map<string, KnownFile>();
    const found: FoundPod[] = [];
    for (const path of await this.#listFiles(complaints)) {
      const file = await this.#readFile(path, full, complaints);
      if (file === undefined) continue;
      files.set(path, file);
      if ('wrong' in file.outcome) complaints.set(path, file.outcome.wrong);
      const pod = 'pod' in file.outcome ? file.outcome.pod : file.lastGood;
      if (pod !== undefined) found.push({ pod, from: path });
    }
    this.#files = files;
    const pods = podSet(found, (from, what) => complaints.set(from, what));
    this.#complaints.are(complaints);
    if (this.#listed !== undefined && samePods(this.#listed, pods)) return;
    this.#listed = pods;
    this.#listener?.(pods);
  }

  /** The files to read, sorted by name; names that begin with a dot are ignored. */
  async #listFiles(complaints: Map<string, string>): Promise<readonly string[]> {
    const { path } = this.#options;
    try {
      if (!(await stat(path)).isDirectory()) return [path];
      const names = await readdir(path);
      return names
        .filter((name) => !name.startsWith('.'))
        .sort()
        .map((name) => join(path, name));
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
      complaints.set(path, 'does not exist, ignoring');
      return [];
    }
  }

  /** Undefined for what is no file, or is gone again. */
  async #readFile(path: string, full: boolean, complaints: Map<string, string>): Promise<KnownFile | undefined> {
    const known = this.#files.get(path);
    const lastGood = known === undefined || full ? undefined : goodPod(known);
    try {
      const found = await stat(path);
      if (!found.isFile()) {
        const what = found.isDirectory() ? 'not recursing into manifest path' : 'is neither a directory nor a file';
        complaints.set(path, what);
        return undefined;
      }
      const stamp = stampOf(found);
      if (known?.stamp === stamp) return full && 'wrong' in known.outcome ? { ...known, lastGood: undefined } : known;
      if (found.size > MAX_MANIFEST_BYTES) {
        return { stamp, outcome: { wrong: `is larger than ${MAX_MANIFEST_BYTES} bytes` }, lastGood };
      }
      return { stamp, ...(await this.#parse(path, await readFile(path, 'utf8'), known, lastGood)) };
    } catch (error) {
      if (isErrno(error, 'ENOENT')) {
        complaints.set(path, 'is a link to nothing, or is gone again');
        return undefined;
      }
      return { stamp: '', outcome: { wrong: `cannot be read: ${errorMessage(error)}` }, lastGood };
    }
  }

  async #parse(
    path: string,
    source: string,
    known: KnownFile | undefined,
    lastGood: Pod | undefined,
  ): Promise<Pick<KnownFile, 'outcome' | 'lastGood'>> {
    const { nodeName, clock } = this.#options;
    try {
      const seen = rfc3339Milli(clock.now());
      const pod = podOf(await decodeAside(source), { source: 'file', location: path, nodeName, seen });
      const before = known === undefined ? undefined : goodPod(known);
      // Touched, not changed: the pod that runs stays the same object.
      const same = before !== undefined && sameButSeen(before, pod) ? before : pod;
      return { outcome: { pod: same }, lastGood: same };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      return { outcome: { wrong: error.message }, lastGood };
    }
  }
}

function goodPod(file: KnownFile): Pod | undefined {
  return 'pod' in file.outcome ? file.outcome.pod : file.lastGood;
}

function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
}

/** Whether two readings of a manifest are of the same pod, whenever it was seen. Pure. */
export function sameButSeen(a: Pod, b: Pod): boolean {
  const content = ({ metadata: { annotations, ...metadata }, spec }: Pod): unknown => [
    metadata,
    { ...annotations, [CONFIG_SEEN]: '' },
    spec,
  ];
  return sameJson(content(a), content(b));
}
