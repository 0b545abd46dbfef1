// What the pages of metrics cost with a full node: 110 pods, each with a real cgroup of its own for the pod, its sandbox and its
// container, on this machine's cgroups. Prints, for each page, processor time and bytes. Needs root; starts no container.
//
//   sh scripts/node24 test/bench/scrape.ts

import { spawn } from 'node:child_process';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findV1Hierarchies } from '../../agent/node/cgroups-v1.ts';
import type { ContainerId, PodSnapshot, PodUID, SandboxId } from '../../agent/ports/runtime.ts';
import { cadvisorPage } from '../../agent/stats/cadvisor-page.ts';
import { CgroupV1Reader } from '../../agent/stats/cgroup-v1.ts';
import { CgroupV2Reader } from '../../agent/stats/cgroup-v2.ts';
import { readDirectories as directories, KeptFiles, readKernelFile } from '../../agent/stats/read-file.ts';
import { resourcePage } from '../../agent/stats/resource-page.ts';
import { Sampler } from '../../agent/stats/sampler.ts';
import { statsSummary } from '../../agent/stats/summary.ts';
import type { Pod } from '../../client/types.ts';
import { epochMs, systemClock } from '../../lib/clock.ts';
import { openFilesLimit } from '../../lib/descriptors.ts';

const PODS = 110;
const ROUNDS = 15;
const MOUNT = '/sys/fs/cgroup';
const ROOT = `nodelet-scrape-${process.pid}`;

interface BenchPod {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  /** Below the root of the hierarchy. */
  readonly paths: readonly string[];
}

const hex = (seed: number): string => seed.toString(16).padStart(4, '0').repeat(16);

function benchPod(index: number): BenchPod {
  const uid = `${hex(index).slice(0, 8)}-0000-4000-8000-${hex(index).slice(0, 12)}` as PodUID;
  const [sandbox, container] = [hex(index + 0x1000) as SandboxId, hex(index + 0x2000) as ContainerId];
  const name = `web-7d4b9c6f5-${index.toString(36).padStart(5, 'x')}`;
  const createdAt = epochMs(Date.now());
  const path = `/${ROOT}/kubepods/besteffort/pod${uid}`;
  return {
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', uid, resourceVersion: '1' },
      spec: { containers: [{ name: 'web', image: 'nginx:stable' }] },
    },
    snapshot: {
      pod: { uid, namespace: 'default', name },
      sandboxes: [
        { id: sandbox, attempt: 0, state: 'ready', createdAt, ips: [], hostNetwork: false, runtimeHandler: '' },
      ],
      containers: [
        {
          id: container,
          sandboxId: sandbox,
          name: 'web',
          type: 'container',
          restartCount: 0,
          hash: '',
          state: 'running',
          createdAt,
          startedAt: createdAt,
          finishedAt: epochMs(0),
          exitCode: 0,
          reason: '',
          message: '',
          image: 'docker.io/library/nginx:stable',
          imageId: '',
          logPath: '',
        },
      ],
      observedAt: createdAt,
    },
    paths: [path, `${path}/${sandbox}`, `${path}/${container}`],
  };
}

const v1 = findV1Hierarchies(MOUNT);
const READ = new Set(['cpu', 'cpuacct', 'memory', 'pids', 'blkio']);
const read1 = v1.filter(({ controllers }) => controllers.some((name) => READ.has(name)));
const mounts = v1.length > 0 ? read1.map(({ mountPoint }) => mountPoint) : [MOUNT];
const pods = Array.from({ length: PODS }, (_, index) => benchPod(index));
const paths = [`/${ROOT}`, `/${ROOT}/kubepods`, `/${ROOT}/kubepods/burstable`, `/${ROOT}/kubepods/besteffort`].concat(
  pods.flatMap((pod) => pod.paths),
);
const example = `/${ROOT}/kubepods`;
// A process for each sandbox and each container, as a pod has them; with a network of its own, which has no interfaces but the loopback.
const sleepers = pods.flatMap(() => [0, 1].map(() => spawn('unshare', ['-n', 'sleep', '600'], { stdio: 'ignore' })));

function measure(name: string, page: () => string): void {
  for (let round = 0; round < 5; round++) page();
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    bytes = Buffer.byteLength(page());
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1000);
  }
  const median = times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
  console.log(
    `${name.padEnd(40)} ${median.toFixed(1).padStart(6)} ms of CPU ${(bytes / 1e6).toFixed(2).padStart(6)} MB`,
  );
}

function run(): void {
  const kept = new KeptFiles(systemClock, openFilesLimit());
  const { read } = kept;
  const reader =
    v1.length > 0
      ? new CgroupV1Reader({
          mounts: new Map(v1.flatMap(({ controllers, mountPoint }) => controllers.map((name) => [name, mountPoint]))),
          read,
          readSeldom: readKernelFile,
          directories,
          example,
        })
      : new CgroupV2Reader({ mountPoint: MOUNT, read, readSeldom: readKernelFile, directories, example });
  const byUid = new Map(pods.map(({ pod, snapshot }) => [pod.metadata.uid, snapshot]));
  const sampler = new Sampler({
    reader,
    layout: { root: `/${ROOT}`, driver: 'cgroupfs' },
    pods: { listPods: () => pods.map(({ pod }) => pod), snapshotOf: (uid) => byUid.get(uid) },
    read: readKernelFile,
    clock: systemClock,
    systemPaths: [],
    machineLimits: {},
  });
  const machine = {
    bootID: '',
    machineID: '',
    systemUUID: '',
    cores: 2,
    physicalCores: 2,
    sockets: 1,
    memory: 1,
    swap: 0,
    bootTime: 1,
    deviceName: (numbers: string) => numbers,
  };
  console.log(`${PODS} pods, cgroup v${reader.version}; medians of ${ROUNDS}`);
  const before = process.memoryUsage.rss();
  measure('/metrics/resource', () => resourcePage(sampler.take('resource')));
  measure('/metrics/cadvisor', () => cadvisorPage(sampler.take('all'), machine));
  const grown = (process.memoryUsage.rss() - before) / 2 ** 20;
  console.log(`resident memory after ${(5 + ROUNDS) * 2} pages: ${grown.toFixed(1)} MiB more; ${kept.size} files open`);
  const all = sampler.take('all');
  measure('/metrics/cadvisor, writing the page alone', () => cadvisorPage(all, machine));
  // What the runtime and the disks answer is fixed here: they are asked for all pods at once, and at most once a minute.
  const fileSystem = {
    availableBytes: 1e10,
    capacityBytes: 2e10,
    usedBytes: 1e10,
    inodesFree: 1e6,
    inodes: 2e6,
    inodesUsed: 1e6,
  };
  const used = { bytes: 4096, inodes: 1 };
  const disks = {
    rootFs: fileSystem,
    imageFs: fileSystem,
    containers: pods.map(({ pod }) => ({
      podUID: pod.metadata.uid as PodUID,
      name: 'web',
      restartCount: 0,
      writableLayer: used,
    })),
    pods: new Map(
      pods.map(({ pod }) => [pod.metadata.uid, { logs: new Map([['web', used]]), volumes: [], files: used }]),
    ),
    volumes: [],
    tasks: { max: 32768, running: 500 },
  };
  measure('/stats/summary', () =>
    JSON.stringify(statsSummary({ nodeName: 'n', node: sampler.take('all'), bootTime: epochMs(0), system: [], disks })),
  );
  measure('/stats/summary?only_cpu_and_memory=true', () =>
    JSON.stringify(statsSummary({ nodeName: 'n', node: sampler.take('resource'), bootTime: epochMs(0), system: [] })),
  );
}

try {
  for (const path of paths) for (const mount of mounts) mkdirSync(join(mount, path));
  for (const [index, { paths: own }] of pods.entries()) {
    for (const [nth, path] of own.slice(1).entries()) {
      const pid = sleepers[index * 2 + nth]?.pid;
      if (pid !== undefined) for (const mount of mounts) writeFileSync(join(mount, path, 'cgroup.procs'), String(pid));
    }
  }
  run();
} finally {
  const ended = sleepers.map((sleeper) => new Promise((resolve) => sleeper.once('exit', resolve)));
  for (const sleeper of sleepers) sleeper.kill('SIGKILL');
  await Promise.all(ended);
  for (const path of paths.reverse()) for (const mount of mounts) rmdirSync(join(mount, path));
}
process.exit();
