// Cgroups on this machine's own hierarchies: made, limited, emptied and removed, with processes in them.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type CgroupDriver, type CgroupLayout, cgroupParent } from '../../../agent/model/cgroup-names.ts';
import { createNodeCgroups, type NodeCgroups } from '../../../agent/node/cgroups.ts';
import { findV1Hierarchies } from '../../../agent/node/cgroups-v1.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { refOf, testPod } from './harness.ts';

const V1 = findV1Hierarchies('/sys/fs/cgroup');
/** A v2 hierarchy to try things in: the only one, or the one beside v1, which has no controllers then. */
const UNIFIED = V1.length > 0 ? '/sys/fs/cgroup/unified' : '/sys/fs/cgroup';
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function make(
  root: string,
  driver: CgroupDriver,
  mountPoint: string,
  enforce = true,
): { layout: CgroupLayout; cgroups: NodeCgroups } {
  const layout: CgroupLayout = { root, driver };
  const cgroups = createNodeCgroups({
    layout,
    mountPoint,
    tracer: new Tracer(),
    clock: systemClock,
    allocatable: { cpuMilli: 1500, memoryBytes: 2 ** 30 },
    enforceNodeAllocatable: enforce,
    cpuCFSQuota: true,
    cpuCFSQuotaPeriodUs: 100_000,
    podPidsLimit: enforce ? 64 : -1,
  });
  cleanups.push(() => cgroups.removeNode());
  return { layout, cgroups };
}

/** A process in the cgroup; KILL is the only thing that ends it. */
function joined(directories: readonly string[]): ChildProcess {
  // It starts no process of its own before it is in the cgroup: that one would be outside.
  const script = "trap '' TERM; read _; while :; do sleep 100 & wait $!; done";
  const child = spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'] });
  for (const directory of directories) {
    // A cpuset that has no cpus yet accepts no process.
    if (!directory.includes('/cpuset/')) writeFileSync(join(directory, 'cgroup.procs'), String(child.pid));
  }
  child.stdin.end();
  return child;
}

describe.each(['cgroupfs', 'systemd'] as const)('named as %s does', (driver) => {
  test('the node’s, the class’s and the pod’s cgroups are limited in every hierarchy', async () => {
    const { layout, cgroups } = make(`/nlcg-${driver}`, driver, '/sys/fs/cgroup');
    await cgroups.ensureNode();
    const pod = testPod('x', { container: { resources: { requests: { cpu: '300m' }, limits: { memory: '64Mi' } } } });
    await cgroups.ensurePod(pod);
    await cgroups.ensurePod(pod);
    expect(await cgroups.listPods()).toEqual([pod.metadata.uid]);
    const path = cgroupParent(layout, pod);
    const kubepods = join(path, '..', '..');
    const read = (controller: string, at: string, file: string): string =>
      readFileSync(join('/sys/fs/cgroup', cgroups.version === 1 ? controller : '', at, file), 'utf8').trim();
    if (cgroups.version === 1) {
      expect(read('cpu', path, 'cpu.shares')).toBe('307');
      expect(read('memory', path, 'memory.limit_in_bytes')).toBe(String(64 * 2 ** 20));
      expect(read('pids', path, 'pids.max')).toBe('64');
      expect(read('cpu', join(path, '..'), 'cpu.shares')).toBe('307');
      expect(read('cpu', kubepods, 'cpu.shares')).toBe('1536');
      expect(read('memory', kubepods, 'memory.limit_in_bytes')).toBe(String(2 ** 30));
      expect(read('cpuset', path, 'cpuset.cpus')).not.toBe('');
      for (const { mountPoint } of V1) expect(existsSync(join(mountPoint, path)), mountPoint).toBe(true);
    } else {
      expect(read('', path, 'cpu.weight')).toBe('12');
      expect(read('', path, 'memory.max')).toBe(String(64 * 2 ** 20));
      expect(read('', path, 'pids.max')).toBe('64');
      expect(read('', kubepods, 'memory.max')).toBe(String(2 ** 30));
    }
    await cgroups.removePod(refOf(pod).uid);
    await cgroups.removePod(refOf(pod).uid);
    expect(await cgroups.listPods()).toEqual([]);
    const burstable = join(path, '..');
    if (cgroups.version === 1) expect(read('cpu', burstable, 'cpu.shares')).toBe('2');
  });
});

describe.each([
  ['in use here', '/sys/fs/cgroup'],
  ['version 2', UNIFIED],
])('the hierarchy that is %s', (_which, mountPoint) => {
  test('removing a pod kills what is left in it, below it too, and leaves nothing of either', async () => {
    const { layout, cgroups } = make('/nlcg-kill', 'cgroupfs', mountPoint, mountPoint !== UNIFIED || V1.length === 0);
    const pod = testPod('x');
    if (mountPoint !== UNIFIED || V1.length === 0) {
      await cgroups.ensureNode();
      await cgroups.ensurePod(pod);
    }
    const path = cgroupParent(layout, pod);
    const directories = (cgroups.version === 1 ? V1.map((hierarchy) => hierarchy.mountPoint) : [mountPoint]).map((at) =>
      join(at, path, 'container-1'),
    );
    for (const directory of directories) mkdirSync(directory, { recursive: true });
    const child = joined(directories);
    const exited = new Promise<NodeJS.Signals | null>((resolve) =>
      child.on('exit', (_code, signal) => resolve(signal)),
    );
    expect(await cgroups.listPods()).toEqual([pod.metadata.uid]);
    await cgroups.removePod(refOf(pod).uid);
    expect(await exited).toBe('SIGKILL');
    for (const directory of directories) expect(existsSync(join(directory, '..'))).toBe(false);
    expect(await cgroups.listPods()).toEqual([]);
  });
});

test('a cgroup that others made is limited to what is reserved for it; one that is not there is not made', async () => {
  const { cgroups } = make('/nlcg-others', 'cgroupfs', '/sys/fs/cgroup');
  await expect(cgroups.limitExisting('/nlcg-reserved', { memoryBytes: 1 })).rejects.toThrow(
    '"/nlcg-reserved" cgroup does not exist',
  );
  const directories = (cgroups.version === 1 ? V1.map(({ mountPoint }) => mountPoint) : ['/sys/fs/cgroup']).map((at) =>
    join(at, 'nlcg-reserved'),
  );
  for (const directory of directories) expect(existsSync(directory)).toBe(false);
  cleanups.push(async () => {
    for (const directory of directories) rmdirSync(directory);
  });
  for (const directory of directories) mkdirSync(directory);
  await cgroups.limitExisting('/nlcg-reserved', { cpuShares: 512, memoryBytes: 2 ** 26, pids: 77 });
  const files = {
    'cpu.shares': '512',
    'cpu.weight': '20',
    'memory.limit_in_bytes': `${2 ** 26}`,
    'memory.max': `${2 ** 26}`,
  };
  const found = Object.entries({ ...files, 'pids.max': '77' }).flatMap(([file, value]) =>
    directories
      .map((directory) => join(directory, file))
      .filter(existsSync)
      .map((path) => [path, value] as const),
  );
  expect(found.length).toBeGreaterThanOrEqual(3);
  for (const [path, value] of found) expect(readFileSync(path, 'utf8').trim(), path).toBe(value);
});
