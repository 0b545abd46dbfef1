// How far one API server goes: 1,000 simulated nodes with 30,000 pods, in the file and in an etcd beside it (Debian's, which
// writes to the disk before it answers). Prints tables for docs/scale.md.
//
//   npm run bench:scale -- [--store file,etcd] [--nodes 1000] [--pods 30000] [--seconds 20]
//
// It creates all of it, starts the server again with it, lists, and then sends what kubelets send, at the usual rates and at
// two, four, eight times those, until a request or an event in a hundred takes longer than a second.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { Etcd } from '../support/etcd.ts';
import { Connections } from './apiserver/requests.ts';
import { BenchServer, cpuMs, residentMiB } from './apiserver/server.ts';
import { Watching } from './apiserver/watching.ts';
import { ALL_PODS, type Filled, fill, type Size, tokenFile } from './scale/cluster.ts';
import { type ListTimes, measureLists } from './scale/lists.ts';
import { CONTROLLERS, holds, KINDS, type Load, load, openWatches, ratesOf } from './scale/load.ts';
import { percentile } from './stats.ts';

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'file,etcd' },
    nodes: { type: 'string', default: '1000' },
    pods: { type: 'string', default: '30000' },
    seconds: { type: 'string', default: '20' },
  },
});
const SIZE: Size = { nodes: Number(values.nodes), pods: Number(values.pods) };
const SECONDS = Number(values.seconds);
/** Times the usual rates. */
const FACTORS = [1, 2, 4, 8, 16];
const AT_ONCE = 32;
/** For what kubelets send; fewer for a small cluster, since the server closes a connection that is not used for 15 s. */
const MOST_CONNECTIONS = 128;
const CONNECTION_EVERY_S = 3;

const ms = (value: number): string => (value < 10 ? value.toFixed(1) : value.toFixed(0));
const p = (times: readonly number[], fraction: number): string =>
  times.length === 0 ? '' : ms(percentile(times, fraction));
const longest = (times: readonly number[]): string => p(times, 1);

function showFilled({ creates, ms: took }: Filled): void {
  const perSecond = (creates.length / took) * 1000;
  console.log(`- ${creates.length} pods created, ${AT_ONCE} at a time: ${perSecond.toFixed(0)} a second, \
p50 ${p(creates, 0.5)} ms, p99 ${p(creates, 0.99)} ms`);
}

function showLists(lists: readonly ListTimes[]): void {
  console.log(
    '\n| list | times | p50, ms | p99, ms | longest, ms | longest get meanwhile, ms |\n|---|---:|---:|---:|---:|---:|',
  );
  for (const { name, times, longestGet } of lists) {
    const all = `${p(times, 0.5)} | ${p(times, 0.99)} | ${longest(times)}`;
    console.log(`| ${name} | ${times.length} | ${all} | ${ms(longestGet)} |`);
  }
  console.log('');
}

function showLoadHead(): void {
  const rates = ratesOf(SIZE);
  const usual = KINDS.map((kind) => `${kind} ${rates[kind].toFixed(0)}`).join(', ');
  console.log(`Usual rates, a second: ${usual}. p50 / p99 in ms.\n`);
  console.log(
    `| times the usual | ${KINDS.join(' | ')} | to a node's watch | to a watch of all | CPU, % of a core | RSS, MiB |`,
  );
  console.log(`|---:|${'---:|'.repeat(KINDS.length + 4)}`);
}

function showLoad(found: Load, more: string): void {
  const both = (times: readonly number[]): string => `${p(times, 0.5)} / ${p(times, 0.99)}`;
  const kinds = KINDS.map((kind) => both(found.times[kind])).join(' | ');
  const watched = `${both(found.own)} | ${both(found.all)}`;
  const server = `${found.cpuPercent.toFixed(0)} | ${found.residentMiB.toFixed(0)}${more}`;
  const missing = found.missing === 0 ? '' : ` (${found.missing} did not come)`;
  console.log(`| ${found.factor} | ${kinds} | ${watched}${missing} | ${server} |`);
}

interface Place {
  readonly root: string;
  readonly flags: readonly string[];
  readonly etcd: Etcd | undefined;
}

async function filled({ root, flags }: Place): Promise<void> {
  const server = await BenchServer.apiServer(root, flags);
  try {
    const connections = await Connections.open(server.access, AT_ONCE);
    showFilled(await fill(connections, SIZE, rfc3339(systemClock.now())));
    console.log(`- RSS with them: ${(await server.residentMiB()).toFixed(0)} MiB`);
    connections.close();
  } finally {
    await server.stop();
  }
}

async function measure({ root, flags, etcd }: Place): Promise<void> {
  const server = await BenchServer.apiServer(root, flags);
  try {
    const resident = await server.residentMiB();
    console.log(`- started again in ${(server.startMs / 1000).toFixed(1)} s; RSS ${resident.toFixed(0)} MiB`);
    const connections = await Connections.open(server.access, AT_ONCE);
    const watching = new Watching(server.access, AT_ONCE);
    showLists(await measureLists(server.access, watching, connections, SIZE));
    connections.close();
    const watches = await openWatches(watching, SIZE, await watching.revision(ALL_PODS));
    const perSecond = Object.values(ratesOf(SIZE)).reduce((sum, rate) => sum + rate, 0);
    const enough = Math.max(1, Math.min(MOST_CONNECTIONS, Math.ceil(perSecond * CONNECTION_EVERY_S)));
    const many = await Connections.open(server.access, enough);
    console.log(
      `${SIZE.nodes} watches of a node each open in ${ms(watches.openMs)} ms, and ${CONTROLLERS} of all pods.`,
    );
    showLoadHead();
    for (const factor of FACTORS) {
      const before = etcd === undefined ? 0 : await cpuMs(etcd.pid);
      const began = performance.now();
      const found = await load(server, many, watches, SIZE, factor, SECONDS);
      const cpu = etcd === undefined ? 0 : ((await cpuMs(etcd.pid)) - before) / (performance.now() - began);
      const more =
        etcd === undefined
          ? ''
          : ` (etcd: ${(cpu * 100).toFixed(0)} %, ${(await residentMiB(etcd.pid)).toFixed(0)} MiB)`;
      showLoad(found, more);
      if (!holds(found)) break;
    }
    watches.close();
    many.close();
    watching.close();
  } finally {
    await server.stop();
  }
}

async function run(store: string, root: string): Promise<void> {
  const etcd = store === 'etcd' ? await Etcd.start(undefined, true) : undefined;
  try {
    const tokens = join(root, 'tokens.csv');
    await writeFile(tokens, tokenFile(SIZE));
    const flags = ['--token-auth-file', tokens, ...(etcd === undefined ? [] : ['--etcd-servers', etcd.url])];
    console.log(`\n### ${store === 'etcd' ? 'etcd' : 'The file'}\n\n${SIZE.nodes} nodes, ${SIZE.pods} pods\n`);
    await filled({ root, flags, etcd });
    await measure({ root, flags, etcd });
  } finally {
    await etcd?.stop();
  }
}

console.log(
  `${cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${cpus().length} cores; load ${loadavg()[0]?.toFixed(1)} before`,
);
for (const store of values.store.split(',')) {
  const root = await mkdtemp(join(tmpdir(), 'nodelet-scale-'));
  try {
    await run(store, root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
console.log(`\nload ${loadavg()[0]?.toFixed(1)} after`);
