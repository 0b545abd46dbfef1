import { expect, test } from 'vitest';
import { isWithoutJournal } from '../../../../agent/volumes/spread-directories.ts';
import { parseMountInfo } from '../../../../lib/mountinfo.ts';

const on = (fsType: string) => parseMountInfo(`1 0 254:0 / / rw - ${fsType} /dev/vda rw`)[0];

test.each([
  ['an ext4 that says it has none', on('ext4'), '<none>\n', true],
  ['not an ext4 with one', on('ext4'), '412\n', false],
  ['not an ext4 of a kernel that does not say', on('ext4'), undefined, false],
  ['not another file system', on('xfs'), '<none>\n', false],
  ['not a path on no mount', undefined, '<none>\n', false],
])('without a journal is %s', (_, mount, task, expected) => {
  expect(isWithoutJournal(mount, task)).toBe(expected);
});
