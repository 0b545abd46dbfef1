import { expect, test } from 'vitest';
import { diskOf, diskText } from '../../bench/disk.ts';

test.each([
  ['loop0', 'ext4 with a journal'],
  ['nvme0n1p2', 'ext4 with a journal'],
  ['vda', 'ext4 without a journal, which slows down from round to round: see --root'],
  // Its name only begins like one that has a journal.
  ['loop', 'ext4 without a journal, which slows down from round to round: see --root'],
  ['sda1', 'not ext4'],
  [undefined, 'not ext4'],
])('a lab on %s', (device, text) => {
  expect(diskText(device, ['vda', 'loop', 'loop0', 'nvme0n1p2'], ['loop0-8', 'nvme0n1p2-8'])).toBe(text);
});

test('a file system without a device has no journal that could be looked up', () =>
  expect(diskOf('/proc')).toBe('not ext4'));
