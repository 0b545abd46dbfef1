// The Mounter port: what volumes need from the kernel's mount table. agent/volumes implements it with util-linux,
// tests and the simulator in memory. Types only.

import type { MountEntry } from '../../lib/mountinfo.ts';

export type { MountEntry };

export interface Mounter {
  /** Every mount of this process's namespace, in mount order. With `below` (without links), those elsewhere may be left out. */
  list(below?: string): Promise<readonly MountEntry[]>;
  /** mount(8): `options` as after -o. Rejects with the program's own words. */
  mount(request: {
    readonly fsType?: string;
    readonly source: string;
    readonly target: string;
    readonly options?: readonly string[];
  }): Promise<void>;
  /** Formats an empty block device; a device with any content is left alone. Rejects with mkfs's message. */
  formatIfEmpty(device: string, fsType: string): Promise<void>;
  /** Unmounts the topmost mount at `target`; succeeds when nothing is mounted there. Rejects when it is busy. */
  unmount(target: string): Promise<void>;
}
