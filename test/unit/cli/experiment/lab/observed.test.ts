// What a lab observes, made of what the API server and the kernel say.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RuntimeError } from '../../../../../agent/ports/runtime.ts';
import { isAway } from '../../../../../cli/experiment/lab/containers.ts';
import { ObjectVersions } from '../../../../../cli/experiment/lab/objects.ts';
import { processCpuMs, processMemoryBytes, Sampler, statLine } from '../../../../../cli/experiment/lab/samples.ts';

describe('versions of objects', () => {
  const object = (uid: string, resourceVersion: string) => ({
    apiVersion: 'v1',
    kind: '',
    metadata: { name: uid, uid, resourceVersion },
  });
  test('a list after a lost watch shows what is new and what is gone', () => {
    const versions = new ObjectVersions('Pod');
    const names = (changes: ReturnType<ObjectVersions['listed']>) =>
      changes.map(({ change, object: of }) => `${change} ${of.kind} ${of.metadata.name}`);
    expect(names(versions.listed([object('a', '1'), object('b', '2')]))).toEqual(['ADDED Pod a', 'ADDED Pod b']);
    expect(names(versions.event('ADDED', object('c', '3')))).toEqual(['ADDED Pod c']);
    expect(names(versions.event('MODIFIED', object('c', '4')))).toEqual(['MODIFIED Pod c']);
    expect(names(versions.event('MODIFIED', object('c', '4')))).toEqual([]);
    expect(names(versions.event('DELETED', object('a', '5')))).toEqual(['DELETED Pod a']);
    expect(names(versions.listed([object('c', '6'), object('d', '7')]))).toEqual([
      'DELETED Pod b',
      'MODIFIED Pod c',
      'ADDED Pod d',
    ]);
  });
});

test.each([
  [new RuntimeError('ListContainers', 'UNAVAILABLE', 'connect ENOENT'), true],
  [new RuntimeError('ListContainers', 'UNKNOWN', 'server is not initialized yet'), true],
  [new RuntimeError('ListContainers', 'UNIMPLEMENTED', 'unknown service'), false],
  [new Error('server is not initialized yet'), false],
])('%s: the runtime is away is %s', (error, away) => {
  expect(isAway(error)).toBe(away);
});

describe('numbers of the kernel', () => {
  test('of a process', () => {
    const stat = '42 (a (b) c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 7 0 100 200 300';
    expect(processCpuMs(stat)).toBe(2000);
    expect(processCpuMs('')).toBeUndefined();
    expect(processMemoryBytes('Name:\ta\nVmRSS:\t  2048 kB\n')).toBe(2 * 1024 * 1024);
    expect(processMemoryBytes('Name:\tkthreadd\n')).toBeUndefined();
    expect(statLine('nr_periods 5\nnr_throttled 2\n', 'nr_throttled')).toBe(2);
    expect(statLine('nr_periods 5\n', 'throttled_time')).toBeUndefined();
  });

  let mountPoint: string;
  beforeEach(async () => {
    mountPoint = await mkdtemp(join(tmpdir(), 'experiment-cgroups-'));
  });
  afterEach(() => rm(mountPoint, { recursive: true }));
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(join(mountPoint, path, '..'), { recursive: true });
    await writeFile(join(mountPoint, path), text);
  };
  const read = (sampler: Sampler, ms: number) =>
    Object.fromEntries(
      sampler.readPod({ pod: 'demo/web', cgroup: '/p' }, ms).map(({ series, value }) => [series, value]),
    );

  test('of a pod on cgroup v1: rates from the second look on, throttling of pod and containers', async () => {
    await put('memory/p/memory.stat', 'total_inactive_file 100\n');
    await put('memory/p/memory.usage_in_bytes', '1100\n');
    await put('cpuacct/p/cpuacct.usage', '1000000000\n');
    await put('cpu/p/cpu.stat', 'nr_periods 10\nnr_throttled 1\nthrottled_time 1000000\n');
    await put('cpu/p/c1/cpu.stat', 'nr_periods 12\nnr_throttled 4\nthrottled_time 3000000\n');
    const sampler = new Sampler({ version: 1, mountPoint });
    expect(read(sampler, 0)).toEqual({ memory: 1000, throttled: 4, periods: 12, throttledPeriods: 5 });
    await put('cpuacct/p/cpuacct.usage', '1500000000\n');
    expect(read(sampler, 1000)).toMatchObject({ cpu: 0.5 });
  });

  test('of a pod on cgroup v2, and of one that is gone', async () => {
    await put('p/memory.stat', 'inactive_file 0\n');
    await put('p/memory.current', '5\n');
    await put('p/cpu.stat', 'usage_usec 2000000\nnr_periods 3\nnr_throttled 2\nthrottled_usec 7000\n');
    // Both are throttled in one period.
    await put('p/c1/cpu.stat', 'nr_periods 3\nnr_throttled 2\nthrottled_usec 0\n');
    const sampler = new Sampler({ version: 2, mountPoint });
    expect(read(sampler, 0)).toEqual({ memory: 5, throttled: 7, periods: 3, throttledPeriods: 3 });
    await put('p/cpu.stat', 'usage_usec 4000000\n');
    expect(read(sampler, 1000)).toMatchObject({ cpu: 2 });
    await rm(join(mountPoint, 'p'), { recursive: true });
    expect(read(sampler, 2000)).toEqual({});
  });
});
