// How full the disks of a simulated machine are: the node's, and where it has one of its own, that of images and writable
// layers. Bytes are counted and never written: a container that fills a volume makes an empty file whose length is noted here.

import { existsSync } from 'node:fs';

const BLOCK_BYTES = 4096;

/** The part of statfs(2) that the agent reads. */
export interface FileSystemFigures {
  readonly bsize: number;
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
  readonly files: number;
  readonly ffree: number;
}

export interface DiskSpaceParts {
  /** Bytes of the node's disk. */
  readonly nodeBytes: number;
  /** Bytes of the disk that images and writable layers have for themselves; undefined where they are on the node's. */
  readonly imageBytes: number | undefined;
  /** Where images and writable layers are: paths below it are on that disk. */
  readonly imageRoot: string;
  /** What images take now, bytes. */
  readonly imagesUse: () => number;
}

type DiskName = 'node' | 'images';

export class SimDiskSpace {
  readonly #parts: DiskSpaceParts;
  /** By path on the machine: files of volumes. */
  readonly #files = new Map<string, number>();
  /** Writable layers: what each container wrote outside of its volumes, by path. */
  readonly #layers = new Map<object, Map<string, number>>();
  /** Taken on the node's disk by what is in no pod, bytes. */
  otherBytes = 0;

  constructor(parts: DiskSpaceParts) {
    this.#parts = parts;
  }

  get imageRoot(): string {
    return this.#parts.imageRoot;
  }

  /** Bytes. */
  get imagesUse(): number {
    return this.#parts.imagesUse();
  }

  /** Whether images have a disk of their own. */
  get isSplit(): boolean {
    return this.#parts.imageBytes !== undefined;
  }

  #diskOf(path: string): DiskName {
    const { imageRoot } = this.#parts;
    return this.isSplit && (path === imageRoot || path.startsWith(`${imageRoot}/`)) ? 'images' : 'node';
  }

  #capacity(disk: DiskName): number {
    const { nodeBytes, imageBytes } = this.#parts;
    return disk === 'images' ? (imageBytes ?? nodeBytes) : nodeBytes;
  }

  /** Bytes. */
  available(disk: DiskName): number {
    const isBoth = !this.isSplit;
    let used = 0;
    if (disk === 'node' || isBoth) used += this.otherBytes + this.#fileBytes();
    if (disk === 'images' || isBoth) used += this.imagesUse + this.#allLayers();
    return Math.max(0, this.#capacity(disk) - used);
  }

  /** A volume that was taken down has taken its files with it. */
  #fileBytes(): number {
    let sum = 0;
    for (const [path, bytes] of this.#files) {
      if (existsSync(path)) sum += bytes;
      else this.#files.delete(path);
    }
    return sum;
  }

  #allLayers(): number {
    let sum = 0;
    for (const layer of this.#layers.values()) for (const bytes of layer.values()) sum += bytes;
    return sum;
  }

  /** Inodes are made as they are needed, as on btrfs: none are counted. */
  statfs(path: string): FileSystemFigures {
    const disk = this.#diskOf(path);
    const free = Math.floor(this.available(disk) / BLOCK_BYTES);
    const blocks = Math.floor(this.#capacity(disk) / BLOCK_BYTES);
    return { bsize: BLOCK_BYTES, blocks, bfree: free, bavail: free, files: 0, ffree: 0 };
  }

  /** Which disk a path is on, as a device number that differs from any real one; undefined is the node's. */
  deviceOf(path: string): number | undefined {
    return this.#diskOf(path) === 'images' ? -1 : undefined;
  }

  /** The noted length of a file of the machine; undefined where nothing was noted. */
  bytesAt(path: string): number | undefined {
    return this.#files.get(path);
  }

  /** A container writes a file of a volume. False where the disk is full, and then nothing is written. */
  fillFile(path: string, bytes: number): boolean {
    if (bytes > this.available('node') + (this.#files.get(path) ?? 0)) return false;
    this.#files.set(path, bytes);
    return true;
  }

  /** A container writes into its own layer. `owner`: the container's config. */
  fillLayer(owner: object, path: string, bytes: number): boolean {
    const layer = this.#layers.get(owner) ?? new Map<string, number>();
    if (bytes > this.available(this.isSplit ? 'images' : 'node') + (layer.get(path) ?? 0)) return false;
    layer.set(path, bytes);
    this.#layers.set(owner, layer);
    return true;
  }

  /** What was at the path is replaced or removed. */
  clearFile(path: string): void {
    this.#files.delete(path);
  }

  clearInLayer(owner: object, path: string): void {
    this.#layers.get(owner)?.delete(path);
  }

  bytesInLayer(owner: object, path: string): number {
    return this.#layers.get(owner)?.get(path) ?? 0;
  }

  layerBytes(owner: object): number {
    let sum = 0;
    for (const bytes of this.#layers.get(owner)?.values() ?? []) sum += bytes;
    return sum;
  }

  /** A container was removed. */
  dropLayer(owner: object): void {
    this.#layers.delete(owner);
  }
}
