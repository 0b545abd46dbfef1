import { describe, expect, it } from 'vitest';
import { isWithin, parseMountinfo } from '../../../../cli/lab/mounts.ts';

describe('/proc/PID/mountinfo', () => {
  it('gives root, mount point, type and source, with any number of optional fields', () => {
    const text = [
      '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue',
      '37 35 0:4 net:[4026532000] /run/x/netns/cni-1 rw shared:5 - nsfs nsfs rw',
      '38 35 0:50 / /tmp/with\\040space rw - tmpfs tm\\011pfs rw',
      '',
    ].join('\n');
    expect(parseMountinfo(text).map(({ root, mountPoint, type, source }) => [root, mountPoint, type, source])).toEqual([
      ['/mnt1', '/mnt2', 'ext3', '/dev/root'],
      ['net:[4026532000]', '/run/x/netns/cni-1', 'nsfs', 'nsfs'],
      ['/', '/tmp/with space', 'tmpfs', 'tm\tpfs'],
    ]);
  });
});

describe('being within a directory', () => {
  it.each([
    ['/a', '/a', true],
    ['/a/b', '/a', true],
    ['/ab', '/a', false],
    ['/', '/a', false],
    ['/a', '/', true],
  ])('%s in %s is %s', (path, directory, expected) => {
    expect(isWithin(path, directory)).toBe(expected);
  });
});
