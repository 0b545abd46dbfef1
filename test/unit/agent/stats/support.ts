// A machine with one pod of two containers, as files of cgroup v2 and /proc, and the sampler over it.

import type { ContainerId, ContainerSnapshot, PodSnapshot, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { MachineInfo } from '../../../../agent/stats/cadvisor-page.ts';
import { CgroupV2Reader } from '../../../../agent/stats/cgroup-v2.ts';
import { Sampler } from '../../../../agent/stats/sampler.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { UID } from '../server/support.ts';
import { ManualClock, pod } from '../volumes/support.ts';

export const CREATED = epochMs(Date.parse('2026-01-01T00:00:00.250Z'));
const POD_PATH = `/kubepods/besteffort/pod${UID}`;

export const MACHINE: MachineInfo = {
  bootID: 'boot',
  machineID: 'machine',
  systemUUID: 'uuid',
  cores: 2,
  physicalCores: 1,
  sockets: 1,
  memory: 8_000,
  swap: 0,
  bootTime: 1_700_000_000,
  deviceName: (numbers) => `/dev/${numbers}`,
};

function container(name: string, id: string, state: ContainerSnapshot['state']): ContainerSnapshot {
  return {
    id: id as ContainerId,
    sandboxId: 'box' as SandboxId,
    name,
    type: 'container',
    restartCount: 0,
    hash: 'h',
    state,
    createdAt: CREATED,
    startedAt: CREATED,
    finishedAt: epochMs(0),
    exitCode: 0,
    reason: '',
    message: '',
    image: 'docker.io/library/busybox:stable',
    imageId: 'sha256:1',
    logPath: '',
  };
}

const SNAPSHOT: PodSnapshot = {
  pod: { uid: UID, namespace: 'demo', name: 'web' },
  sandboxes: [
    {
      id: 'box' as SandboxId,
      attempt: 0,
      state: 'ready',
      createdAt: CREATED,
      ips: [],
      hostNetwork: false,
      runtimeHandler: '',
    },
  ],
  containers: [container('main', 'c1', 'running'), container('done', 'c2', 'exited')],
  observedAt: CREATED,
};

/** CPU time in µs; the rest is derived from `memory`, bytes. */
function cgroup(path: string, cpu: number, memory: number, more: Readonly<Record<string, string>> = {}) {
  const files: Record<string, string> = {
    'cpu.stat': `usage_usec ${cpu}\nuser_usec ${cpu}\nsystem_usec 0\nnr_periods 4\nnr_throttled 1\nthrottled_usec 500000\n`,
    'memory.stat': `anon ${memory}\nfile 100\nkernel 7\nfile_mapped 3\ninactive_file 40\npgfault 9\npgmajfault 2\n`,
    'memory.current': `${memory + 100}\n`,
    'memory.events': 'max 0\noom_kill 1\n',
    'memory.swap.current': '5\n',
    'memory.swap.max': 'max\n',
    'memory.max': 'max\n',
    'cpu.max': 'max 100000\n',
    'cpu.weight': '100\n',
    'pids.current': '3\n',
    'pids.max': 'max\n',
    'cgroup.procs': '77\n',
    'io.stat': '8:0 rbytes=10 wbytes=20 rios=1 wios=2\n',
    ...more,
  };
  return Object.entries(files).map(([file, text]) => [`/cg${path === '/' ? '' : path}/${file}`, text] as const);
}

export interface TestMachine {
  readonly clock: ManualClock;
  readonly files: Map<string, string>;
  readonly sampler: Sampler;
  readonly pods: { listPods(): readonly ReturnType<typeof pod>[]; snapshotOf(): PodSnapshot };
  /** The container has used so much processor time since it began, µs. */
  used(cpu: number): void;
}

export function testMachine(): TestMachine {
  const clock = new ManualClock();
  const limits = { 'memory.max': '1000\n', 'memory.swap.max': '50\n', 'cpu.max': '20000 100000\n', 'pids.max': '64\n' };
  const files = new Map<string, string>([
    ...cgroup('/', 9_000_000, 5_000),
    ...cgroup('/kubepods', 3_000_000, 900),
    ...cgroup('/kubepods/besteffort', 3_000_000, 900),
    ...cgroup(POD_PATH, 2_500_000, 800),
    ...cgroup(`${POD_PATH}/box`, 1_000, 20),
    ...cgroup(`${POD_PATH}/c1`, 2_000_000, 700, limits),
    ...cgroup('/agent', 500_000, 60),
    ['/proc/meminfo', 'SwapTotal: 10 kB\nSwapFree: 10 kB\n'],
    ['/proc/self/net/dev', 'h\nh\n  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n'],
    [
      '/proc/77/net/dev',
      'h\nh\n  lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 20 30 40 0 0 0 0 50 60 70 80 0 0 0 0\n',
    ],
    ['/proc/pressure/cpu', 'some avg10=1.00 avg60=0.00 avg300=0.00 total=1500000\n'],
  ]);
  const read = (path: string): string | undefined => files.get(path);
  const directories = (path: string): readonly string[] => (path === `/cg${POD_PATH}` ? ['box', 'c1'] : []);
  const pods = { listPods: () => [pod({}, { uid: UID })], snapshotOf: () => SNAPSHOT };
  const sampler = new Sampler({
    reader: new CgroupV2Reader({ mountPoint: '/cg', read, directories, example: '/kubepods' }),
    layout: { root: '/', driver: 'cgroupfs' },
    pods,
    read,
    clock,
    systemPaths: ['/agent'],
    machineLimits: { memory: 10_000, swap: 300 },
  });
  const used = (cpu: number): void => {
    for (const [path, text] of cgroup(`${POD_PATH}/c1`, cpu, 700, limits)) files.set(path, text);
  };
  return { clock, files, sampler, pods, used };
}
