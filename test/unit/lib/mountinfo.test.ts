import { describe, expect, test } from 'vitest';
import {
  firstMountUnder,
  isWithin,
  mountAt,
  mountsUnder,
  parseMountInfo,
  parseMountsUnder,
} from '../../../lib/mountinfo.ts';

const line = (id: number, root: string, path: string): string =>
  `${id} 1 254:0 ${root} ${path} rw,relatime shared:1 - ext4 /dev/vda rw`;

describe('parseMountInfo', () => {
  test('fields, octal escapes in root, path and source', () => {
    const text = `36 35 98:0 /a\\040b /mnt/new\\012line\\011\\134back rw,noatime master:1 - ext3 /dev/x\\043y rw,errors=continue\n`;
    expect(parseMountInfo(text)).toEqual([
      {
        id: 36,
        parent: 35,
        device: '98:0',
        root: '/a b',
        rootDeleted: false,
        path: '/mnt/new\nline\t\\back',
        options: ['rw', 'noatime'],
        optional: ['master:1'],
        fsType: 'ext3',
        source: '/dev/x#y',
        superOptions: ['rw', 'errors=continue'],
      },
    ]);
  });

  test('any number of optional fields, and the file of a namespace', () => {
    const text = [
      '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue',
      '37 35 0:4 net:[4026532000] /run/x/netns/cni-1 rw shared:5 - nsfs nsfs rw',
      '38 35 0:50 / /tmp/with\\040space rw - tmpfs tm\\011pfs rw',
      '',
    ].join('\n');
    expect(parseMountInfo(text).map(({ root, path, fsType, source }) => [root, path, fsType, source])).toEqual([
      ['/mnt1', '/mnt2', 'ext3', '/dev/root'],
      ['net:[4026532000]', '/run/x/netns/cni-1', 'nsfs', 'nsfs'],
      ['/', '/tmp/with space', 'tmpfs', 'tm\tpfs'],
    ]);
  });

  test('a root that was removed loses its "//deleted"; names that end in (deleted) are names', () => {
    const [removed, named] = parseMountInfo(
      [line(1, '/dir//deleted', '/mnt/a'), line(2, '/dir\\040(deleted)', '/mnt/b\\040(deleted)')].join('\n'),
    );
    expect(removed).toMatchObject({ root: '/dir', rootDeleted: true, path: '/mnt/a' });
    expect(named).toMatchObject({ root: '/dir (deleted)', rootDeleted: false, path: '/mnt/b (deleted)' });
  });

  test('a backslash before digits in a name is no escape of its own', () => {
    expect(parseMountInfo(line(1, '/', '/mnt/a\\134040b'))[0]?.path).toBe('/mnt/a\\040b');
  });
});

describe('mounts of a directory', () => {
  const text = [
    line(1, '/', '/p/a'),
    line(2, '/', '/p/a\\040(deleted)/x'),
    line(3, '/', '/p/a/v'),
    line(4, '/', '/p/ab'),
  ].join('\n');
  const entries = parseMountInfo(text);

  test('at and below, newest first; a name that only begins alike is another', () => {
    expect(mountsUnder(entries, '/p/a').map(({ id }) => id)).toEqual([3, 1]);
    expect(mountsUnder(entries, '/').map(({ id }) => id)).toEqual([4, 3, 2, 1]);
    expect(mountAt(entries, '/p/ab')?.id).toBe(4);
  });

  test.for([
    ['/p/a', '/p/a'],
    ['/p', '/p/a'],
    ['/p/a (deleted)', '/p/a (deleted)/x'],
    ['/p/a/v/w', undefined],
    ['/p/b', undefined],
  ] as const)('the first of %j is %j', ([directory, expected]) => {
    expect(firstMountUnder(text, directory)).toBe(expected);
  });

  test.for(['/', '/p', '/p/a', '/p/a (deleted)', '/p/ab', '/p/b'])(
    'those of %j alone are those of all',
    (directory) => {
      expect(parseMountsUnder(text, directory).toReversed()).toEqual(mountsUnder(entries, directory));
    },
  );
});

describe('being within a directory', () => {
  test.for([
    ['/a', '/a', true],
    ['/a/b', '/a', true],
    ['/ab', '/a', false],
    ['/', '/a', false],
    ['/a', '/', true],
  ] as const)('%s in %s is %s', ([path, directory, expected]) => {
    expect(isWithin(path, directory)).toBe(expected);
  });
});
