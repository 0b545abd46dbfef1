// What is wrong with a volume, for VolumeCondition: decided from its image, its mount and the disk below. Pure.

import type { FilesystemType } from './capability.ts';
import { DriverError } from './errors.ts';
import type { ImageSize } from './images.ts';

export interface VolumeState {
  readonly capacityBytes: number;
  /** Undefined when the image file is gone. */
  readonly image: ImageSize | undefined;
  /** Free on the disk that holds the image. */
  readonly freeBytes: number;
}

/** The mount table's entry of a place where the volume should be. */
export interface PlaceState {
  readonly path: string;
  readonly mounted: boolean;
  /** Options of the mounted filesystem, as the kernel has them now; empty for a block volume. */
  readonly superOptions: readonly string[];
  /** Whether it was mounted read-only on purpose. */
  readonly readonly: boolean;
}

const MiB = 1024 * 1024;

/** Fewer free bytes than this are no room: the disk's filesystem needs some for its own metadata. */
const FULL_BELOW = MiB;

/** How the kernel shows a filesystem that it has closed for writing: ext4 before and since Linux 6.15, and shut down. */
const CLOSED_FOR_WRITING = ['ro', 'emergency_ro', 'shutdown'];

/** Whether the disk has less room than `bytes`, and than the blocks that the image does not have yet. */
function isOutOfSpace({ image, capacityBytes, freeBytes }: VolumeState, bytes: number): boolean {
  const missing = capacityBytes - (image?.allocatedBytes ?? 0);
  return freeBytes < Math.min(missing, bytes);
}

/** Journal, inode tables and headers are below this and a 32nd of the volume, as mkfs of e2fsprogs and xfsprogs make them. */
const METADATA: Readonly<Record<FilesystemType, number>> = { ext4: 32 * MiB, xfs: 80 * MiB };

/**
 * Throws RESOURCE_EXHAUSTED when the disk has no room for what mkfs writes. It has to be checked before: mkfs.ext4 takes a
 * journal that found no blocks for a success (it falls back to punching a hole), and such a filesystem breaks at its first use.
 */
export function checkSpaceToFormat(volume: VolumeState, type: FilesystemType): void {
  if (!isOutOfSpace(volume, METADATA[type] + volume.capacityBytes / 32)) return;
  throw new DriverError(
    'RESOURCE_EXHAUSTED',
    `there is no room for ${type}: the disk that holds the volumes is full, with ${volume.freeBytes} bytes free`,
  );
}

/** Why the volume is abnormal; undefined when nothing is. The message stays the same for as long as the condition does. */
export function abnormality(volume: VolumeState, place?: PlaceState): string | undefined {
  const { image, capacityBytes } = volume;
  if (image === undefined) return 'the image file is gone';
  if (image.bytes < capacityBytes) return `the image file has ${image.bytes} bytes instead of ${capacityBytes}`;
  if (place !== undefined && !place.mounted) return `nothing is mounted at ${place.path} any more`;
  if (place?.readonly === false && CLOSED_FOR_WRITING.some((option) => place.superOptions.includes(option))) {
    return 'the kernel has made the filesystem read-only after an error: unstage the volume and stage it again';
  }
  if (isOutOfSpace(volume, FULL_BELOW))
    return 'the disk that holds the volumes is full: writes that need new blocks fail';
  return undefined;
}
