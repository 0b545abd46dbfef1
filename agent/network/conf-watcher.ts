// The network configuration in force, kept current by inotify: the conf dir, the network's own plugin directory, and
// while the conf dir does not exist, its nearest ancestor. Polls only while the machine has no inotify watch left.

import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConflistError, type LoadedNetwork, loadNetwork } from '../../cni/conflist.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { type DirectoryWatch, watchDirectory } from '../../lib/watch-directory.ts';

export type NetworkConfig =
  | { readonly kind: 'loaded'; readonly network: LoadedNetwork }
  | { readonly kind: 'missing' }
  | { readonly kind: 'broken'; readonly error: Error };

/** The directory, or the nearest one above it that exists; with its inode, since another one may take its name. */
async function nearestDir(path: string): Promise<{ readonly path: string; readonly inode: number }> {
  for (let dir = path; ; dir = dirname(dir)) {
    try {
      const found = await stat(dir);
      if (found.isDirectory()) return { path: dir, inode: found.ino };
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    }
    if (dir === dirname(dir)) throw new Error(`${path}: not even the root directory exists`);
  }
}

export class ConfWatcher {
  readonly #confDir: string;
  readonly #onChange: () => void;
  readonly #onError: (what: string, error: unknown) => void;
  readonly #clock: Clock;
  readonly #watchers = new Map<string, { readonly inode: number; readonly watcher: DirectoryWatch }>();
  #config: NetworkConfig = { kind: 'missing' };
  /** Problems of the last reload, which are not reported again. */
  #problems: ReadonlySet<string> = new Set();
  #loading: Promise<void> | undefined;
  #reloadAgain = false;
  #closed = false;

  constructor(confDir: string, onChange: () => void, onError: (what: string, error: unknown) => void, clock: Clock) {
    this.#clock = clock;
    this.#confDir = confDir;
    this.#onChange = onChange;
    this.#onError = onError;
  }

  /** Loads what is there and watches from then on. */
  async start(): Promise<void> {
    await this.#reload();
  }

  close(): void {
    this.#closed = true;
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** The configuration as of the last event that was seen; waits for a reload that is under way. */
  async current(): Promise<NetworkConfig> {
    await this.#loading;
    return this.#config;
  }

  #reload(): Promise<void> {
    if (this.#loading !== undefined) {
      this.#reloadAgain = true;
      return this.#loading;
    }
    this.#loading = this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    do {
      this.#reloadAgain = false;
      // Watch first, then read: a change in between is seen as an event, and read again.
      const extra = this.#config.kind === 'loaded' ? [join(this.#confDir, this.#config.network.list.name)] : [];
      await this.#watch(extra);
      const before = describe(this.#config);
      this.#config = await this.#read();
      if (this.#config.kind === 'loaded' && !extra.includes(join(this.#confDir, this.#config.network.list.name))) {
        this.#reloadAgain = true;
      }
      if (describe(this.#config) !== before && !this.#closed) this.#onChange();
    } while (this.#reloadAgain && !this.#closed);
  }

  async #read(): Promise<NetworkConfig> {
    try {
      const network = await loadNetwork(this.#confDir);
      if (network === undefined) return { kind: 'missing' };
      const known = this.#problems;
      this.#problems = new Set(network.skipped.map(errorMessage));
      for (const problem of network.skipped) {
        if (!known.has(errorMessage(problem))) this.#onError('CNI configuration skipped', problem);
      }
      return { kind: 'loaded', network };
    } catch (error) {
      if (error instanceof ConflistError) return { kind: 'broken', error };
      return { kind: 'broken', error: new Error(`${this.#confDir}: ${errorMessage(error)}`, { cause: error }) };
    }
  }

  /** Makes the set of watches right: the conf dir (or its nearest ancestor) and those of `extra` that exist. */
  async #watch(extra: readonly string[]): Promise<void> {
    try {
      // Once more after watching: a directory that came between the two sent no event.
      for (let changed = true; changed && !this.#closed; )
        changed = this.#updateWatches(await this.#directoriesToWatch(extra));
    } catch (error) {
      // ENOENT: the directory was removed: reload again.
      if (!isErrno(error, 'ENOENT')) this.#onError(`watching ${this.#confDir}`, error);
      else this.#reloadAgain = true;
    }
  }

  /** The directories to watch, with their inodes. */
  async #directoriesToWatch(extra: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const nearest = await nearestDir(this.#confDir);
    const wanted = new Map([[nearest.path, nearest.inode]]);
    for (const dir of extra) {
      const found = await nearestDir(dir);
      if (found.path === dir) wanted.set(dir, found.inode);
    }
    return wanted;
  }

  /** Watches exactly `wanted`. True when that changed anything. */
  #updateWatches(wanted: ReadonlyMap<string, number>): boolean {
    let changed = false;
    if (this.#closed) return changed;
    for (const [path, { inode, watcher }] of this.#watchers) {
      if (wanted.get(path) === inode) continue;
      watcher.close();
      this.#watchers.delete(path);
      changed = true;
    }
    for (const [path, inode] of wanted) {
      if (this.#watchers.has(path)) continue;
      const watcher = watchDirectory(path, {
        changed: () => this.#changed(),
        failed: (error) => this.#onError(`watching ${path}`, error),
        polling: (error) => this.#onError(`watching ${path}: changes are seen late`, error),
        clock: this.#clock,
      });
      this.#watchers.set(path, { inode, watcher });
      changed = true;
    }
    return changed;
  }

  #changed(): void {
    if (this.#closed) return;
    this.#reload().catch((error: unknown) => this.#onError(`reading ${this.#confDir}`, error));
  }
}

/** Two configurations are the same when this is. */
function describe(config: NetworkConfig): string {
  switch (config.kind) {
    case 'missing':
      return 'missing';
    case 'broken':
      return `broken ${config.error.message}`;
    case 'loaded':
      return `loaded ${config.network.file} ${JSON.stringify(config.network.list)}`;
  }
}
