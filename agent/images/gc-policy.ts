// Which images may be removed, and which go first: never one in use, pinned or just arrived; the least recently used
// first (pkg/kubelet/images/image_gc_manager.go). Pure.

import type { EpochMs } from '../../lib/clock.ts';
import type { RuntimeImage } from '../ports/runtime.ts';

/** When an image was first seen and last used by a container, epoch ms; 0 is never used. */
export interface ImageRecord {
  readonly id: string;
  readonly sizeBytes: number;
  readonly firstDetected: number;
  readonly lastUsed: number;
  readonly pinned: boolean;
}

/** The part of KubeletConfiguration that image collection goes by. Durations in ms; 0 is no maximum age. */
export interface ImageGcConfig {
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  readonly imageMinimumGCAge: number;
  readonly imageMaximumGCAge: number;
}

/** Without any limit there is nothing to collect and nothing to read. */
export function isCollecting(config: ImageGcConfig): boolean {
  return config.imageGCHighThresholdPercent < 100 || config.imageMaximumGCAge > 0;
}

/** Whether one of an image's names is `wanted` ("registry.k8s.io/pause:3.9", "sha256:…"). */
export function isNamed(image: RuntimeImage, wanted: string): boolean {
  return image.id === wanted || image.repoTags.includes(wanted) || image.repoDigests.includes(wanted);
}

/** The records after a list: removed images are dropped, new ones added, those in use marked with `now`. */
export function noteImages(
  known: ReadonlyMap<string, ImageRecord>,
  images: readonly RuntimeImage[],
  inUse: ReadonlySet<string>,
  now: EpochMs,
): ReadonlyMap<string, ImageRecord> {
  return new Map(
    images.map((image) => {
      const before = known.get(image.id);
      const used = [...inUse].some((name) => isNamed(image, name));
      const record: ImageRecord = {
        id: image.id,
        sizeBytes: image.sizeBytes,
        firstDetected: before?.firstDetected ?? now,
        lastUsed: used ? now : (before?.lastUsed ?? 0),
        pinned: image.pinned,
      };
      return [image.id, record];
    }),
  );
}

/** What may be removed at all at `now`, in the order of removal. `now` is the time of the last list. */
export function removable(
  records: ReadonlyMap<string, ImageRecord>,
  minimumAgeMs: number,
  now: EpochMs,
): ImageRecord[] {
  return [...records.values()]
    .filter((image) => !image.pinned && image.lastUsed < now && now - image.firstDetected >= minimumAgeMs)
    .sort((a, b) => a.lastUsed - b.lastUsed || a.firstDetected - b.firstDetected);
}

/** Images unused for longer than the maximum age; those never used are counted from `since`, when the agent started. */
export function tooOld(
  images: readonly ImageRecord[],
  config: ImageGcConfig,
  since: EpochMs,
  now: EpochMs,
): ImageRecord[] {
  const { imageMaximumGCAge } = config;
  if (imageMaximumGCAge === 0) return [];
  // After a start the last use is unknown: every image would count as unused.
  if (now - since <= imageMaximumGCAge) return [];
  return images.filter((image) => now - Math.max(image.lastUsed, image.firstDetected) > imageMaximumGCAge);
}

export interface DiskFill {
  readonly usedPercent: number;
  /** Bytes that must go to come down to the low threshold; 0 when the high one is not reached. */
  readonly toFree: number;
}

/** How full the images' file system is. Bytes. */
export function diskFill(capacity: number, available: number, config: ImageGcConfig): DiskFill {
  const free = Math.min(available, capacity);
  const usedPercent = 100 - Math.trunc((free * 100) / capacity);
  if (usedPercent < config.imageGCHighThresholdPercent) return { usedPercent, toFree: 0 };
  return { usedPercent, toFree: Math.trunc((capacity * (100 - config.imageGCLowThresholdPercent)) / 100) - free };
}

/** Bytes as the kubelet's event prints them: "26.4 GiB". */
export function formatSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** The words of FreeDiskSpaceFailed. */
export function notEnoughFreed(usedPercent: number, capacity: number, freed: number): string {
  return (
    `Insufficient free disk space on the node's image filesystem (${usedPercent}% of ${formatSize(capacity)} used). ` +
    `Failed to free sufficient space by deleting unused images (freed ${freed} bytes). ` +
    'Investigate disk usage, as it could be used by active images, logs, volumes, or other data.'
  );
}
