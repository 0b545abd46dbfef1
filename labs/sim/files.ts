// The disk of a simulated node: a real directory in memory, whose calls are all made at once. Real asynchronous ones come
// back in an order that no seed decides. While a world lives, node:fs/promises answers this way in the whole process.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeSettings } from '../../agent/runtime/options.ts';
import type { SimDiskSpace } from './disk-space.ts';
import { PLUGINS } from './network.ts';

const fs = process.getBuiltinModule('node:fs');
const promises = process.getBuiltinModule('node:fs/promises');

/** Where the agent believes static pods' manifests to be: their uids are made of it, so that it is the same each time. */
export const MANIFESTS = '/manifests';

/** The type of the file system that network namespaces are on. */
const NSFS_MAGIC = 0x6e736673;

/** The disk is nearly empty. */
const SPACE = { bsize: 4096, blocks: 10_000_000, bfree: 9_000_000, bavail: 9_000_000, files: 0, ffree: 0 };

/** What stat(2) counts in, bytes. */
const STAT_BLOCK = 512;

/** Which mount a path lies on, as the kernel tells by the device; undefined is the disk itself. */
export type DeviceOf = (path: string) => number | undefined;

const NO_SUCH_FILE = Object.assign(new Error('ENOENT: no such file or directory'), { code: 'ENOENT' });

function busy(path: string): Error {
  return Object.assign(new Error(`EBUSY: resource busy or locked, rmdir '${path}'`), { code: 'EBUSY' });
}

export class SimDisk {
  readonly root: string;
  readonly #original = { ...promises };
  readonly #readFileSync = fs.readFileSync;
  /** Directories whose content stays until a change of it is reported: the agent lists them all day. */
  readonly #known = new Map<string, ReturnType<typeof fs.statSync>>();
  #manifests: string[] | undefined;

  constructor() {
    const memory = fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
    this.root = mkdtempSync(join(memory, 'nodelet-sim-'));
    mkdirSync(join(this.root, 'pods'));
    mkdirSync(this.pluginDir);
    for (const name of PLUGINS) writeFileSync(join(this.pluginDir, name), '', { mode: 0o755 });
  }

  /** Where the CNI plugins are. */
  get pluginDir(): string {
    return join(this.root, 'plugins');
  }

  /** Where the agent's runtime adapter has its files, and what else it is configured with. */
  get nodeSettings(): NodeSettings {
    const { root } = this;
    return {
      rootDir: root,
      podLogsDir: join(root, 'logs/pods'),
      containerLogsDir: join(root, 'logs/containers'),
      cgroups: { root: '/', driver: 'cgroupfs' },
      cgroupVersion: 2,
      swapController: false,
      clusterDNS: [],
      clusterDomain: 'cluster.local',
      resolvConf: '',
      seccompDefault: false,
      seccompProfileRoot: join(root, 'seccomp'),
      cpuCFSQuota: true,
      cpuCFSQuotaPeriodUs: 100_000,
      memoryCapacityBytes: 8 * 1024 ** 3,
      selinux: false,
      hugepageSizes: [],
    };
  }

  /** Where the machine's own figures of processes would be: it shows none. */
  get procDir(): string {
    return join(this.root, 'proc');
  }

  /**
   * From now on calls are made at once, and mounts are seen. `cgroups`: the files below its mount point, which are on no
   * disk: the agent reads them in every round. `space`: how full the disks are; without it, one disk that is nearly empty.
   */
  begin(
    deviceOf: DeviceOf,
    isMountPoint: (path: string) => boolean,
    isNamespace: (path: string) => boolean,
    cgroups: { readonly mountPoint: string; read(path: string): string | undefined },
    space?: SimDiskSpace,
  ): void {
    const at = (path: string): string => (path.startsWith(MANIFESTS) ? join(this.root, path) : path);
    const replaced = {
      lstat: async (path: string) => {
        const found = fs.lstatSync(path);
        const device = deviceOf(path);
        if (device !== undefined) found.dev = device;
        const bytes = space?.bytesAt(path);
        if (bytes !== undefined) found.blocks = Math.ceil(bytes / STAT_BLOCK);
        return found;
      },
      rmdir: async (path: string) => {
        if (isMountPoint(path)) throw busy(path);
        fs.rmdirSync(path);
      },
      opendir: async (path: string) => fs.readdirSync(path, { withFileTypes: true }),
      statfs: async (path: string) => ({
        type: isNamespace(path) ? NSFS_MAGIC : 0,
        ...(space?.statfs(path) ?? SPACE),
      }),
      stat: async (path: string) => {
        const known = this.#known.get(path);
        if (known !== undefined) return known;
        const found = fs.statSync(at(path));
        const device = space?.deviceOf(path);
        if (device !== undefined) found.dev = device;
        if (path === MANIFESTS || path === this.root || path === space?.imageRoot) this.#known.set(path, found);
        return found;
      },
      readdir: async (path: string, options?: { withFileTypes: true }) => {
        if (options !== undefined) return fs.readdirSync(path, options);
        if (path !== MANIFESTS) return fs.readdirSync(at(path));
        this.#manifests ??= fs.readdirSync(at(path));
        return [...this.#manifests];
      },
      mkdir: async (path: string, options?: Parameters<typeof fs.mkdirSync>[1]) => fs.mkdirSync(path, options),
      readFile: async (path: string, encoding?: BufferEncoding) =>
        encoding === undefined ? fs.readFileSync(at(path)) : fs.readFileSync(at(path), encoding),
      unlink: async (path: string) => fs.unlinkSync(path),
      chmod: async (path: string, mode: number) => fs.chmodSync(path, mode),
      writeFile: async (path: string, data: string) => fs.writeFileSync(path, data),
    };
    Object.assign(promises, replaced);
    const onNoDisk = [`${cgroups.mountPoint}/`, `${this.procDir}/`];
    const readFileSync = this.#readFileSync;
    const readSync = (path: unknown, ...options: [BufferEncoding]): string => {
      const isHere = typeof path === 'string' && onNoDisk.some((directory) => path.startsWith(directory));
      if (!isHere) return Reflect.apply(readFileSync, fs, [path, ...options]);
      const text = cgroups.read(path);
      if (text === undefined) throw NO_SUCH_FILE;
      return text;
    };
    Object.assign(fs, { readFileSync: readSync });
    syncBuiltinESMExports();
  }

  /** A manifest was written or removed. */
  manifestsChanged(): void {
    this.#known.delete(MANIFESTS);
    this.#manifests = undefined;
  }

  /** Logs, links to logs, and whatever else of any pod is left there. */
  leftovers(): string[] {
    const { podLogsDir, containerLogsDir } = this.nodeSettings;
    return [podLogsDir, containerLogsDir].flatMap((directory) =>
      fs.existsSync(directory) ? fs.readdirSync(directory).map((name) => `${directory}/${name}`) : [],
    );
  }

  /** Attachments that the agent remembers. */
  attachments(): string[] {
    const directory = join(this.root, 'cni/attachments');
    return fs.existsSync(directory) ? fs.readdirSync(directory) : [];
  }

  /** The process is as it was, and the directory is gone. */
  end(): void {
    Object.assign(promises, this.#original);
    Object.assign(fs, { readFileSync: this.#readFileSync });
    syncBuiltinESMExports();
    rmSync(this.root, { recursive: true, force: true });
  }
}
