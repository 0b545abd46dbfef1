import { expect, test } from 'vitest';
import type { ContainerStats, PodUID } from '../../../../agent/ports/runtime.ts';
import { type FileSystem, measuredPlugin, PodDisks } from '../../../../agent/stats/disk.ts';
import { type SummaryDisks, statsSummary } from '../../../../agent/stats/summary.ts';
import { StatsPages } from '../../../../agent/stats/usage-pages.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { ManualClock, pod } from '../volumes/support.ts';
import { testMachine } from './support.ts';

const FS: FileSystem = {
  availableBytes: 60,
  capacityBytes: 100,
  usedBytes: 40,
  inodesFree: 6,
  inodes: 10,
  inodesUsed: 4,
};
const ROOM = { availableBytes: 60, capacityBytes: 100, inodesFree: 6, inodes: 10 };
const uid = 'uid-1' as PodUID;

function disks(more: Partial<SummaryDisks> = {}): SummaryDisks {
  return {
    rootFs: FS,
    imageFs: { ...FS, usedBytes: 30, inodesUsed: 3 },
    containers: [
      { podUID: uid, name: 'main', restartCount: 1, writableLayer: { bytes: 7, inodes: 2 } },
      { podUID: uid, name: 'main', restartCount: 0, writableLayer: { bytes: 1, inodes: 1 } },
    ],
    pods: new Map([
      [
        'uid-1',
        {
          logs: new Map([['main', { bytes: 20, inodes: 2 }]]),
          volumes: [
            { name: 'cache', fs: { ...FS, usedBytes: 300, inodesUsed: 3 }, ephemeral: true },
            { name: 'token', fs: { ...FS, usedBytes: 1, inodesUsed: 1 }, ephemeral: false },
          ],
          files: { bytes: 4000, inodes: 1 },
        },
      ],
    ]),
    volumes: [
      {
        podUid: 'uid-1',
        name: 'data',
        pvcRef: { name: 'claim', namespace: 'demo' },
        capacityBytes: 9,
        condition: { abnormal: true, message: 'x' },
        at: epochMs(0),
      },
    ],
    tasks: { max: 100, running: 5 },
    ...more,
  };
}

test('the whole summary', () => {
  const { clock, sampler, used } = testMachine();
  sampler.take('summary');
  clock.advance(10_000);
  used(4_000_000);
  const node = sampler.take('summary');
  const bootTime = epochMs(0);
  const agent = sampler.sample('/agent', 'summary');
  if (agent === undefined || node.kubepods === undefined) throw new Error('no cgroup');
  const time = rfc3339(clock.now());
  const summary = statsSummary({
    nodeName: 'n1',
    node,
    bootTime,
    system: [
      { name: 'pods', sample: node.kubepods },
      { name: 'kubelet', sample: agent, startTime: epochMs(1_000) },
    ],
    disks: disks(),
  });
  const none = { avg10: 0, avg60: 0, avg300: 0, total: 0 };
  expect(summary).toMatchObject({
    node: {
      nodeName: 'n1',
      startTime: '1970-01-01T00:00:00Z',
      systemContainers: [
        { name: 'pods', startTime: null, memory: { workingSetBytes: 960 } },
        { name: 'kubelet', startTime: '1970-01-01T00:00:01Z', cpu: { usageCoreNanoSeconds: 500_000_000 } },
      ],
      cpu: {
        time,
        usageNanoCores: 0,
        usageCoreNanoSeconds: 9_000_000_000,
        psi: { some: { avg10: 1, avg60: 0, avg300: 0, total: 1_500_000 }, full: none },
      },
      memory: {
        time,
        availableBytes: 4940,
        usageBytes: 5100,
        workingSetBytes: 5060,
        rssBytes: 5000,
        pageFaults: 9,
        majorPageFaults: 2,
      },
      swap: { time, swapAvailableBytes: 300, swapUsageBytes: 0 },
      network: {
        time,
        name: 'eth0',
        rxBytes: 1,
        rxErrors: 3,
        txBytes: 5,
        txErrors: 7,
        interfaces: [{ name: 'eth0', rxBytes: 1, rxErrors: 3, txBytes: 5, txErrors: 7 }],
      },
      fs: { time, ...FS },
      runtime: { imageFs: { ...ROOM, usedBytes: 30, inodesUsed: 3 }, containerFs: { usedBytes: 30 } },
      rlimit: { time, maxpid: 100, curproc: 5 },
    },
  });
  expect(summary).toHaveProperty('pods', [
    {
      podRef: { name: 'web', namespace: 'demo', uid: 'uid-1' },
      startTime: '2026-01-01T00:00:00Z',
      containers: [
        {
          name: 'main',
          startTime: '2026-01-01T00:00:00Z',
          // 2 s of processor time in 10 s.
          cpu: { time, usageNanoCores: 200_000_000, usageCoreNanoSeconds: 4_000_000_000 },
          memory: {
            time,
            availableBytes: 240,
            usageBytes: 800,
            workingSetBytes: 760,
            rssBytes: 700,
            pageFaults: 9,
            majorPageFaults: 2,
          },
          swap: { time, swapAvailableBytes: 45, swapUsageBytes: 5 },
          rootfs: { time, ...ROOM, usedBytes: 7, inodesUsed: 2 },
          logs: { time, ...ROOM, usedBytes: 20, inodesUsed: 2 },
        },
      ],
      cpu: { time, usageNanoCores: 0, usageCoreNanoSeconds: 2_500_000_000 },
      memory: {
        time,
        usageBytes: 900,
        workingSetBytes: 860,
        rssBytes: 800,
        pageFaults: 9,
        majorPageFaults: 2,
      },
      swap: { time, swapUsageBytes: 5 },
      network: {
        time,
        name: 'eth0',
        rxBytes: 10,
        rxErrors: 30,
        txBytes: 50,
        txErrors: 70,
        interfaces: [{ name: 'eth0', rxBytes: 10, rxErrors: 30, txBytes: 50, txErrors: 70 }],
      },
      volume: [
        { time, ...ROOM, usedBytes: 300, inodesUsed: 3, name: 'cache' },
        { time, ...ROOM, usedBytes: 1, inodesUsed: 1, name: 'token' },
        {
          time: '1970-01-01T00:00:00Z',
          name: 'data',
          pvcRef: { name: 'claim', namespace: 'demo' },
          capacityBytes: 9,
          volumeHealthStats: { abnormal: true },
        },
      ],
      // What the container wrote, its logs, the emptyDir and the hosts file; the token's volume is memory.
      'ephemeral-storage': { time, ...ROOM, usedBytes: 7 + 20 + 300 + 4000, inodesUsed: 2 + 2 + 3 + 1 },
      process_stats: { process_count: 1 },
    },
  ]);
});

function pages(containerStats: () => Promise<readonly ContainerStats[]>) {
  const machine = testMachine();
  const { clock, sampler, pods } = machine;
  const stats = new StatsPages({
    nodeName: 'n1',
    rootDir: '/',
    sampler,
    machine: {
      bootID: '',
      machineID: '',
      systemUUID: '',
      cores: 1,
      physicalCores: 1,
      sockets: 1,
      memory: 1,
      swap: 0,
      bootTime: 0,
      deviceName: (numbers) => numbers,
    },
    pods,
    system: [{ name: 'kubelet', path: '/agent' }],
    disks: new PodDisks({
      clock,
      maxAgeMs: 60_000,
      measure: async () => undefined,
      paths: { volumes: () => '', logs: () => '', etcHosts: () => '' },
    }),
    containerStats,
    imageFs: async () => undefined,
    volumes: async () => [],
    tasks: () => undefined,
    clock,
    onTrouble: () => undefined,
  });
  return { ...machine, stats };
}

test('CPU and memory alone ask neither the runtime nor disks', async () => {
  const { clock, stats } = pages(async () => {
    throw new Error('the runtime was called');
  });
  const short = stats.summary(true);
  // The first reading of a counter has no rate: a second one follows.
  clock.advance(250);
  const [podStats] = Reflect.get(await short, 'pods') as readonly object[];
  expect(Object.keys(podStats ?? {})).toEqual(['podRef', 'startTime', 'containers', 'cpu', 'memory', 'swap']);
  expect(podStats).toMatchObject({ containers: [{ name: 'main', cpu: { usageNanoCores: 0 } }] });
  await expect(stats.summary(false)).rejects.toThrow('the runtime was called');
});

test.each([
  [{ emptyDir: {} }, { plugin: 'empty-dir', ephemeral: true }],
  [{ emptyDir: { medium: 'Memory' } }, { plugin: 'empty-dir', ephemeral: false }],
  [{ configMap: { name: 'c' } }, { plugin: 'configmap', ephemeral: true }],
  [{ secret: { secretName: 's' } }, { plugin: 'secret', ephemeral: false }],
  [{ projected: { sources: [] } }, { plugin: 'projected', ephemeral: false }],
  [{ downwardAPI: {} }, { plugin: 'downward-api', ephemeral: false }],
  [{ hostPath: { path: '/' } }, undefined],
])('a volume %j is measured as %j', (source, expected) => {
  expect(measuredPlugin({ name: 'v', ...source })).toEqual(expected);
});

test('disks are walked over once a minute', async () => {
  const clock = new ManualClock();
  const walked: string[] = [];
  const podDisks = new PodDisks({
    clock,
    maxAgeMs: 60_000,
    measure: async (path) => {
      walked.push(path);
      return { bytes: 1, inodes: 1 };
    },
    paths: { volumes: (_pod, plugin) => `/${plugin}`, logs: () => '/logs', etcHosts: () => '/hosts' },
  });
  const all = [pod({ containers: [{ name: 'c', image: 'i' }] })];
  const first = await podDisks.read(all);
  clock.advance(59_000);
  expect(await podDisks.read(all)).toEqual(first);
  expect(walked).toEqual(['/logs/c', '/hosts']);
  clock.advance(1_000);
  await podDisks.read(all);
  expect(walked).toHaveLength(4);
});
