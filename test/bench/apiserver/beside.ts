// The API server beside kube-apiserver, where this machine has one: the API server on its file, the API server on etcd, and
// kube-apiserver on etcd take turns at the same requests from the same client. Each etcd is one of its own (Debian's), and does not
// wait for the disk, as the file does not: what is measured is the server. The program is found by the environment variable
// NODELET_BENCH_KUBE_APISERVER, for example one that `go build k8s.io/kubernetes/cmd/kube-apiserver` made; without it, and without an
// etcd, a note says so, and nothing is measured.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { exec } from '../../../lib/exec.ts';
import { Etcd } from '../../support/etcd.ts';
import type { Amount, Row } from '../report.ts';
import type { Rounds } from '../turns.ts';
import * as pods from './pods.ts';
import { BenchServer, cpuMs, residentMiB } from './server.ts';
import {
  close,
  indices,
  measureRounds,
  type Opened,
  type Operation,
  opened,
  ServerSide,
  type Side,
  WHAT,
} from './sides.ts';

export const PROGRAM_VARIABLE = 'NODELET_BENCH_KUBE_APISERVER';
const NODES = 100;
const OPERATIONS: readonly Operation[] = ['get', 'create', 'patch', 'apply', 'list', 'pages', 'fan-out'];
const SIDES = ['file', 'etcd', 'kube'] as const;
type SideName = (typeof SIDES)[number];

const SERVERS: Readonly<Record<SideName, string>> = {
  file: 'API server on its file',
  etcd: 'API server on etcd',
  kube: 'kube-apiserver on etcd',
};

export interface BesideOptions {
  readonly root: string;
  readonly pods: number;
  /** Of rounds, and how long there is for them, ms. */
  readonly least: number;
  readonly most: number;
  readonly ms: number;
  /** Of NODELET_BENCH_KUBE_APISERVER. */
  readonly program: string | undefined;
  readonly say: (line: string) => void;
}

export interface BesideFigures {
  readonly rows: readonly Row[];
  readonly amounts: readonly Amount[];
  readonly notes: readonly string[];
}

interface Running {
  readonly server: Opened<BenchServer>;
  readonly etcd: Etcd | undefined;
}

/** Why there is nothing to measure, if so. */
async function missing(program: string | undefined): Promise<string | undefined> {
  if (program === undefined || program === '') return `${PROGRAM_VARIABLE} names no kube-apiserver`;
  if ((await exec(program, ['--version'])).code !== 0) return `${program} does not run`;
  return (await exec('etcd', ['--version'])).code === 0 ? undefined : 'there is no etcd';
}

export async function measureBeside(options: BesideOptions): Promise<BesideFigures> {
  const { program = '' } = options;
  const reason = await missing(options.program);
  if (reason !== undefined) return { rows: [], amounts: [], notes: [`kube-apiserver: not measured, ${reason}`] };
  const running: Partial<Record<SideName, Running>> = {};
  try {
    for (const name of SIDES) running[name] = await start(name, program, join(options.root, name));
    const { file, etcd, kube } = running;
    if (file === undefined || etcd === undefined || kube === undefined) throw new Error('a server is missing');
    return { ...(await measureAll({ file, etcd, kube }, options)), notes: [] };
  } finally {
    for (const { server, etcd } of Object.values(running)) {
      await close(server);
      await etcd?.stop();
    }
  }
}

async function start(name: SideName, program: string, root: string): Promise<Running> {
  await mkdir(root, { recursive: true });
  if (name === 'file') return { server: await opened(await BenchServer.apiServer(root)), etcd: undefined };
  const etcd = await Etcd.start();
  try {
    const server =
      name === 'etcd'
        ? await BenchServer.apiServer(root, ['--etcd-servers', etcd.url])
        : await BenchServer.kubeApiServer(root, program, etcd.url);
    return { server: await opened(server), etcd };
  } catch (error) {
    await etcd.stop();
    throw error;
  }
}

async function measureAll(
  running: Readonly<Record<SideName, Running>>,
  { pods: total, least, most, ms, say }: BesideOptions,
): Promise<Omit<BesideFigures, 'notes'>> {
  const sent = (name: string): object => pods.podOf(name, Number(/\d+$/.exec(name)?.[0]), NODES);
  const amounts: Amount[] = [];
  for (const name of SIDES) {
    const { server, etcd } = running[name];
    await server.connections.run([pods.DEFAULT_ACCOUNT]);
    const took = await server.connections.run(indices(total).map((index) => pods.create(sent(pods.podName(index)))));
    const samples = [await server.server.residentMiB()];
    const beside = etcd === undefined ? '' : `, its etcd ${(await residentMiB(etcd.pid)).toFixed(0)} MiB`;
    say(`${SERVERS[name]}: ${total} pods in ${took.toFixed(0)} ms, ${samples[0]?.toFixed(0)} MiB${beside}`);
    amounts.push({ name: `${SERVERS[name]}: RSS, ${total} pods`, unit: 'MiB', samples });
  }
  const spent = new Map<string, number[]>();
  const sides = SIDES.map((name): Side<SideName> => {
    const { server, etcd } = running[name];
    const side = new ServerSide(name, total, sent, server);
    const cpu = async (): Promise<number> =>
      (await server.server.cpuMs()) + (etcd === undefined ? 0 : await cpuMs(etcd.pid));
    return {
      name,
      measure: async (operation, round) => {
        const before = await cpu();
        const took = await side.measure(operation, round);
        const used = (await cpu()) - before;
        const key = `${name} ${operation}`;
        if (round > 0) spent.set(key, [...(spent.get(key) ?? []), used]);
        return took;
      },
    };
  });
  const limits = { least, most, until: performance.now() + ms };
  const rounds = await measureRounds('beside kube-apiserver', sides, OPERATIONS, limits, say);
  for (const operation of OPERATIONS) {
    for (const name of SIDES) {
      const samples = spent.get(`${name} ${operation}`) ?? [];
      amounts.push({ name: `${SERVERS[name]}: ${WHAT[operation]}, processor time`, unit: 'ms', samples });
    }
  }
  return { rows: rowsOf(rounds), amounts };
}

/** No slower than kube-apiserver is the goal. */
function rowsOf(rounds: Rounds<`${SideName} ${Operation}`>): readonly Row[] {
  return OPERATIONS.flatMap((operation): Row[] => {
    const row = (name: SideName): Row => ({
      name: `${SERVERS[name]}: ${WHAT[operation]}`,
      ...rounds.pairs(`${name} ${operation}`, `kube ${operation}`),
      ratioLimit: 1,
    });
    const kube = { name: `${SERVERS.kube}: ${WHAT[operation]}`, samples: rounds.samples(`kube ${operation}`) };
    return [kube, row('file'), row('etcd')];
  });
}
