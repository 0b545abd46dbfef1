import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostPathVolume } from '../../../../agent/volumes/host-path.ts';
import { TokenCache } from '../../../../agent/volumes/tokens.ts';
import { Gate } from '../../../../lib/gate.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { FakeMounter, FakeObjects, FakeRecorder, ManualClock, pod } from './support.ts';

let dir = '';
let server: Server;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-volumes-host-'));
  await mkdir(join(dir, 'directory'));
  await writeFile(join(dir, 'file'), '');
  await symlink('directory', join(dir, 'link'));
  server = createServer();
  await new Promise<void>((resolve) => server.listen(join(dir, 'socket'), resolve));
});
afterAll(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const clock = new ManualClock();
const objects = new FakeObjects(clock);
const tokens = new TokenCache(objects, clock);
const host = {
  mounter: new FakeMounter(),
  objects,
  clock,
  tokens,
  recorder: new FakeRecorder(),
  tracer: new Tracer(),
  bigContents: new Gate(1),
};
const plan = (path: string, type: string) =>
  hostPathVolume.plan({ pod: pod({}), volume: { name: 'v', hostPath: { path, type } }, podDir: '/p', allocatable: {} });
const mount = (name: string, type: string) =>
  hostPathVolume.mount(plan(name.startsWith('/') ? name : join(dir, name), type), pod({}), host);

describe('a hostPath', () => {
  test.each([
    ['directory', 'Directory'],
    ['link', 'Directory'],
    ['directory', 'DirectoryOrCreate'],
    ['file', 'File'],
    ['file', 'FileOrCreate'],
    ['socket', 'Socket'],
    ['/dev/null', 'CharDevice'],
    ['nothing/there', ''],
  ])('%s passes as "%s"', async (name, type) => {
    await expect(mount(name, type)).resolves.toBeUndefined();
  });

  test.each([
    ['file', 'Directory', 'is not a directory'],
    ['missing', 'Directory', 'is not a directory'],
    ['file', 'DirectoryOrCreate', 'is not a directory'],
    ['directory', 'File', 'is not a file'],
    ['missing', 'File', 'is not a file'],
    ['directory', 'FileOrCreate', 'is not a file'],
    ['file', 'Socket', 'is not a socket file'],
    ['file', 'CharDevice', 'is not a character device'],
    ['/dev/null', 'BlockDevice', 'is not a block device'],
    ['socket', 'File', 'is not a file'],
  ])('%s fails as %s', async (name, type, message) => {
    await expect(mount(name, type)).rejects.toThrow(`hostPath type check failed: `);
    await expect(mount(name, type)).rejects.toThrow(message);
  });

  test('that is to be created is, with the documented modes', async () => {
    const before = process.umask(0o077);
    try {
      await mount('made/deep', 'DirectoryOrCreate');
    } finally {
      process.umask(before);
    }
    expect((await stat(join(dir, 'made/deep'))).mode & 0o777).toBe(0o755);
    await mount('made-file', 'FileOrCreate');
    expect((await stat(join(dir, 'made-file'))).mode & 0o777).toBe(0o644);
    await expect(mount('no-parent/file', 'FileOrCreate')).rejects.toThrow('ENOENT');
  });

  test('with an unknown type or a way up is refused', () => {
    expect(() => plan('/x', 'Pipe')).toThrow('hostPath type "Pipe" is not supported');
    expect(() => plan('/x/../etc', '')).toThrow("must not contain '..'");
  });
});
