import { chmod, mkdir, mkdtemp, readlink, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { atOnce, callsFor, inPool, type PathCalls, safeOpenSubPath } from '../../../../agent/volumes/sub-path.ts';

let base = '';
let volume = '';
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'nodelet-volumes-subpath-')));
  volume = join(base, 'volume');
  await mkdir(join(volume, 'dir/inner'), { recursive: true });
  await writeFile(join(volume, 'dir/file'), 'x');
  await mkdir(join(base, 'outside'));
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** The place held, by the kernel's own account. */
async function place(subPath: string, calls: PathCalls, of = volume): Promise<string> {
  const retained = await safeOpenSubPath(of, subPath, calls);
  try {
    return await readlink(`/proc/self/fd/${retained.fd}`);
  } finally {
    await retained.close();
  }
}

describe.each([
  ['at once', atOnce],
  ['childOf the thread pool', inPool],
])('a subPath looked up %s', (_name, calls) => {
  test.each([
    ['dir', 'dir'],
    ['dir/inner', 'dir/inner'],
    ['dir/file', 'dir/file'],
    ['./dir//inner/', 'dir/inner'],
    ['.', ''],
  ])('%s is held where it is', async (subPath, where) => {
    expect(await place(subPath, calls)).toBe(join(volume, where));
  });

  test('distinguishes a file from a directory', async () => {
    for (const [subPath, isDirectory] of [
      ['dir', true],
      ['dir/file', false],
    ] as const) {
      const retained = await safeOpenSubPath(volume, subPath, calls);
      expect(retained.isDirectory).toBe(isDirectory);
      await retained.close();
    }
  });

  test.each([0o777, 0o700, 0o2775, 0o1777])(
    'that does not exist is made as directories with the volume’s mode %o, whatever the umask',
    async (mode) => {
      await chmod(volume, mode);
      expect(await place('dir/new/deep', calls)).toBe(join(volume, 'dir/new/deep'));
      for (const made of ['dir/new', 'dir/new/deep']) {
        expect((await stat(join(volume, made))).mode & 0o7777).toBe(mode);
      }
    },
  );

  test('that exists keeps its mode', async () => {
    await chmod(volume, 0o777);
    await chmod(join(volume, 'dir'), 0o711);
    await place('dir', calls);
    expect((await stat(join(volume, 'dir'))).mode & 0o7777).toBe(0o711);
  });

  test('may go childOf links that stay inside', async () => {
    await symlink('dir/inner', join(volume, 'link'));
    expect(await place('link', calls)).toBe(join(volume, 'dir/inner'));
    expect(await place('link/made', calls)).toBe(join(volume, 'dir/inner/made'));
  });

  test('works on a volume path that is a link itself', async () => {
    await symlink(volume, join(base, 'alias'));
    expect(await place('dir', calls, join(base, 'alias'))).toBe(join(volume, 'dir'));
  });

  test.each([
    ['an absolute link', '/etc'],
    ['a relative link out', '../outside'],
    ['a link to a sibling with the same prefix', '../volume-2'],
  ])('childOf %s is refused', async (_, target) => {
    await mkdir(join(base, 'volume-2'));
    await symlink(target, join(volume, 'evil'));
    await expect(safeOpenSubPath(volume, 'evil', calls)).rejects.toThrow(
      `subpath "evil" not within volume path "${volume}"`,
    );
    await expect(safeOpenSubPath(volume, 'evil/below', calls)).rejects.toThrow('not within volume path');
  });

  test('below a dangling link makes nothing outside', async () => {
    await symlink('../outside/new', join(volume, 'dangling'));
    await expect(safeOpenSubPath(volume, 'dangling/x', calls)).rejects.toThrow('is a symbolic link');
    await expect(stat(join(base, 'outside/new'))).rejects.toThrow('ENOENT');
  });

  test.each([
    ['/etc', 'must not be an absolute path'],
    ['../outside', "must not contain '..'"],
    ['dir/../../outside', "must not contain '..'"],
    ['dir/file/below', 'ENOTDIR'],
  ])('%s is refused', async (subPath, message) => {
    await expect(safeOpenSubPath(volume, subPath, calls)).rejects.toThrow(message);
  });

  test('leaves no handle open, whether it works or not', async () => {
    const { readdir } = await import('node:fs/promises');
    const count = async () => (await readdir('/proc/self/fd')).length;
    await symlink('/etc', join(volume, 'evil'));
    await place('dir/inner', calls);
    const before = await count();
    for (let i = 0; i < 20; i++) {
      await place('dir/inner', calls);
      await safeOpenSubPath(volume, 'evil/x', calls).catch(() => undefined);
      await safeOpenSubPath(volume, 'dir/file/x', calls).catch(() => undefined);
    }
    expect(await count()).toBeLessThanOrEqual(before + 2);
  });
});

test.each([
  ['ext4', atOnce],
  ['xfs', atOnce],
  ['tmpfs', atOnce],
  ['overlay', atOnce],
  ['nfs4', inPool],
  ['fuse.sshfs', inPool],
  ['ceph', inPool],
  [undefined, inPool],
])('files on %s are never waited for by the whole agent', (fsType, calls) => {
  expect(callsFor(fsType)).toBe(calls);
});
