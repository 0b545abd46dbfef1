// `npm run bench`: nodelet, nodelet without its tricks and the floor, taking turns in one run. Prints tables for
// docs/performance.md; --json FILE writes the samples as well. It measures and says what it found; nothing here fails for
// being slow.
//
//   npm run bench -- [--minutes 5] [--burst 30] [--probed 100] [--idle 110] [--json FILE]
//                                            minutes: for starts and bursts together, from when the labs run
//   npm run bench -- --full-node             with large ConfigMaps and Secrets on all pods: two minutes more
//   npm run bench -- --only starts,bursts    parts of it: starts, bursts, lifecycle, volumes, apiserver, kube-apiserver, dns, scheduler
//   npm run bench -- --only apiserver [--pods 10000]  the API server beside its raw store: needs no containerd
//   npm run bench -- --only kube-apiserver   the API server beside the kube-apiserver that NODELET_BENCH_KUBE_APISERVER names
//   npm run bench -- --with FILE             adds the samples of an earlier run's --json FILE; more than once for more
//   npm run bench -- --tricks [--pairs 30]   what each trick saves, and nothing else
//   npm run bench -- --root DIR              with the labs on another disk, one with a journal: see disk.ts
//
// One start takes anything from 170 to 370 ms, with or without nodelet: the kernel's grace periods. On a slow machine, give
// it more time: the intervals say how much is missing.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { RunningLab } from '../../cli/lab/lab.ts';
import { isNotFound } from '../../client/errors.ts';
import { UserError } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import { guard } from '../../lib/guardian.ts';
import { TRICKS_VARIABLE } from '../../lib/tricks.ts';
import { startContainerd } from '../e2e/support/containerd.ts';
import { BUSYBOX, importLabImages } from '../e2e/support/images.ts';
import { measureBeside, PROGRAM_VARIABLE } from './apiserver/beside.ts';
import { measureApiServer } from './apiserver/measure.ts';
import { measureBursts } from './bursts.ts';
import { diskOf } from './disk.ts';
import { measureDns } from './dns/measure.ts';
import { Floor, readTemplate } from './floor.ts';
import type { FloorTemplate } from './floor-requests.ts';
import { measureFullNode } from './full-node.ts';
import { startBenchLab } from './lab.ts';
import { measureLifecycle } from './lifecycle.ts';
import { LIVE_UPDATE, measureLiveUpdate } from './live-update.ts';
import { BenchPods } from './pods.ts';
import { type Amount, type Figures, type Machine, pooled, type Row, renderReport } from './report.ts';
import { measureScheduler } from './scheduler/measure.ts';
import { measureStarts } from './starts.ts';
import { measureTricks, renderTricks } from './tricks.ts';
import { measureVolumes } from './volumes.ts';

/** Ends at once on TERM, so that deletion measures the node and not the container. */
const COMMAND = ['/bin/sh', '-c', 'trap "exit 0" TERM; sleep 1000000 & wait'];
const TEMPLATE = { image: BUSYBOX, command: COMMAND };
const NAMESPACE = 'bench';
const FLOOR_BRIDGE = 'nodeletfloor0';
const FLOOR_CGROUP = '/nodelet-floor';
const PARTS: readonly string[] = [
  'starts',
  'bursts',
  'lifecycle',
  'volumes',
  'apiserver',
  'kube-apiserver',
  'dns',
  'scheduler',
];
/** Of what is measured a fixed number of times. */
const RUNS = 10;
const PERIODS = 3;
/** For the rounds of the API server and its store. */
const API_SERVER_MS = 60_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    burst: { type: 'string', default: '30' },
    probed: { type: 'string', default: '100' },
    idle: { type: 'string', default: '110' },
    pods: { type: 'string', default: '10000' },
    json: { type: 'string' },
    'full-node': { type: 'boolean', default: false },
    tricks: { type: 'boolean', default: false },
    pairs: { type: 'string', default: '30' },
    root: { type: 'string' },
    only: { type: 'string', default: PARTS.join() },
    with: { type: 'string', multiple: true, default: [] },
  },
});
const parts = new Set(values.only.split(','));
for (const part of parts) {
  if (!PARTS.includes(part)) throw new UserError(`--only: no part "${part}"`);
}
/** They need no containerd. */
const SERVERS = new Set(['apiserver', 'kube-apiserver', 'dns', 'scheduler']);
const needsContainerd = PARTS.some((part) => !SERVERS.has(part) && parts.has(part)) || values['full-node'];
const minutesMs = Number(values.minutes) * 60_000;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

interface Measured {
  readonly rows: readonly Row[];
  readonly amounts: readonly Amount[];
  readonly notes?: readonly string[];
}

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

/** Has the agent run one pod, and keeps what it requested of its runtime. */
async function takeTemplate(lab: RunningLab, pods: BenchPods, floor: Floor): Promise<FloorTemplate> {
  await pods.create('template');
  const template = await readTemplate(lab.paths.containerd.socket, await pods.containerId('template'));
  floor.keepFiles(template);
  await pods.delete('template');
  return template;
}

/** The pods of a namespace that is made for them. */
async function startPods(lab: RunningLab): Promise<BenchPods> {
  await lab.client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const pods = new BenchPods(lab.client, NAMESPACE, TEMPLATE);
  // The account that every pod needs is made by a controller, a moment later.
  for (;;) {
    try {
      await lab.client.get(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
      await pods.start();
      return pods;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function agentOf(lab: RunningLab): number {
  const pid = lab.pid('agent');
  if (pid === undefined) throw new Error('the agent does not run');
  return pid;
}

/** A lab whose agent has every switch of lib/tricks.ts off. */
async function startPlainLab(root: string): Promise<RunningLab> {
  const before = process.env[TRICKS_VARIABLE];
  process.env[TRICKS_VARIABLE] = 'none';
  try {
    return await startBenchLab({ root, say });
  } finally {
    if (before === undefined) delete process.env[TRICKS_VARIABLE];
    else process.env[TRICKS_VARIABLE] = before;
  }
}

async function measurePods(lab: RunningLab, plain: RunningLab, floor: Floor): Promise<Measured> {
  const pods = await startPods(lab);
  const plainPods = await startPods(plain);
  const sides = { floor, template: await takeTemplate(lab, pods, floor), lab, plainLab: plain, pods, plainPods, say };
  const partMs = minutesMs / (parts.has('starts') && parts.has('bursts') ? 2 : 1);
  const found: Measured[] = [];
  if (parts.has('starts')) {
    const rows = await measureStarts(sides, { least: 10, most: 200, until: performance.now() + partMs });
    found.push({ rows, amounts: [] });
  }
  if (parts.has('bursts')) {
    const about = { pods: Number(values.burst), agent: agentOf(lab), plainAgent: agentOf(plain) };
    found.push(await measureBursts(sides, { ...about, least: 3, most: 20, until: performance.now() + partMs }));
  }
  if (parts.has('lifecycle')) {
    const samples = await measureLiveUpdate(lab, NAMESPACE, RUNS, (name, volumes) => pods.create(name, volumes));
    await pods.delete('live-update');
    found.push({ rows: [{ name: LIVE_UPDATE, samples }], amounts: [] });
  }
  await Promise.all([pods.stop(), plainPods.stop()]);
  return { rows: found.flatMap(({ rows }) => rows), amounts: found.flatMap(({ amounts }) => amounts) };
}

/** From two labs and a containerd beside them, which are gone when the others start. */
async function podFigures(root: string): Promise<Measured> {
  const lab = await startBenchLab({ root: join(root, 'lab'), say });
  try {
    const plain = await startPlainLab(join(root, 'plain'));
    try {
      const floorRoot = join(root, 'floor');
      const cniConfDir = await floorConflist(lab.paths.cni.conflist, floorRoot);
      const clear = fileURLToPath(new URL('clear-floor.ts', import.meta.url));
      const guardian = await guard([process.execPath, clear, floorRoot, FLOOR_BRIDGE, FLOOR_CGROUP]);
      const containerd = await startContainerd({ root: floorRoot, cniConfDir });
      try {
        await importLabImages(containerd);
        const floor = new Floor({ socket: containerd.socket, root: floorRoot, cgroupRoot: FLOOR_CGROUP });
        const measured = await measurePods(lab, plain, floor);
        floor.close();
        return measured;
      } finally {
        await containerd.stop();
        await execOk('ip', ['link', 'delete', FLOOR_BRIDGE]);
        await guardian.dismiss();
      }
    } finally {
      for (const problem of await plain.stop()) say(problem);
    }
  } finally {
    for (const problem of await lab.stop()) say(problem);
  }
}

/** From a lab of its own: only it has a CSI driver. */
async function volumeFigures(root: string): Promise<Measured> {
  const samples = await measureVolumes({ root, runs: RUNS, template: TEMPLATE, say });
  return {
    rows: [
      { name: 'nodelet: 10 volumes of mixed kinds, start above a plain pod’s', samples: samples.tenAbove },
      { name: 'nodelet: 10 volumes of mixed kinds, first mount → last one up', samples: samples.tenMounts },
      { name: 'nodelet: CSI stage + publish above the driver’s own time', samples: samples.csiOverhead, limitMs: 10 },
      {
        name: 'nodelet: the same with claim and volume looked up at the API server',
        samples: samples.claimOverhead,
      },
    ],
    amounts: [],
  };
}

/** Probes and many pods, from a lab of their own. */
async function lifecycleFigures(root: string): Promise<Measured> {
  const [probedPods, idlePods] = [Number(values.probed), Number(values.idle)];
  const found = await measureLifecycle({
    root,
    runs: RUNS,
    template: TEMPLATE,
    probedPods,
    idlePods,
    periods: PERIODS,
    say,
  });
  const killed = `${idlePods} pods, the agent killed`;
  return {
    rows: [
      { name: 'nodelet: readiness result → status seen', samples: found.readiness, limitMs: 50 },
      {
        name: 'nodelet: liveness result → StopContainer begins',
        samples: found.kill,
        limitMs: 100,
        maxLimitMs: 100,
      },
      { name: 'nodelet: liveness failure → restarted container seen', samples: found.restart },
    ],
    amounts: [
      { name: `agent’s peak RSS, ${idlePods} pods`, unit: 'MiB', samples: found.peakRssMiB, peak: true, limit: 120 },
      { name: `agent’s RSS, ${idlePods} idle pods`, unit: 'MiB', samples: [found.idle.rssMiB] },
      { name: `agent, ${idlePods} idle pods`, unit: '% of a core', samples: found.idle.cpuPercent, limit: 1 },
      {
        name: `agent, ${probedPods} pods with three probes`,
        unit: '% of a core',
        samples: found.probed.cpuPercent,
        limit: 4,
      },
      { name: `${killed}: containers restarted`, unit: 'containers', samples: [found.restarts], peak: true, limit: 0 },
    ],
  };
}

/** From a server of its own, without agents. */
async function apiServerFigures(root: string): Promise<Measured> {
  return measureApiServer({ root, pods: Number(values.pods), least: 10, most: 40, ms: API_SERVER_MS, say });
}

async function besideFigures(root: string): Promise<Measured> {
  const program = process.env[PROGRAM_VARIABLE];
  return measureBeside({ root, pods: Number(values.pods), least: 10, most: 40, ms: API_SERVER_MS, program, say });
}

async function fullNodeFigures(root: string): Promise<Measured> {
  const { pods, megabytes, peakRssMiB, idleRssMiB } = await measureFullNode({
    root,
    pods: Number(values.idle),
    template: TEMPLATE,
    say,
  });
  const name = `${pods} pods that mount ${megabytes} MB of ConfigMaps and Secrets, and a restart of the agent`;
  return {
    rows: [],
    amounts: [
      { name: `agent’s peak RSS, ${name}`, unit: 'MiB', samples: [peakRssMiB], peak: true, limit: 180 },
      { name: `agent’s RSS, ${name}`, unit: 'MiB', samples: [idleRssMiB] },
    ],
  };
}

async function machine(loadBefore: number, root: string): Promise<Machine> {
  const version = needsContainerd ? await execOk('containerd', ['--version']) : '- - none';
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown CPU',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    containerd: version.trim().split(/\s+/)[2] ?? version.trim(),
    node: process.version,
    disk: diskOf(root),
    load: [loadBefore, loadavg()[0] ?? NaN],
  };
}

async function measureAll(root: string): Promise<Figures> {
  const [began, load = NaN] = [performance.now(), loadavg()[0]];
  const found: Measured[] = [];
  if (['starts', 'bursts', 'lifecycle'].some((part) => parts.has(part))) found.push(await podFigures(root));
  if (parts.has('lifecycle')) found.push(await lifecycleFigures(join(root, 'lifecycle', 'lab')));
  if (parts.has('volumes')) found.push(await volumeFigures(join(root, 'csi')));
  if (parts.has('dns')) found.push({ rows: await measureDns(say), amounts: [] });
  if (parts.has('apiserver')) found.push(await apiServerFigures(join(root, 'apiserver')));
  if (parts.has('kube-apiserver')) found.push(await besideFigures(join(root, 'beside')));
  if (parts.has('scheduler')) {
    found.push({ rows: [], amounts: await measureScheduler({ nodes: 1000, pods: 3000, runs: 3, say }) });
  }
  if (values['full-node']) found.push(await fullNodeFigures(join(root, 'full', 'lab')));
  say(`${((performance.now() - began) / 60_000).toFixed(1)} minutes`);
  return {
    machine: await machine(load, root),
    rows: found.flatMap(({ rows }) => rows),
    amounts: found.flatMap(({ amounts }) => amounts),
    notes: found.flatMap(({ notes = [] }) => notes),
  };
}

// Servers end with this process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const root = await mkdtemp(join(values.root ?? tmpdir(), 'nodelet-bench-'));
try {
  if (values.tricks) {
    const pairs = await measureTricks({
      root: join(root, 'lab'),
      pairs: Number(values.pairs),
      template: TEMPLATE,
      say,
    });
    process.stdout.write(`${renderTricks(pairs)}\n`);
    if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(pairs, undefined, 2)}\n`);
  } else {
    const earlier = await Promise.all(values.with.map((file) => readFile(file, 'utf8')));
    const figures = pooled([...earlier.map((text): Figures => JSON.parse(text)), await measureAll(root)]);
    process.stdout.write(`${renderReport(figures)}\n`);
    if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(figures, undefined, 2)}\n`);
  }
} finally {
  await rm(root, { recursive: true, force: true });
}
