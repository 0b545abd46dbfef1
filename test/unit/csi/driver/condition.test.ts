import { describe, expect, it } from 'vitest';
import {
  abnormality,
  checkSpaceToFormat,
  type PlaceState,
  type VolumeState,
} from '../../../../csi/driver/condition.ts';

const MiB = 1024 * 1024;
const image = { bytes: 64 * MiB, allocatedBytes: 8 * MiB };
const sound: VolumeState = { capacityBytes: 64 * MiB, image, freeBytes: 1024 * MiB };
const place: PlaceState = { path: '/pod/volume', mounted: true, superOptions: ['rw'], readonly: false };
const READ_ONLY = /made the filesystem read-only/;
const FULL = /disk that holds the volumes is full/;

describe('the condition of a volume', () => {
  it.each<[string, VolumeState, PlaceState | undefined]>([
    ['that is sound', sound, place],
    ['that the controller looks at, who knows no mount', sound, undefined],
    ['that is mounted read-only on purpose', sound, { ...place, readonly: true, superOptions: ['ro'] }],
    [
      'that has all its blocks on a full disk',
      { ...sound, image: { ...image, allocatedBytes: 65 * MiB }, freeBytes: 0 },
      place,
    ],
    [
      'whose last blocks still fit',
      { ...sound, image: { ...image, allocatedBytes: 64 * MiB - 4096 }, freeBytes: 4096 },
      place,
    ],
  ])('%s is normal', (_what, volume, at) => expect(abnormality(volume, at)).toBeUndefined());

  it.each<[string, VolumeState, PlaceState | undefined, RegExp]>([
    ['that has lost its image', { ...sound, image: undefined }, place, /image file is gone/],
    ['whose image was cut', { ...sound, image: { ...image, bytes: MiB } }, undefined, /has 1048576 bytes instead/],
    ['that was unmounted', sound, { ...place, mounted: false }, /nothing is mounted at \/pod\/volume/],
    ['that the kernel remounted read-only', sound, { ...place, superOptions: ['ro'] }, READ_ONLY],
    ['that a newer kernel closed for writing', sound, { ...place, superOptions: ['rw', 'emergency_ro'] }, READ_ONLY],
    ['that was shut down', sound, { ...place, superOptions: ['rw', 'shutdown'] }, READ_ONLY],
    ['that lacks blocks on a full disk', { ...sound, freeBytes: MiB - 1 }, place, FULL],
    ['that lacks blocks on a full disk, for the controller', { ...sound, freeBytes: 0 }, undefined, FULL],
  ])('%s is abnormal', (_what, volume, at, words) => expect(abnormality(volume, at)).toMatch(words));

  it('is reported in words that do not change with every byte', () => {
    expect(abnormality({ ...sound, freeBytes: 5 }, place)).toBe(abnormality({ ...sound, freeBytes: 4 }, place));
  });
});

describe('formatting', () => {
  const fresh = (capacityBytes: number, freeBytes: number): VolumeState => ({
    capacityBytes,
    image: { bytes: capacityBytes, allocatedBytes: 0 },
    freeBytes,
  });
  it.each<[string, VolumeState, 'ext4' | 'xfs']>([
    ['a large volume on a disk with room for its metadata', fresh(1024 * MiB, 64 * MiB), 'ext4'],
    ['a small volume that fits as a whole', fresh(2 * MiB, 2 * MiB), 'ext4'],
    [
      'a volume that has its blocks, on a full disk',
      { ...fresh(64 * MiB, 0), image: { bytes: 64 * MiB, allocatedBytes: 64 * MiB } },
      'ext4',
    ],
    ['xfs, whose log is larger', fresh(320 * MiB, 90 * MiB), 'xfs'],
  ])('%s is allowed', (_what, volume, type) => expect(() => checkSpaceToFormat(volume, type)).not.toThrow());
  it.each<[string, VolumeState, 'ext4' | 'xfs']>([
    ['a large volume', fresh(1024 * MiB, 64 * MiB - 1), 'ext4'],
    ['a small volume', fresh(2 * MiB, 2 * MiB - 1), 'ext4'],
    ['xfs', fresh(320 * MiB, 90 * MiB - 1), 'xfs'],
  ])('%s is RESOURCE_EXHAUSTED where the disk has less', (_what, volume, type) => {
    expect(() => checkSpaceToFormat(volume, type)).toThrow(expect.objectContaining({ code: 'RESOURCE_EXHAUSTED' }));
  });
});
