// Image garbage collection: which images may go, which go first, and what the node says when that is not enough.

import { describe, expect, it, test } from 'vitest';
import { ImageGc } from '../../../../agent/images/gc.ts';
import {
  diskFill,
  formatSize,
  type ImageGcConfig,
  type ImageRecord,
  isCollecting,
  removable,
  tooOld,
} from '../../../../agent/images/gc-policy.ts';
import type { RuntimeImage } from '../../../../agent/ports/runtime.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const CONFIG: ImageGcConfig = {
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  imageMinimumGCAge: 120_000,
  imageMaximumGCAge: 0,
};
const NOW = 10_000_000;

function record(id: string, part: Partial<ImageRecord> = {}): ImageRecord {
  return { id, sizeBytes: 10, firstDetected: 0, lastUsed: 0, pinned: false, ...part };
}

function order(...records: readonly ImageRecord[]): string[] {
  return removable(new Map(records.map((each) => [each.id, each])), CONFIG.imageMinimumGCAge, epochMs(NOW)).map(
    ({ id }) => id,
  );
}

describe('images that may go', () => {
  test.each<[string, ImageRecord, boolean]>([
    ['one that nothing uses', record('a'), true],
    ['not one in use', record('a', { lastUsed: NOW }), false],
    ['not a pinned one', record('a', { pinned: true }), false],
    ['not one that has just arrived', record('a', { firstDetected: NOW - 119_999 }), false],
    ['one of the minimum age', record('a', { firstDetected: NOW - 120_000 }), true],
  ])('%s', (_rule, image, goes) => {
    expect(order(image)).toEqual(goes ? ['a'] : []);
  });

  it('the least recently used goes first; of those, the one that came first', () => {
    expect(
      order(
        record('recent', { lastUsed: 9 }),
        record('late', { firstDetected: 5 }),
        record('early', { firstDetected: 1 }),
      ),
    ).toEqual(['early', 'late', 'recent']);
  });

  test.each([
    ['no maximum age', 0, 0, NOW, []],
    ['unused for longer than the maximum age', 1_000_000, 0, NOW, ['old']],
    ['but not before the agent has watched for so long itself', 1_000_000, NOW - 999_999, NOW, []],
  ])('%s', (_rule, imageMaximumGCAge, since, now, ids) => {
    const images = [record('old', { lastUsed: 1 }), record('new', { lastUsed: NOW - 1_000_000 })];
    expect(tooOld(images, { ...CONFIG, imageMaximumGCAge }, epochMs(since), epochMs(now)).map(({ id }) => id)).toEqual(
      ids,
    );
  });

  test.each([
    [84, 0],
    [85, 5],
    [100, 20],
  ])('a disk that is %i %% full has to lose %i %%', (used, toFree) => {
    expect(diskFill(100, 100 - used, CONFIG)).toEqual({ usedPercent: used, toFree });
  });

  test.each([
    [512, '512 B'],
    [1536, '1.5 KiB'],
    [28_346_784_154, '26.4 GiB'],
  ])('%i bytes are %s', (bytes, text) => {
    expect(formatSize(bytes)).toBe(text);
  });

  it('with a high threshold of 100 and no maximum age nothing is collected', () => {
    expect(isCollecting(CONFIG)).toBe(true);
    expect(isCollecting({ ...CONFIG, imageGCHighThresholdPercent: 100 })).toBe(false);
    expect(isCollecting({ ...CONFIG, imageGCHighThresholdPercent: 100, imageMaximumGCAge: 1 })).toBe(true);
  });
});

class Store {
  readonly clock = new VirtualClock();
  images: RuntimeImage[] = [];
  inUse: string[] = [];
  used = 90;
  capacity = 100;
  broken = new Set<string>();
  readonly events: string[] = [];
  readonly gc: ImageGc;

  constructor(config: Partial<ImageGcConfig> = {}) {
    this.gc = new ImageGc({
      config: { ...CONFIG, ...config },
      clock: this.clock,
      log: () => undefined,
      recorder: { event: (_object, _type, reason, message) => this.events.push(`${reason}: ${message}`) },
      nodeName: 'node-1',
      listImages: async () => this.images,
      imagesInUse: async () => this.inUse,
      imageDisk: async () => ({ capacity: this.capacity, available: this.capacity - this.used }),
      removeImage: async (id) => {
        if (this.broken.has(id)) throw new Error(`${id} is held`);
        this.used -= this.images.find((image) => image.id === id)?.sizeBytes ?? 0;
        this.images = this.images.filter((image) => image.id !== id);
      },
    });
  }

  add(id: string, sizeBytes: number, part: Partial<RuntimeImage> = {}): void {
    this.images.push({ id, repoTags: [`${id}:latest`], repoDigests: [], sizeBytes, pinned: false, ...part });
  }

  get ids(): string[] {
    return this.images.map(({ id }) => id);
  }

  /** Two looks, so that images have the minimum age at the second. */
  async run(ms = 300_001): Promise<void> {
    const stop = new AbortController();
    void this.gc.run(stop.signal);
    await this.clock.advance(ms);
    stop.abort();
  }
}

describe('a disk that is too full', () => {
  it('loses unused images until the low threshold is reached, and no more', async () => {
    const store = new Store();
    for (const id of ['a', 'b', 'c']) store.add(id, 6);
    await store.gc.removeUnused();
    await store.clock.advance(200_000);
    await store.gc.collect();
    expect(store.ids).toEqual(['c']);
    expect(store.events).toEqual([]);
  });

  it('keeps images that containers or sandboxes name, whatever the name, and pinned ones', async () => {
    const store = new Store();
    store.add('by-id', 5);
    store.add('by-tag', 5);
    store.add('by-digest', 5, { repoDigests: ['x@sha256:1'] });
    store.add('pinned', 5, { pinned: true });
    store.add('idle', 30);
    store.inUse = ['by-id', 'by-tag:latest', 'x@sha256:1'];
    await store.gc.removeUnused();
    await store.clock.advance(200_000);
    await store.gc.removeUnused();
    expect(store.ids).toEqual(['by-id', 'by-tag', 'by-digest', 'pinned']);
  });

  it('that images do not fill says so on the node, and after the second failure that collecting fails', async () => {
    const store = new Store();
    store.add('a', 2);
    await store.run(600_001);
    const output = (percent: number, freed: number) =>
      `Insufficient free disk space on the node's image filesystem (${percent}% of 100 B used). ` +
      `Failed to free sufficient space by deleting unused images (freed ${freed} bytes). ` +
      'Investigate disk usage, as it could be used by active images, logs, volumes, or other data.';
    expect(store.events).toEqual([
      `FreeDiskSpaceFailed: ${output(90, 0)}`,
      `FreeDiskSpaceFailed: ${output(90, 2)}`,
      `ImageGCFailed: ${output(90, 2)}`,
      `FreeDiskSpaceFailed: ${output(88, 0)}`,
      `ImageGCFailed: ${output(88, 0)}`,
    ]);
  });

  it('is freed past an image that cannot be removed, which is then reported', async () => {
    const store = new Store();
    store.add('held', 10);
    store.add('free', 20);
    store.broken.add('held');
    await store.gc.removeUnused();
    await store.clock.advance(200_000);
    await expect(store.gc.collect()).rejects.toThrow(
      'wanted to free 10 bytes, but freed 20 bytes space with errors in image deletion: held is held',
    );
    expect(store.ids).toEqual(['held']);
  });

  it('of no size at all is reported', async () => {
    const store = new Store();
    store.capacity = 0;
    await expect(store.gc.collect()).rejects.toThrow('invalid capacity 0 on image filesystem');
    expect(store.events).toEqual(['InvalidDiskCapacity: invalid capacity 0 on image filesystem']);
  });

  it('is checked every five minutes', async () => {
    const store = new Store();
    store.used = 10;
    const before = store.clock.timersSet;
    await store.run(3_600_000);
    expect(store.clock.timersSet - before).toBe(13);
  });
});
