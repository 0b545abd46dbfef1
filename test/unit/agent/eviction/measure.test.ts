// Reading the kernel's figures, from files laid out as cgroup v1 and v2 do, and from real directories and disks.

import { link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { machineTasks, memoryLimitBytes, taskCount, workingSetBytes } from '../../../../agent/eviction/cgroup-usage.ts';
import { diskUsage } from '../../../../agent/eviction/disk-usage.ts';
import { diskLayout, SignalReader } from '../../../../agent/eviction/signals.ts';
import { systemClock } from '../../../../lib/clock.ts';

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-measure-'));
});

afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

describe('memory of a cgroup', () => {
  it('on v1 is its usage less the inactive page cache of everything below', async () => {
    await put('memory/kubepods/memory.usage_in_bytes', '1000\n');
    await put('memory/kubepods/memory.stat', 'inactive_file 1\ntotal_inactive_file 300\n');
    await put('memory/kubepods/memory.limit_in_bytes', '5000\n');
    const files = { version: 1, mountPoint: root } as const;
    expect(workingSetBytes(files, '/kubepods')).toBe(700);
    expect(memoryLimitBytes(files, '/kubepods')).toBe(5000);
    expect(workingSetBytes(files, '/other')).toBeUndefined();
  });

  it('on v2 is memory.current less inactive page cache', async () => {
    await put('kubepods/memory.current', '1000\n');
    await put('kubepods/memory.stat', 'anon 500\nfile 400\ninactive_file 300\n');
    await put('kubepods/memory.max', 'max\n');
    await put('kubepods/pids.current', '17\n');
    const files = { version: 2, mountPoint: root } as const;
    expect(workingSetBytes(files, '/kubepods')).toBe(700);
    expect(memoryLimitBytes(files, '/kubepods')).toBeUndefined();
    expect(taskCount(files, '/kubepods')).toBe(17);
  });

  it('of the root of v2, which has no figure of its own, is anonymous memory and page cache', async () => {
    await put('memory.stat', 'anon 500\nfile 400\ninactive_file 300\n');
    expect(workingSetBytes({ version: 2, mountPoint: root }, '/')).toBe(600);
  });

  it('is never negative, and a limit beyond all memory is none', async () => {
    await put('memory/p/memory.usage_in_bytes', '100');
    await put('memory/p/memory.stat', 'total_inactive_file 300');
    await put('memory/p/memory.limit_in_bytes', '9223372036854771712');
    expect(workingSetBytes({ version: 1, mountPoint: root }, '/p')).toBe(0);
    expect(memoryLimitBytes({ version: 1, mountPoint: root }, '/p')).toBeUndefined();
  });
});

it('tasks of the machine are limited by the lower of pid_max and threads-max', async () => {
  await put('loadavg', '0.1 0.2 0.3 2/345 6789\n');
  await put('sys/kernel/pid_max', '4194304\n');
  await put('sys/kernel/threads-max', '100000\n');
  expect(machineTasks(root)).toEqual({ running: 345, max: 100_000 });
});

describe('disk usage', () => {
  it('counts blocks and inodes, hard links once, and does not follow links', async () => {
    await put('d/a', 'x'.repeat(100_000));
    await put('d/sub/b', 'y');
    await put('outside', 'z'.repeat(1_000_000));
    await link(join(root, 'd/a'), join(root, 'd/again'));
    await symlink(join(root, 'outside'), join(root, 'd/pointer'));
    const found = await diskUsage(join(root, 'd'));
    expect(found?.inodes).toBe(5);
    expect(found?.bytes).toBeGreaterThanOrEqual(100_000);
    expect(found?.bytes).toBeLessThan(300_000);
  });

  it('of a sparse file is what it occupies, not what it claims', async () => {
    const { open } = await import('node:fs/promises');
    const file = await open(join(root, 'sparse'), 'w');
    await file.truncate(1 << 30);
    await file.close();
    expect((await diskUsage(join(root, 'sparse')))?.bytes).toBeLessThan(1 << 20);
  });

  it('of nothing is undefined', async () => {
    expect(await diskUsage(join(root, 'nothing'))).toBeUndefined();
  });
});

describe('signals', () => {
  test.each([
    [1, 1, undefined, 'shared'],
    [1, undefined, undefined, 'shared'],
    [1, 2, undefined, 'imagefs'],
    [1, 2, 2, 'imagefs'],
    [1, 2, 1, 'splitImagefs'],
  ])('nodefs on %s, images on %s, layers on %s are called %s', (node, images, layers, layout) => {
    expect(diskLayout(node, images, layers)).toBe(layout);
  });

  it('are measured on this machine at the cost of reading some small files', async () => {
    let requested = 0;
    const troubles: string[] = [];
    await put('cg/memory.stat', 'anon 500\nfile 400\ninactive_file 300\n');
    await put('cg/kubepods/memory.current', '1000\n');
    await put('cg/kubepods/memory.stat', 'inactive_file 300\n');
    await put('cg/kubepods/memory.max', '5000\n');
    const reader = new SignalReader({
      clock: systemClock,
      rootDir: root,
      memoryCapacityBytes: 10_000,
      cgroups: { version: 2, mountPoint: join(root, 'cg') },
      kubepods: '/kubepods',
      imageFsPaths: async () => {
        requested++;
        if (requested === 1) throw new Error('connect ENOENT');
        return { image: root, container: undefined };
      },
      onTrouble: (message) => troubles.push(message),
    });
    const before = await reader.read();
    expect(before.observations['imagefs.available']).toBeUndefined();
    expect(troubles).toEqual(['the image file system is unknown: connect ENOENT']);
    const { observations, layout } = await reader.read();
    expect(layout).toBe('shared');
    expect(observations['memory.available']).toEqual({ available: 9_400, capacity: 10_000 });
    expect(observations['allocatableMemory.available']).toEqual({ available: 4_300, capacity: 5_000 });
    expect(observations['nodefs.available']?.capacity).toBeGreaterThan(0);
    expect(observations['imagefs.available']).toBeDefined();
    expect(observations['pid.available']?.available).toBeGreaterThan(0);
    const cost = async (work: () => Promise<unknown>): Promise<number> => {
      const start = process.cpuUsage();
      await work();
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    const someFiles = async (): Promise<void> => {
      for (let file = 0; file < 10; file++) await readFile(join(root, 'cg/memory.stat'));
    };
    let [signals, files] = [0, 0];
    for (let round = 0; round < 100; round++) {
      signals += await cost(() => reader.read());
      files += await cost(someFiles);
    }
    // A round comes every 10 s, and ten small files take far less than a thousandth of that.
    expect(signals / files).toBeLessThan(1);
    expect(requested).toBe(2);
  });

  test('are not read again while the state that is passed in is the same', async () => {
    let state = 'first';
    const reader = new SignalReader({
      clock: systemClock,
      rootDir: root,
      memoryCapacityBytes: 10_000,
      cgroups: { version: 2, mountPoint: join(root, 'cg') },
      kubepods: '/kubepods',
      imageFsPaths: async () => ({ image: root, container: undefined }),
      onTrouble: () => undefined,
      state: () => state,
    });
    const available = async () => (await reader.read()).observations['memory.available']?.available;
    await put('cg/memory.stat', 'anon 500\nfile 0\n');
    expect(await available()).toBe(9500);
    await put('cg/memory.stat', 'anon 700\nfile 0\n');
    expect(await available()).toBe(9500);
    state = 'second';
    expect(await available()).toBe(9300);
  });
});
