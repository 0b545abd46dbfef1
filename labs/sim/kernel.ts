// The mount table of a simulated node, and mount(8) and umount(8) on it. Content does not move: what is mounted is seen
// in the place itself. A mount can be busy for a while.

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { MountEntry, Mounter } from '../../agent/ports/mounter.ts';
import type { Line } from './line.ts';
import type { Breakable } from './witness.ts';

const DEADLINE_MS = 120_000;

interface Mounted {
  readonly entry: MountEntry;
  /** Who made it: what a driver mounts, only the driver unmounts. */
  readonly by: 'agent' | 'driver';
}

export class SimKernel implements Mounter {
  readonly #line: Line;
  readonly #rules: Breakable;
  /** Called before every unmount. */
  readonly #onUnmount: (path: string) => void;
  #mounts: Mounted[] = [];
  #ids = 100;
  /** Unmounts of the agent are refused: a process is in there. */
  busy = false;

  constructor(line: Line, rules: Breakable, onUnmount: (path: string) => void) {
    this.#line = line;
    this.#rules = rules;
    this.#onUnmount = onUnmount;
  }

  get paths(): readonly string[] {
    return this.#mounts.map(({ entry }) => entry.path);
  }

  isMountPoint(path: string): boolean {
    return this.#mounts.some(({ entry }) => entry.path === path);
  }

  /** The mount that a path lies on, as a device number; undefined is the disk. */
  deviceOf(path: string): number | undefined {
    let best: MountEntry | undefined;
    for (const { entry } of this.#mounts) {
      const inside = path === entry.path || path.startsWith(`${entry.path}/`);
      if (inside && entry.path.length >= (best?.path.length ?? 0)) best = entry;
    }
    return best?.id;
  }

  list(): Promise<readonly MountEntry[]> {
    return Promise.resolve(this.#mounts.map(({ entry }) => entry));
  }

  mount(request: Parameters<Mounter['mount']>[0]): Promise<void> {
    const { fsType = 'none', source, target } = request;
    return this.#line.perform('mount', `${fsType} ${target}`, DEADLINE_MS, () => {
      if (!existsSync(target)) throw new Error(`mount: ${target}: mount point does not exist.`);
      this.add(target, fsType, source, 'agent');
    });
  }

  /** The simulated machine has no block devices. */
  formatIfEmpty(device: string): Promise<void> {
    return Promise.reject(new Error(`no such device: ${device}`));
  }

  unmount(target: string): Promise<void> {
    return this.#line.perform('umount', target, DEADLINE_MS, () => {
      if (this.busy) throw new Error(`umount: ${target}: target is busy.`);
      this.remove(target, 'agent');
    });
  }

  add(path: string, fsType: string, source: string, by: Mounted['by']): void {
    const id = ++this.#ids;
    const entry: MountEntry = {
      id,
      parent: 1,
      device: `0:${id}`,
      rootDeleted: false,
      root: '/',
      path,
      options: ['rw'],
      optional: [],
      fsType,
      source,
      superOptions: ['rw'],
    };
    this.#mounts.push({ entry, by });
  }

  remove(path: string, by: Mounted['by']): void {
    const index = this.#mounts.findLastIndex(({ entry }) => entry.path === path);
    const mounted = this.#mounts[index];
    if (mounted === undefined) return;
    this.#onUnmount(path);
    if (mounted.by !== by) this.#rules.break(`the ${by} unmounted ${path}, which the ${mounted.by} mounted`);
    this.#mounts.splice(index, 1);
    // What was in memory is gone with it.
    if (mounted.entry.fsType === 'tmpfs' && !this.isMountPoint(path)) {
      for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true });
    }
  }
}
