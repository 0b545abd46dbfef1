import { describe, expect, it } from 'vitest';
import { Locks } from '../../../../csi/driver/locks.ts';
import { attachFailure, attachLoop } from '../../../../csi/driver/loop-devices.ts';
import { parseSource } from '../../../../csi/driver/messages.ts';
import { loopOf } from '../../../../csi/driver/mounts.ts';
import { isEphemeralId, isSafeId, volumeIdOf } from '../../../../csi/driver/names.ts';
import {
  checkContext,
  ephemeralBytes,
  parseEphemeral,
  parseParameters,
  requireName,
  requirePath,
  requireString,
} from '../../../../csi/driver/requests.ts';
import { meets } from '../../../../csi/driver/topology.ts';
import type { Exec } from '../../../../lib/exec.ts';
import { parseMountInfo } from '../../../../lib/mountinfo.ts';

const invalid = (words: RegExp) =>
  expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(words) });

describe('a required field', () => {
  it('is neither empty nor longer than the specification allows', () => {
    expect(requireString('volume_id', 'x'.repeat(128))).toHaveLength(128);
    expect(() => requireString('volume_id', '')).toThrow(invalid(/volume_id is missing/));
    expect(() => requireString('volume_id', 'ä'.repeat(65))).toThrow(invalid(/128 bytes/));
  });
  it.each(['name', 'Größe\t体积\n'])('may be called %j', (name) => expect(requireName(name)).toBe(name));
  it.each(['a\u0000', 'a\u000b', '\u007f', 'a\u0085'])('may not be called %j', (name) => {
    expect(() => requireName(name)).toThrow(invalid(/control/));
  });
  it('that is a path is absolute, and in its shortest form', () => {
    expect(requirePath('target_path', '/a/b/')).toBe('/a/b');
    for (const path of ['a/b', '/a/../b', '/a//b', '/a/./b', '/a\0b']) {
      expect(() => requirePath('target_path', path)).toThrow(invalid(/target_path/));
    }
  });
});

describe('parameters and contexts', () => {
  it('know one key, and let Kubernetes add its own', () => {
    expect(parseParameters({ 'csi.storage.k8s.io/pv/name': 'x' }, {})).toEqual({ allocation: 'sparse' });
    expect(parseParameters({ allocation: 'full' }, {})).toEqual({ allocation: 'full' });
    expect(() => parseParameters({ type: 'fast' }, {})).toThrow(invalid(/type/));
    expect(() => parseParameters({}, { iops: '1' })).toThrow(invalid(/MODIFY_VOLUME/));
    expect(() => parseParameters({ 'csi.storage.k8s.io/x': 'x'.repeat(4096) }, {})).toThrow(invalid(/4 KiB/));
  });
  it.each([
    ['whole', { allocation: 'sparse', 'csi.storage.k8s.io/pod.name': 'p' }, 'required', undefined],
    ['left out where it may be', {}, 'optional', undefined],
    ['left out where it may not be', {}, 'required', /lacks/],
    ['another volume’s', { allocation: 'full' }, 'optional', /does not match/],
    ['more than the volume’s', { allocation: 'sparse', other: 'x' }, 'required', /other/],
  ] as const)('a volume_context that is %s', (_what, given, presence, words) => {
    const check = () => checkContext(given, 'sparse', presence);
    if (words === undefined) expect(check).not.toThrow();
    else expect(check).toThrow(invalid(words));
  });
  it('do not count a token for their size', () => {
    const tokens = { 'csi.storage.k8s.io/serviceAccount.tokens': 'x'.repeat(9000) };
    expect(() => checkContext({ allocation: 'sparse', ...tokens }, 'sparse', 'required')).not.toThrow();
  });
  it('of an inline volume set its size, rounded up to whole bytes', () => {
    expect(parseEphemeral({ size: '64Mi', 'csi.storage.k8s.io/ephemeral': 'true' })).toBe(67_108_864);
    expect(parseEphemeral({ size: '1500m' })).toBe(2);
    expect(parseEphemeral({})).toBeUndefined();
    expect([ephemeralBytes(undefined, 1), ephemeralBytes(undefined, 2 ** 30), ephemeralBytes(5, 9)]).toEqual([
      67_108_864,
      2 ** 30,
      5,
    ]);
  });
});

describe('ids', () => {
  it('follow from the name, are safe as a file’s name, and differ', () => {
    expect(volumeIdOf('a')).toBe(volumeIdOf('a'));
    expect(volumeIdOf('a')).not.toBe(volumeIdOf('b'));
    expect(isSafeId(volumeIdOf('../../etc'))).toBe(true);
  });
  it.each(['', '.', '..', 'a/b', '-x', 'x\n', 'x'.repeat(129)])('%j was never given out', (id) =>
    expect(isSafeId(id)).toBe(false),
  );
  it('of inline volumes are the kubelet’s', () => {
    expect([isEphemeralId(`csi-${'0'.repeat(64)}`), isEphemeralId('csi-1'), isEphemeralId(volumeIdOf('a'))]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

it.each([
  ['nothing', null, undefined],
  ['a snapshot', { snapshot: { snapshot_id: 's' } }, { type: 'snapshot', id: 's' }],
  ['a volume', { volume: { volume_id: 'v' } }, { type: 'volume', id: 'v' }],
])('a content source of %s', (_what, raw, source) => expect(parseSource(raw)).toEqual(source));
it.each([[{}], [{ snapshot: { snapshot_id: '' } }], [{ volume: { volume_id: '' } }]])(
  'the content source %j is invalid',
  (raw) => {
    expect(() => parseSource(raw)).toThrow(invalid(/./));
  },
);

describe('a topology requirement', () => {
  const node = (value: string) => ({ segments: { 'topology.loop.csi.nodelet/node': value } });
  it.each([
    ['that is absent is met', null, true],
    ['with this node is met', { requisite: [node('n2'), node('n1')], preferred: [] }, true],
    ['with other nodes is not', { requisite: [node('n2')], preferred: [] }, false],
    ['of another domain is not', { requisite: [{ segments: { zone: 'n1' } }], preferred: [] }, false],
    ['that only prefers another node is met', { requisite: [], preferred: [node('n2')] }, true],
  ])('%s', (_what, requirement, met) => expect(meets(requirement, ['n1'])).toBe(met));
  it('that requires nothing is invalid', () => {
    expect(() => meets({ requisite: [], preferred: [] }, ['n1'])).toThrow(invalid(/neither/));
  });
});

describe('one call at a time', () => {
  it('is ABORTED for the second, and free again after the first, however that ends', async () => {
    const locks = new Locks();
    const gate = Promise.withResolvers<void>();
    const first = locks.hold('NodeStageVolume', ['a', 'b'], () => gate.promise);
    await expect(locks.hold('DeleteVolume', ['b'], async () => 1)).rejects.toMatchObject({
      code: 'ABORTED',
      message: /NodeStageVolume/,
    });
    expect(await locks.hold('DeleteVolume', ['c'], async () => 2)).toBe(2);
    gate.reject(new Error('failed'));
    await expect(first).rejects.toThrow('failed');
    expect(await locks.hold('DeleteVolume', ['a', 'a'], async () => 3)).toBe(3);
  });
});

describe('attaching a loop device', () => {
  const answers = (...results: readonly (readonly [number, string, string])[]) => {
    const ran: string[] = [];
    const left = [...results];
    const run: Exec = async (file, args) => {
      ran.push([file, ...args].join(' '));
      const [code, stdout, stderr] = left.shift() ?? [0, '', ''];
      return { code, stdout, stderr, signal: null, timedOut: false };
    };
    return { run, ran };
  };
  it.each([
    ['losetup: cannot find an unused loop device', 'no device left'],
    ['losetup: /x: failed to set up loop device: No such file or directory', 'other'],
    ['losetup: device node /dev/loop12 (7:12) is lost. You may use mknod(1) to recover it.', { lost: '/dev/loop12' }],
  ])('fails with %j', (words, kind) => expect(attachFailure(words)).toEqual(kind));
  it('says what can be done when there is none left', async () => {
    const { run } = answers([1, '', 'losetup: cannot find an unused loop device']);
    await expect(attachLoop('/v/data.img', false, run)).rejects.toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: /max_loop/,
    });
  });
  it('makes the device’s node where /dev lacks it, and tries once more', async () => {
    const { run, ran } = answers(
      [1, '', 'losetup: device node /dev/loop12 (7:12) is lost.'],
      [0, '', ''],
      [0, '/dev/loop12\n', ''],
    );
    expect(await attachLoop('/v/data.img', true, run)).toBe('/dev/loop12');
    expect(ran[1]).toBe('mknod -m 0600 /dev/loop12 b 7 12');
    expect(ran[2]).toBe('losetup --find --show --read-only /v/data.img');
  });
});

it('the loop device of a mount is its source, or the device file that is bound', () => {
  const table = [
    '43 27 7:3 / /s\\040pace rw,relatime shared:1 - ext4 /dev/loop3 rw',
    '44 27 0:5 /loop4 /t rw,nosuid - devtmpfs udev rw,size=4k',
    '45 27 0:5 /null /null rw - devtmpfs udev rw',
    '46 27 254:0 /loop5 /u rw - ext4 /dev/vda rw',
  ].join('\n');
  const mounts = parseMountInfo(table);
  expect(mounts.map((mount) => [mount.path, loopOf(mount)])).toEqual([
    ['/s pace', '/dev/loop3'],
    ['/t', '/dev/loop4'],
    ['/null', undefined],
    ['/u', undefined],
  ]);
});
