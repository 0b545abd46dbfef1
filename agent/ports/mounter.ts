// The Mounter port: what volumes need from the kernel's mount table. agent/volumes implements it with util-linux,
// tests and the simulator in memory. Types only.

import type { MountEntry } from '../../lib/mountinfo.ts';

export type { MountEntry };

export interface Mounter {
  /** Every mount of this process's namespace, in mount order. */
  list(): Promise<readonly MountEntry[]>;
  /** mount(8): `options` as after -o. Rejects with the program's own words. */
  mount(request: {
    readonly fsType?: string;
    readonly source: string;
    readonly target: string;
    readonly options?: readonly string[];
  }): Promise<void>;
  /** Gives an empty block device a file system; one that has anything on it is left alone. Rejects with mkfs's words. */
  formatIfEmpty(device: string, fsType: string): Promise<void>;
  /** Unmounts the topmost mount at `target`; succeeds when nothing is mounted there. Rejects when it is busy. */
  unmount(target: string): Promise<void>;
}
