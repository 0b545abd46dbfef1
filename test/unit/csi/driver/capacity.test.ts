import { describe, expect, it } from 'vitest';
import {
  availableCapacity,
  checkCapacity,
  chooseCapacity,
  DEFAULT_CAPACITY,
  decideExpansion,
  fitsRange,
  MAX_CAPACITY,
  minimumCapacity,
  parseRange,
  sizeBounds,
} from '../../../../csi/driver/capacity.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const MIN = 2 * MiB;

describe('a capacity range', () => {
  it.each([
    ['nothing', undefined, undefined],
    ['a lower bound', { required_bytes: '5', limit_bytes: '0' }, { required: 5, limit: 0 }],
    ['both', { required_bytes: '5', limit_bytes: '6' }, { required: 5, limit: 6 }],
  ])('of %s is taken', (_what, raw, range) => expect(parseRange(raw)).toEqual(range));
  it.each([
    ['a negative bound', { required_bytes: '-1', limit_bytes: '0' }],
    ['a negative limit', { required_bytes: '0', limit_bytes: '-5' }],
    ['no bound at all', { required_bytes: '0', limit_bytes: '0' }],
    ['a limit below what is required', { required_bytes: '6', limit_bytes: '5' }],
  ])('with %s is an INVALID_ARGUMENT', (_what, raw) => {
    expect(() => parseRange(raw)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('the largest volume that can be made', () => {
  it.each([
    ['is the room that is left', GiB, GiB],
    ['is whole pages of it', GiB + 4095, GiB],
    ['is never larger than a file can be', 64 * 1024 * GiB, MAX_CAPACITY],
    ['is as small as the filesystem can be', MIN, MIN],
    ['is not told where there is room for none', MIN - 4 * KiB, undefined],
    ['is not told where there is no room', 0, undefined],
  ])('%s', (_what, room, largest) => expect(sizeBounds(room, MIN)).toEqual({ largest, smallest: MIN }));
});

describe('the capacity of a new volume', () => {
  it.each([
    ['is the default when nothing is asked for', undefined, 0, DEFAULT_CAPACITY],
    ['is the limit when that is below the default', { required: 0, limit: 10 * MiB }, 0, 10 * MiB],
    ['is what is required, in whole pages', { required: 5 * MiB + 1, limit: 0 }, 0, 5 * MiB + 4 * KiB],
    ['is never below what the filesystem needs', { required: 1, limit: 0 }, 0, MIN],
    ['is the source’s when nothing is asked for', undefined, 3 * GiB, 3 * GiB],
    ['is the source’s when less is required', { required: MiB, limit: 0 }, 8 * MiB, 8 * MiB],
    ['is more than the source’s when that is required', { required: 9 * MiB, limit: 0 }, 8 * MiB, 9 * MiB],
  ])('%s', (_what, range, source, bytes) => expect(chooseCapacity(range, MIN, source)).toBe(bytes));
  it.each([
    ['a limit below the smallest', { required: 1, limit: MiB }, 0],
    ['more than there can be', { required: MAX_CAPACITY + 1, limit: 0 }, 0],
    ['a limit below the source', { required: MIN, limit: 4 * MiB }, 8 * MiB],
    ['a limit without a whole page in it', { required: 5 * MiB + 1, limit: 5 * MiB + 2 }, 0],
  ])('is OUT_OF_RANGE for %s', (_what, range, source) => {
    expect(() => chooseCapacity(range, MIN, source)).toThrow(expect.objectContaining({ code: 'OUT_OF_RANGE' }));
  });
  it('depends on the filesystem', () => {
    const of = (fsType: 'ext4' | 'xfs') =>
      minimumCapacity([{ type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType, flags: [], group: '' }]);
    expect(of('xfs')).toBe(300 * MiB);
    expect(of('ext4')).toBeLessThan(of('xfs'));
  });
});

describe('an expansion', () => {
  it.each([
    ['to what is there already does nothing', { required: GiB, limit: 0 }, { kind: 'enough' }],
    ['to less does nothing', { required: MiB, limit: 0 }, { kind: 'enough' }],
    ['to more grows', { required: 2 * GiB, limit: 0 }, { kind: 'grow', bytes: 2 * GiB }],
  ])('%s', (_what, range, expected) => expect(decideExpansion(GiB, range)).toEqual(expected));
  it.each([
    ['a limit below the volume', { required: MiB, limit: 2 * MiB }],
    ['beyond every limit', { required: 2 ** 62, limit: 0 }],
  ])('with %s is OUT_OF_RANGE', (_what, range) => {
    expect(() => decideExpansion(GiB, range)).toThrow(expect.objectContaining({ code: 'OUT_OF_RANGE' }));
  });
});

it.each([
  [GiB, undefined, true],
  [GiB, { required: GiB, limit: GiB }, true],
  [GiB, { required: GiB + 1, limit: 0 }, false],
  [GiB, { required: 0, limit: GiB - 1 }, false],
])('a volume of %d bytes fits %j: %s', (bytes, range, fits) => expect(fitsRange(bytes, range)).toBe(fits));

describe('room for new volumes', () => {
  it.each([
    ['is what the disk has free', { freeBytes: 10, provisionedBytes: 0 }, 10],
    ['is that also when volumes have more than the disk already', { freeBytes: 10, provisionedBytes: 60 }, 10],
    ['is bounded by the pool', { freeBytes: 100, poolBytes: 20, provisionedBytes: 6 }, 14],
    ['is bounded by the disk under the pool', { freeBytes: 5, poolBytes: 20, provisionedBytes: 0 }, 5],
    ['is never negative', { freeBytes: 10, poolBytes: 5, provisionedBytes: 6 }, 0],
  ])('%s', (_what, pool, bytes) => expect(availableCapacity(pool)).toBe(bytes));

  const exhausted = (words: RegExp) => ({ code: 'RESOURCE_EXHAUSTED', message: expect.stringMatching(words) });
  it('is enough for ten volumes of 10 GiB on a disk of 80 GB, and for none that could not be filled', () => {
    const freeBytes = 80e9;
    for (let made = 0; made < 10; made++) checkCapacity({ freeBytes, provisionedBytes: made * 10 * GiB }, 10 * GiB);
    expect(() => checkCapacity({ freeBytes, provisionedBytes: 0 }, 75 * GiB)).toThrow(
      expect.objectContaining(exhausted(/are free/)),
    );
  });
  it('is bounded by the pool for copies too, of which the disk needs less', () => {
    const pool = { freeBytes: 10, poolBytes: 20, provisionedBytes: 5 };
    checkCapacity(pool, 15, 2);
    expect(() => checkCapacity(pool, 16, 2)).toThrow(expect.objectContaining(exhausted(/15 are left in the pool/)));
    expect(() => checkCapacity(pool, 15, 11)).toThrow(expect.objectContaining(exhausted(/10 are free/)));
  });
});
