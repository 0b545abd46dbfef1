import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  burstableLimits,
  type CgroupLimits,
  cpuWeight,
  nodeLimits,
  podCgroupLimits,
} from '../../../../agent/node/cgroup-limits.ts';
import { createNodeCgroups } from '../../../../agent/node/cgroups.ts';
import { CgroupsV1, v1Files, v1HierarchiesOf } from '../../../../agent/node/cgroups-v1.ts';
import { CgroupsV2, hasSwapController, v2Files } from '../../../../agent/node/cgroups-v2.ts';
import type { Container } from '../../../../client/types.ts';
import { parseMountInfo } from '../../../../lib/mountinfo.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { container, pod } from '../runtime/fixtures.ts';

const SETTINGS = { cpuCFSQuota: true, cpuCFSQuotaPeriodUs: 100_000, podPidsLimit: -1 };

describe('limits of a pod’s cgroup', () => {
  const GUARANTEED = { limits: { cpu: '500m', memory: '1Gi' } };
  test.each<[string, Container['resources'][], Partial<typeof SETTINGS>, CgroupLimits]>([
    ['best effort', [undefined], {}, { cpuShares: 2 }],
    [
      'guaranteed',
      [GUARANTEED, GUARANTEED],
      {},
      { cpuShares: 1024, cpuPeriodUs: 100_000, cpuQuotaUs: 100_000, memoryBytes: 2 * 2 ** 30 },
    ],
    [
      'burstable with a container that has no limit',
      [GUARANTEED, { requests: { cpu: '500m' } }],
      {},
      { cpuShares: 1024 },
    ],
    [
      'burstable, memory limited in all of them',
      [{ limits: { memory: '1Gi' } }],
      {},
      { cpuShares: 2, memoryBytes: 2 ** 30 },
    ],
    ['without quotas', [GUARANTEED], { cpuCFSQuota: false }, { cpuShares: 512, memoryBytes: 2 ** 30 }],
    ['with podPidsLimit', [undefined], { podPidsLimit: 100 }, { cpuShares: 2, pids: 100 }],
  ])('%s', (_what, all, settings, expected) => {
    const containers = all.map((resources, index) =>
      container({ name: `c${index}`, ...(resources === undefined ? {} : { resources }) }),
    );
    expect(podCgroupLimits(pod({ containers }), { ...SETTINGS, ...settings })).toEqual(expected);
  });

  test('the burstable class weighs what its pods request together', () => {
    expect(burstableLimits([])).toEqual({ cpuShares: 2 });
    expect(burstableLimits([250, 750])).toEqual({ cpuShares: 1024 });
  });

  test('kubepods is held to the node’s allocatable only when that is enforced', () => {
    expect(nodeLimits({ cpuMilli: 2000, memoryBytes: 5 }, true)).toEqual({ cpuShares: 2048, memoryBytes: 5 });
    expect(nodeLimits({ cpuMilli: 2000, memoryBytes: 5 }, false)).toEqual({});
  });

  test.each([
    [2, 1],
    [1024, 39],
    [262_144, 10_000],
  ])('%i shares are a weight of %i', (shares, weight) => {
    expect(cpuWeight(shares)).toBe(weight);
  });
});

describe('files written', () => {
  test('on v1, the period before the quota', () => {
    expect(v1Files({ cpuShares: 2, cpuQuotaUs: 5000, cpuPeriodUs: 10_000, memoryBytes: -1, pids: -1 })).toEqual([
      { controller: 'cpu', file: 'cpu.shares', value: '2' },
      { controller: 'cpu', file: 'cpu.cfs_period_us', value: '10000' },
      { controller: 'cpu', file: 'cpu.cfs_quota_us', value: '5000' },
      { controller: 'memory', file: 'memory.limit_in_bytes', value: '-1' },
      { controller: 'pids', file: 'pids.max', value: 'max' },
    ]);
  });

  test('on v2, quota and period in one', () => {
    expect(v2Files({ cpuShares: 1024, cpuQuotaUs: 5000, cpuPeriodUs: 10_000, memoryBytes: 7, pids: 9 })).toEqual([
      { controller: 'cpu', file: 'cpu.weight', value: '39' },
      { controller: 'cpu', file: 'cpu.max', value: '5000 10000' },
      { controller: 'memory', file: 'memory.max', value: '7' },
      { controller: 'pids', file: 'pids.max', value: '9' },
    ]);
    expect(v2Files({ cpuQuotaUs: -1, memoryBytes: -1, pids: -1 }).map(({ value }) => value)).toEqual([
      'max 100000',
      'max',
      'max',
    ]);
  });
});

test('v1 hierarchies are found with the controllers that share one, systemd’s and the hybrid v2 one among them', () => {
  const mounts = [
    '25 24 0:22 / /sys/fs/cgroup rw shared:8 - tmpfs tmpfs rw',
    '26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct',
    '27 25 0:24 / /sys/fs/cgroup/memory rw,relatime shared:10 - cgroup cgroup rw,memory',
    '28 25 0:25 / /sys/fs/cgroup/systemd rw shared:11 - cgroup cgroup rw,xattr,name=systemd',
    '29 25 0:24 / /sys/fs/cgroup/again rw shared:12 - cgroup cgroup rw,memory',
    '30 24 0:26 / /elsewhere/pids rw shared:13 - cgroup cgroup rw,pids',
    '31 25 0:27 / /sys/fs/cgroup/unified rw shared:14 - cgroup2 cgroup2 rw',
  ].join('\n');
  expect(v1HierarchiesOf(parseMountInfo(mounts), '/sys/fs/cgroup')).toEqual([
    { mountPoint: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['cpu', 'cpuacct'] },
    { mountPoint: '/sys/fs/cgroup/memory', controllers: ['memory'] },
    { mountPoint: '/sys/fs/cgroup/systemd', controllers: ['name=systemd'] },
    { mountPoint: '/sys/fs/cgroup/unified', controllers: [] },
  ]);
  const unified = parseMountInfo('25 24 0:22 / /sys/fs/cgroup rw shared:8 - cgroup2 cgroup2 rw');
  expect(v1HierarchiesOf(unified, '/sys/fs/cgroup')).toEqual([]);
});

// Directories that look like a hierarchy: the kernel would make the files in a new cgroup, here they are there before.
describe('a hierarchy', () => {
  let root: string;
  const put = (path: string, text = ''): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodelet-cgroups-'));
  });
  afterEach(() => {
    rmSync(root, { recursive: true, force: true });
  });

  test('of v2 hands down the controllers that it has and that are missing below', () => {
    put('cgroup.controllers', 'cpuset cpu io memory pids misc\n');
    put('cgroup.subtree_control', 'cpuset cpu io memory misc\n');
    put('kubepods/cgroup.controllers', 'cpu memory\n');
    put('kubepods/cgroup.subtree_control', 'cpu\n');
    put('kubepods/cpu.weight');
    new CgroupsV2(root).ensure('/kubepods', { cpuShares: 1024 });
    expect(read('kubepods/cpu.weight')).toMatch(/^39/);
    expect(read('kubepods/cgroup.subtree_control')).toMatch(/^\+memory/);
  });

  test('of v2 says which controller a limit would have needed', () => {
    put('kubepods/cgroup.controllers', 'cpu\n');
    put('kubepods/cgroup.subtree_control', 'cpu\n');
    expect(() => new CgroupsV2(root).ensure('/kubepods', { memoryBytes: 5 })).toThrow(
      /has no memory\.max: the memory controller is not enabled above it/,
    );
  });

  test('of v2 has swap accounting when a cgroup has the file for it', () => {
    put('system.slice/memory.max', 'max');
    expect(hasSwapController(root)).toBe(false);
    put('system.slice/memory.swap.max', 'max');
    expect(hasSwapController(root)).toBe(true);
  });

  test('of v1 writes each limit where its controller is, and makes the path in every one', () => {
    put('cpu/kubepods/cpu.shares', '0');
    put('memory/kubepods/memory.limit_in_bytes', '0');
    mkdirSync(join(root, 'systemd'));
    const hierarchy = new CgroupsV1([
      { mountPoint: join(root, 'cpu'), controllers: ['cpu', 'cpuacct'] },
      { mountPoint: join(root, 'memory'), controllers: ['memory'] },
      { mountPoint: join(root, 'systemd'), controllers: ['name=systemd'] },
    ]);
    hierarchy.ensure('/kubepods', { cpuShares: 512, memoryBytes: 99 });
    expect(read('cpu/kubepods/cpu.shares')).toBe('512');
    expect(read('memory/kubepods/memory.limit_in_bytes')).toBe('99');
    mkdirSync(join(root, 'systemd/kubepods/pod1'));
    expect(hierarchy.children('/kubepods')).toEqual(['pod1']);
    expect(hierarchy.children('/nothing')).toEqual([]);
    put('cpu/kubepods/cgroup.procs', '12\n34\n');
    put('systemd/kubepods/pod1/cgroup.procs', '34\n56\n');
    expect(hierarchy.processes('/kubepods').sort()).toEqual([12, 34, 56]);
  });

  test('under the systemd driver are slices of systemd, parents first, before a limit is written', async () => {
    const kubepods = 'kubepods.slice';
    const burstable = `${kubepods}/kubepods-burstable.slice`;
    for (const path of [kubepods, burstable, `${kubepods}/kubepods-besteffort.slice`]) {
      put(`${path}/cgroup.controllers`, '');
      put(`${path}/cgroup.subtree_control`, '');
      put(`${path}/cpu.weight`, 'unwritten');
      put(`${path}/memory.max`, 'unwritten');
    }
    put('cgroup.controllers', '');
    put('cgroup.subtree_control', '');
    const reported: string[] = [];
    const cgroups = createNodeCgroups({
      layout: { root: '/', driver: 'systemd' },
      mountPoint: root,
      tracer: new Tracer(),
      clock: new VirtualClock(),
      allocatable: { cpuMilli: 1500, memoryBytes: 2 ** 30 },
      ...SETTINGS,
      slices: {
        ensure: async (path, limits) => {
          const before = read(`${path}/cpu.weight`).slice(0, 9);
          reported.push(`${path} ${JSON.stringify(limits)} ${before}`);
        },
        stop: async () => undefined,
      },
    });
    await cgroups.ensureNode();
    expect(reported).toEqual([
      '/kubepods.slice {"cpuShares":1536,"memoryBytes":1073741824} unwritten',
      '/kubepods.slice/kubepods-besteffort.slice {"cpuShares":2} unwritten',
      '/kubepods.slice/kubepods-burstable.slice {"cpuShares":2} unwritten',
    ]);
    expect(read(`${kubepods}/memory.max`)).toMatch(/^1073741824/);
    expect(read(`${burstable}/cpu.weight`)).toMatch(/^1/);
  });
});
