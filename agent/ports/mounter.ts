// The Mounter port: what volumes need from the kernel's mount table. agent/volumes implements it with util-linux,
// tests and the simulator in memory. Types only.

/** One line of /proc/self/mountinfo (proc(5)), octal escapes undone. */
export interface MountEntry {
  readonly id: number;
  readonly parent: number;
  /** "major:minor" of the filesystem. */
  readonly device: string;
  /** The directory of the filesystem that is mounted here ("/" unless it is a bind mount of less). */
  readonly root: string;
  readonly path: string;
  /** Per-mount options ("ro", "nosuid"). */
  readonly options: readonly string[];
  /** Propagation ("shared:12", "master:3"); empty is private. */
  readonly optional: readonly string[];
  readonly fsType: string;
  readonly source: string;
  /** Per-superblock options ("size=1024k"). */
  readonly superOptions: readonly string[];
}

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
