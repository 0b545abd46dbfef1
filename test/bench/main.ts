// `npm run bench`: nodelet against the floor, in one run, side by side. Prints p50, p95, max and ratios; --json FILE
// writes the same figures. It measures and says what it found; nothing here fails for being slow.
//
//   npm run bench -- [--starts 100] [--runs 20] [--burst 30] [--bursts 9] [--probed 100] [--idle 110]
//                    [--idle-seconds 20] [--json FILE]
//
// One start takes anything from 170 to 370 ms, with or without nodelet: the kernel's grace periods. The ratio of two
// medians of 20 such times swings by some 0.07 from run to run, that of 100 by 0.03.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type RunningLab, startLab } from '../../cli/lab/lab.ts';
import { isNotFound } from '../../client/errors.ts';
import { execOk } from '../../lib/exec.ts';
import { startContainerd } from '../e2e/support/containerd.ts';
import { BUSYBOX, importLabImages } from '../e2e/support/images.ts';
import { Floor, readTemplate } from './floor.ts';
import { bareTemplate, type FloorTemplate } from './floor-requests.ts';
import { measureFullNode } from './full-node.ts';
import { measureLifecycle } from './lifecycle.ts';
import { LIVE_UPDATE, measureLiveUpdate } from './live-update.ts';
import { BenchPods } from './pods.ts';
import { cpuMs, peakResidentMiB, residentMiB } from './processes.ts';
import { type Figures, renderReport } from './report.ts';
import { ratioRange, summarize } from './stats.ts';
import { measureVolumes } from './volumes.ts';

/** Ends at once when told to, so that deletion measures the node and not the container. */
const COMMAND = ['/bin/sh', '-c', 'trap "exit 0" TERM; sleep 1000000 & wait'];
const NAMESPACE = 'bench';
const FLOOR_BRIDGE = 'nodeletfloor0';

const { values } = parseArgs({
  options: {
    starts: { type: 'string', default: '100' },
    runs: { type: 'string', default: '20' },
    burst: { type: 'string', default: '30' },
    bursts: { type: 'string', default: '9' },
    probed: { type: 'string', default: '100' },
    idle: { type: 'string', default: '110' },
    'idle-seconds': { type: 'string', default: '20' },
    json: { type: 'string' },
  },
});
const starts = Number(values.starts);
const runs = Number(values.runs);
const burst = Number(values.burst);
const bursts = Number(values.bursts);
const idleSeconds = Number(values['idle-seconds']);

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** The lab's own conflist with another bridge, subnet and lease directory: containerd runs the same chain by itself. */
async function floorConflist(labConflist: string, root: string): Promise<string> {
  const confDir = join(root, 'cni', 'net.d');
  await mkdir(confDir, { recursive: true });
  const list = JSON.parse(await readFile(labConflist, 'utf8')) as {
    name: string;
    plugins: { type: string; bridge?: string; ipam?: Record<string, unknown> }[];
  };
  list.name = 'nodelet-floor';
  for (const plugin of list.plugins) {
    if (plugin.type !== 'bridge') continue;
    plugin.bridge = FLOOR_BRIDGE;
    plugin.ipam = { ...plugin.ipam, ranges: [[{ subnet: '10.243.0.0/24' }]], dataDir: join(root, 'leases') };
  }
  await writeFile(join(confDir, '10-floor.conflist'), JSON.stringify(list, undefined, 2));
  return confDir;
}

/** Has the agent run one pod, and keeps what it asked its runtime for. */
async function takeTemplate(lab: RunningLab, pods: BenchPods, floor: Floor): Promise<FloorTemplate> {
  await pods.create('template');
  const template = await readTemplate(lab.paths.containerd.socket, await pods.containerId('template'));
  floor.keepFiles(template);
  await pods.delete('template');
  return template;
}

/** The pid of a container's first process on this machine. */
async function pidOf(lab: RunningLab, containerId: string): Promise<number> {
  const list = await execOk('ctr', ['--address', lab.paths.containerd.socket, '-n', 'k8s.io', 'task', 'ls']);
  const line = list.split('\n').find((candidate) => candidate.startsWith(containerId));
  const pid = Number(line?.split(/\s+/)[1]);
  if (!Number.isInteger(pid)) throw new Error(`containerd has no task ${containerId}`);
  return pid;
}

async function prepareNamespace(lab: RunningLab): Promise<void> {
  await lab.client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  // The account that every pod needs is made by a controller, a moment later.
  for (;;) {
    try {
      await lab.client.get(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
      return;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

async function measure(lab: RunningLab, floor: Floor): Promise<Figures> {
  const agentPid = lab.pid('agent');
  if (agentPid === undefined) throw new Error('the agent does not run');
  const pods = new BenchPods(lab.client, NAMESPACE, { image: BUSYBOX, command: COMMAND });
  await prepareNamespace(lab);
  await pods.start();
  const template = await takeTemplate(lab, pods, floor);
  const bare = bareTemplate(template);
  const bareStart: number[] = [];
  const floorStart: number[] = [];
  const floorRemove: number[] = [];
  const start: number[] = [];
  const exit: number[] = [];
  const remove: number[] = [];
  // Run 0 warms both sides and is not counted.
  for (let run = 0; run <= starts; run++) {
    const least = await floor.start(bare);
    await floor.remove(least);
    const same = await floor.start(template);
    const sameRemove = await floor.remove(same);
    const name = `run-${run}`;
    const started = await pods.create(name);
    const pid = await pidOf(lab, await pods.containerId(name));
    const exited = await pods.exit(name, () => process.kill(pid, 'SIGKILL'));
    await pods.restarted(name);
    const deleted = await pods.delete(name);
    if (run === 0) continue;
    bareStart.push(least.durationMs);
    floorStart.push(same.durationMs);
    floorRemove.push(sameRemove);
    start.push(started);
    exit.push(exited);
    remove.push(deleted);
    say(`start ${run}/${starts}: floor ${same.durationMs.toFixed(0)} ms, nodelet ${started.toFixed(0)} ms`);
  }
  const floorMs: number[] = [];
  const nodeletMs: number[] = [];
  let idle: Figures['agent'] | undefined;
  const all = Array.from({ length: burst }, (_, index) => index);
  for (let round = 0; round < bursts; round++) {
    const floorBegan = performance.now();
    const same = await Promise.all(all.map(() => floor.start(template)));
    floorMs.push(performance.now() - floorBegan);
    await Promise.all(same.map((pod) => floor.remove(pod)));
    const began = performance.now();
    await Promise.all(all.map((index) => pods.create(`burst-${round}-${index}`)));
    nodeletMs.push(performance.now() - began);
    say(
      `burst ${round + 1}/${bursts}: floor ${floorMs.at(-1)?.toFixed(0)} ms, nodelet ${nodeletMs.at(-1)?.toFixed(0)} ms`,
    );
    if (round === bursts - 1) idle = await measureIdle(agentPid);
    await Promise.all(all.map((index) => pods.delete(`burst-${round}-${index}`)));
  }
  const liveUpdate = await measureLiveUpdate(lab, NAMESPACE, runs, (name, volumes) => pods.create(name, volumes));
  await pods.delete('live-update');
  await pods.stop();
  if (idle === undefined) throw new Error('no burst was run');
  return {
    machine: await machine(),
    runs,
    bareStart: summarize(bareStart),
    floorStart: summarize(floorStart),
    start: summarize(start),
    startRatio: ratioRange(start, floorStart),
    floorRemove: summarize(floorRemove),
    delete: summarize(remove),
    exitToStatus: summarize(exit),
    more: [{ name: LIVE_UPDATE, summary: summarize(liveUpdate) }],
    burst: { pods: burst, floorMs, nodeletMs },
    agent: { ...idle, peakRssMiB: peakResidentMiB(agentPid) },
  };
}

/** The agent while nothing happens; what the burst set off settles first. */
async function measureIdle(pid: number): Promise<Figures['agent']> {
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const [cpu, began] = [cpuMs(pid), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1000));
  return {
    peakRssMiB: peakResidentMiB(pid),
    idleRssMiB: residentMiB(pid),
    idlePods: burst,
    idleSeconds,
    idleCpuPercent: ((cpuMs(pid) - cpu) / (performance.now() - began)) * 100,
  };
}

/** Rows about volumes, from a lab of their own: only it has a CSI driver. */
async function volumeRows(root: string): Promise<NonNullable<Figures['more']>> {
  const samples = await measureVolumes({ root, runs, template: { image: BUSYBOX, command: COMMAND }, say });
  return [
    { name: 'nodelet: 10 volumes of mixed kinds, start above a plain pod’s', summary: summarize(samples.tenAbove) },
    { name: 'nodelet: 10 volumes of mixed kinds, first mount → last one up', summary: summarize(samples.tenMounts) },
    {
      name: 'nodelet: CSI stage + publish above the driver’s own time',
      summary: summarize(samples.csiOverhead),
      limitMs: 10,
    },
    {
      name: 'nodelet: the same with claim and volume looked up at the API server',
      summary: summarize(samples.claimOverhead),
    },
  ];
}

/** Rows about probes and many pods, from a lab of their own. */
async function lifecycleFigures(root: string): Promise<Required<Pick<Figures, 'more' | 'loads'>>> {
  const { readiness, kill, restart, probed, idle } = await measureLifecycle({
    root,
    runs,
    template: { image: BUSYBOX, command: COMMAND },
    probedPods: Number(values.probed),
    idlePods: Number(values.idle),
    seconds: idleSeconds,
    say,
  });
  return {
    more: [
      { name: 'nodelet: readiness result → status seen', summary: summarize(readiness), limitMs: 50 },
      {
        name: 'nodelet: liveness result → StopContainer begins',
        summary: summarize(kill),
        limitMs: 100,
        maxLimitMs: 100,
      },
      { name: 'nodelet: liveness failure → restarted container seen', summary: summarize(restart) },
    ],
    loads: [
      { name: 'pods with three probes each', ...probed },
      { name: 'idle pods', ...idle },
    ],
  };
}

async function machine(): Promise<Figures['machine']> {
  const version = await execOk('containerd', ['--version']);
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown CPU',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    containerd: version.trim().split(/\s+/)[2] ?? version.trim(),
    node: process.version,
  };
}

const root = await mkdtemp(join(tmpdir(), 'nodelet-bench-'));
const lab = await startLab({ root: join(root, 'lab'), images: 'build', say });
try {
  const floorRoot = join(root, 'floor');
  const cniConfDir = await floorConflist(lab.paths.cni.conflist, floorRoot);
  const containerd = await startContainerd({ root: floorRoot, cniConfDir });
  try {
    await importLabImages(containerd);
    const floor = new Floor({ socket: containerd.socket, root: floorRoot, cgroupRoot: '/nodelet-floor' });
    const measured = await measure(lab, floor);
    floor.close();
    const volumes = await volumeRows(join(root, 'csi'));
    const { more, loads } = await lifecycleFigures(join(root, 'lifecycle', 'lab'));
    const fullNode = await measureFullNode({
      root: join(root, 'full', 'lab'),
      pods: Number(values.idle),
      template: { image: BUSYBOX, command: COMMAND },
      say,
    });
    const figures = { ...measured, fullNode, more: [...(measured.more ?? []), ...more, ...volumes], loads };
    process.stdout.write(`${renderReport(figures)}\n`);
    if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(figures, undefined, 2)}\n`);
  } finally {
    await containerd.stop();
    await execOk('ip', ['link', 'delete', FLOOR_BRIDGE]);
  }
} finally {
  await lab.stop();
  await rm(root, { recursive: true, force: true });
}
