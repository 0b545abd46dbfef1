// How full the disks of a simulated machine are.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SimDiskSpace } from '../../../../labs/sim/disk-space.ts';

const MIB = 1024 ** 2;
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nodelet-space-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function space(imageBytes?: number): SimDiskSpace {
  return new SimDiskSpace({
    nodeBytes: 100 * MIB,
    imageBytes,
    imageRoot: join(root, 'images'),
    imagesUse: () => 10 * MIB,
  });
}

function freeAt(disk: SimDiskSpace, path: string): number {
  const { bavail, bsize } = disk.statfs(path);
  return (bavail * bsize) / MIB;
}

test('one disk has everything', () => {
  const disk = space();
  const [file, config] = [join(root, 'file'), {}];
  writeFileSync(file, '');
  expect(disk.fillFile(file, 20 * MIB)).toBe(true);
  expect(disk.fillLayer(config, '/a', 5 * MIB)).toBe(true);
  disk.otherBytes = 15 * MIB;
  expect(freeAt(disk, root)).toBe(50);
  expect(freeAt(disk, join(root, 'images'))).toBe(50);
  expect([disk.deviceOf(join(root, 'images')), disk.bytesAt(file)]).toEqual([undefined, 20 * MIB]);
});

test('images and layers have one of their own', () => {
  const disk = space(40 * MIB);
  const config = {};
  disk.fillLayer(config, '/a', 5 * MIB);
  disk.otherBytes = 15 * MIB;
  expect(freeAt(disk, root)).toBe(85);
  expect(freeAt(disk, join(root, 'images'))).toBe(25);
  expect(disk.deviceOf(join(root, 'images/x'))).not.toBe(disk.deviceOf(root));
  expect(disk.deviceOf(join(root, 'images-of-others'))).toBeUndefined();
});

test('what is removed, replaced or taken down is free again', () => {
  const disk = space();
  const [file, config] = [join(root, 'file'), {}];
  writeFileSync(file, '');
  disk.fillFile(file, 20 * MIB);
  disk.fillFile(file, 30 * MIB);
  disk.fillLayer(config, '/a', 5 * MIB);
  disk.fillLayer(config, '/b', 5 * MIB);
  expect([disk.layerBytes(config) / MIB, freeAt(disk, root)]).toEqual([10, 50]);
  disk.clearInLayer(config, '/a');
  expect(disk.layerBytes(config) / MIB).toBe(5);
  disk.dropLayer(config);
  rmSync(file);
  expect(freeAt(disk, root)).toBe(90);
});

test('a full disk takes no more', () => {
  const disk = space();
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(disk.fillFile(file, 91 * MIB)).toBe(false);
  expect(disk.fillFile(file, 90 * MIB)).toBe(true);
  expect(disk.fillLayer({}, '/a', 1)).toBe(false);
  // The same file again needs no more than it has.
  expect(disk.fillFile(file, 90 * MIB)).toBe(true);
});
