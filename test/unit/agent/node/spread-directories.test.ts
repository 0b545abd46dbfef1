import { expect, test } from 'vitest';
import { deviceNumber } from '../../../../agent/node/spread-directories.ts';

// gnu_dev_makedev(3): 12 bits of the major above 8 of the minor, the rest of the minor above those, the major's on top.
test.each([
  [0xfe00, '254:0'],
  [0x10301, '259:1'],
  [0x10082c, '8:300'],
  [0x100000000100, '4097:0'],
])('device %i is %s', (dev, expected) => {
  expect(deviceNumber(dev)).toBe(expected);
});
