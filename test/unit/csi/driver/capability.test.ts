import { describe, expect, it } from 'vitest';
import {
  ACCESS_MODES,
  allowsManyTargets,
  type Capability,
  capabilityMessage,
  parseCapability,
  sameCapability,
  whyUnsupported,
} from '../../../../csi/driver/capability.ts';
import type { VolumeCapability__Output } from '../../../../proto/gen/csi/v1/VolumeCapability.ts';

const mount = (more: object = {}, mode = 'SINGLE_NODE_WRITER'): VolumeCapability__Output => ({
  access_mode: { mode: mode as 'SINGLE_NODE_WRITER' },
  mount: { fs_type: '', mount_flags: [], volume_mount_group: '', ...more },
  block: null,
  access_type: 'mount',
});

describe('a volume capability', () => {
  it('without a filesystem is for ext4', () => {
    expect(parseCapability(mount())).toEqual({
      type: 'mount',
      mode: 'SINGLE_NODE_WRITER',
      fsType: 'ext4',
      flags: [],
      group: '',
    });
  });
  it.each([
    ['nothing', null, /missing/],
    ['an unknown access mode', mount({}, 'UNKNOWN'), /access_mode/],
    ['no access type', { ...mount(), mount: null }, /access_type/],
    ['an unknown filesystem', mount({ fs_type: 'ntfs' }), /ext4 or xfs/],
    ['a bind mount', mount({ mount_flags: ['bind'] }), /mount_flags/],
    ['two flags in one', mount({ mount_flags: ['ro,exec'] }), /mount_flags/],
    ['an empty flag', mount({ mount_flags: [''] }), /mount_flags/],
    ['more than 4 KiB of flags', mount({ mount_flags: ['x'.repeat(4097)] }), /4 KiB/],
    ['a group that nobody takes', mount({ volume_mount_group: '7' }), /VOLUME_MOUNT_GROUP/],
  ])('with %s is an INVALID_ARGUMENT', (_what, raw, words) => {
    expect(() => parseCapability(raw)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(words) }),
    );
  });
  it('takes a numeric group where groups are taken', () => {
    expect(parseCapability(mount({ volume_mount_group: '7' }), { mountGroup: true })).toMatchObject({ group: '7' });
    expect(() => parseCapability(mount({ volume_mount_group: 'wheel' }), { mountGroup: true })).toThrow(/numeric/);
  });
  it.each([
    mount({ fs_type: 'xfs', mount_flags: ['noatime'] }),
    { ...mount(), mount: null, block: {}, access_type: 'block' as const },
  ])('comes back as it was given', (raw) => {
    const parsed = parseCapability(raw);
    const message = capabilityMessage(parsed);
    expect(message.access_mode).toEqual(raw.access_mode);
    expect(message.block ?? null).toEqual(raw.block);
  });
  it('is the same whatever the order of its flags, and another with other flags', () => {
    const [a, b, c] = [['noatime', 'noexec'], ['noexec', 'noatime'], ['noexec']].map((mount_flags) =>
      parseCapability(mount({ mount_flags })),
    );
    if (a === undefined || b === undefined || c === undefined) throw new Error('three were made');
    expect([sameCapability(a, b, { group: true }), sameCapability(a, c, { group: true })]).toEqual([true, false]);
  });
});

const made = (mode: Capability['mode'], fsType: 'ext4' | 'xfs' = 'ext4'): Capability => ({
  type: 'mount',
  mode,
  fsType,
  flags: [],
  group: '',
});

describe('a volume that was made for one access mode', () => {
  // rows: made for; columns: what it can be used as
  it.each([
    [
      'SINGLE_NODE_WRITER',
      ['SINGLE_NODE_WRITER', 'SINGLE_NODE_READER_ONLY', 'SINGLE_NODE_SINGLE_WRITER', 'SINGLE_NODE_MULTI_WRITER'],
    ],
    ['SINGLE_NODE_READER_ONLY', ['SINGLE_NODE_READER_ONLY']],
    ['MULTI_NODE_READER_ONLY', ['SINGLE_NODE_READER_ONLY', 'MULTI_NODE_READER_ONLY']],
    [
      'SINGLE_NODE_MULTI_WRITER',
      ['SINGLE_NODE_WRITER', 'SINGLE_NODE_READER_ONLY', 'SINGLE_NODE_SINGLE_WRITER', 'SINGLE_NODE_MULTI_WRITER'],
    ],
    ['MULTI_NODE_MULTI_WRITER', [...ACCESS_MODES]],
  ] as const)('%s can be used as %j', (mode, usable) => {
    const found = ACCESS_MODES.filter((wanted) => whyUnsupported([made(mode)], made(wanted)) === undefined);
    expect(found).toEqual(ACCESS_MODES.filter((each) => usable.some((other) => other === each)));
  });
  it('is neither another filesystem nor a block device', () => {
    expect(whyUnsupported([made('SINGLE_NODE_WRITER')], made('SINGLE_NODE_WRITER', 'xfs'))).toContain('xfs');
    expect(whyUnsupported([made('SINGLE_NODE_WRITER')], { type: 'block', mode: 'SINGLE_NODE_WRITER' })).toContain(
      'block',
    );
  });
});

it('only modes for many users allow a second target path', () => {
  expect(ACCESS_MODES.filter(allowsManyTargets)).toEqual([
    'MULTI_NODE_READER_ONLY',
    'MULTI_NODE_SINGLE_WRITER',
    'MULTI_NODE_MULTI_WRITER',
    'SINGLE_NODE_MULTI_WRITER',
  ]);
});
