// Image garbage collection: every 5 minutes images that are unused for too long are removed, and when their disk is too
// full, the least recently used. Which ones is decided in gc-policy.ts; eviction removes all unused ones at once.

import type { Clock, EpochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { repeat } from '../../lib/retry.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { RuntimeImage } from '../ports/runtime.ts';
import {
  diskFill,
  type ImageGcConfig,
  type ImageRecord,
  isCollecting,
  notEnoughFreed,
  noteImages,
  removable,
  tooOld,
} from './gc-policy.ts';

const PERIOD_MS = 300_000;

export interface ImageGcOptions {
  readonly config: ImageGcConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  readonly listImages: () => Promise<readonly RuntimeImage[]>;
  readonly removeImage: (id: string) => Promise<void>;
  /** Images of all containers, dead ones too, by id or any name; and the sandbox's, where the runtime names it. */
  readonly imagesInUse: () => Promise<readonly string[]>;
  /** Bytes of the file system that images are on; undefined while the runtime does not say where that is. */
  readonly imageDisk: () => Promise<{ readonly capacity: number; readonly available: number } | undefined>;
}

/** What cannot be collected, in the words of the node's event. */
class CollectionError extends Error {
  override name = 'CollectionError';
}

export class ImageGc {
  readonly #options: ImageGcOptions;
  readonly #startedAt: EpochMs;
  #records: ReadonlyMap<string, ImageRecord> = new Map();
  #failedBefore = false;

  constructor(options: ImageGcOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
  }

  /** Runs until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { config, clock } = this.#options;
    if (!isCollecting(config)) return;
    await repeat(() => this.#collectOnce(), { clock, everyMs: PERIOD_MS, signal });
  }

  async #collectOnce(): Promise<undefined> {
    const { log } = this.#options;
    try {
      await this.collect();
      this.#failedBefore = false;
    } catch (error) {
      log('warn', `Image garbage collection failed: ${errorMessage(error)}`);
      // One failure passes; the event is for those that stay.
      if (this.#failedBefore) this.#event('ImageGCFailed', errorMessage(error));
      this.#failedBefore = true;
    }
  }

  /** One round: what is too old, then what is too much. Rejects when it could not free what it should. */
  async collect(): Promise<void> {
    const { config, imageDisk } = this.#options;
    const now = await this.#look();
    const candidates = removable(this.#records, config.imageMinimumGCAge, now);
    const old = tooOld(candidates, config, this.#startedAt, now);
    await this.#remove(old, Number.POSITIVE_INFINITY);
    const disk = await imageDisk();
    if (disk === undefined) return;
    if (disk.capacity === 0) {
      const message = 'invalid capacity 0 on image filesystem';
      this.#event('InvalidDiskCapacity', message);
      throw new CollectionError(message);
    }
    const { usedPercent, toFree } = diskFill(disk.capacity, disk.available, config);
    if (toFree <= 0) return;
    const left = candidates.filter((image) => this.#records.has(image.id));
    const freed = await this.#remove(left, toFree);
    if (freed >= toFree) return;
    const message = notEnoughFreed(usedPercent, disk.capacity, freed);
    this.#event('FreeDiskSpaceFailed', message);
    throw new CollectionError(message);
  }

  /** Removes every image that is not in use, of any age but the youngest. For a node that is out of disk. */
  async removeUnused(): Promise<void> {
    const now = await this.#look();
    await this.#remove(removable(this.#records, this.#options.config.imageMinimumGCAge, now), Number.POSITIVE_INFINITY);
  }

  /** Notes what is there and what is used; returns the time at which that was so. */
  async #look(): Promise<EpochMs> {
    const { clock, listImages, imagesInUse } = this.#options;
    const now = clock.now();
    // Users first: a container that appears in between uses an image that is younger than the minimum age.
    const inUse = new Set(await imagesInUse());
    this.#records = noteImages(this.#records, await listImages(), inUse, now);
    return now;
  }

  /** Removes images in order until `enough` bytes are free; a failure does not stop the others. */
  async #remove(images: readonly ImageRecord[], enough: number): Promise<number> {
    const { removeImage, log } = this.#options;
    const failures: string[] = [];
    let freed = 0;
    for (const { id, sizeBytes } of images) {
      if (freed >= enough) break;
      try {
        await removeImage(id);
      } catch (error) {
        failures.push(errorMessage(error));
        continue;
      }
      log('info', 'Removed unused image', { image: id, bytes: sizeBytes });
      freed += sizeBytes;
      this.#records = new Map([...this.#records].filter(([known]) => known !== id));
    }
    if (failures.length === 0) return freed;
    const wanted = Number.isFinite(enough) ? enough : images.reduce((sum, image) => sum + image.sizeBytes, 0);
    throw new CollectionError(
      `wanted to free ${wanted} bytes, but freed ${freed} bytes space with errors in image deletion: ${failures.join(', ')}`,
    );
  }

  #event(reason: string, message: string): void {
    const { recorder, nodeName } = this.#options;
    recorder.event(
      { kind: 'Node', apiVersion: 'v1', metadata: { name: nodeName, uid: nodeName } },
      'Warning',
      reason,
      message,
    );
  }
}
