import { expect, test } from 'vitest';
import { busyShare } from '../../bench/quiet.ts';

const stat = (fields: string): string => `cpu  ${fields}\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n`;
const START = '100 50 100 1000 10 5 5 20 7 3';

test.each([
  ['nothing ran', '100 50 100 1010 10 5 5 20 7 3', 0],
  ['a program and the kernel', '103 50 102 1005 10 5 5 20 10 3', 0.5],
  ['interrupts', '100 50 100 1005 10 7 8 20 7 3', 0.5],
  ['a program of low priority alone', '100 60 100 1000 10 5 5 20 7 13', 0],
  ['waiting for a disk, and another virtual machine', '100 50 100 1002 14 5 5 24 7 3', 0],
])('%s', (_, after, share) => expect(busyShare(stat(START), stat(after))).toBe(share));

test('two readings within a tick show nothing', () => expect(busyShare(stat(START), stat(START))).toBe(0));
test('text without the line is an error', () => expect(() => busyShare('intr 5\n', stat(START))).toThrow('/proc/stat'));
