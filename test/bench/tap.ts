// Measures what `nodelet tap` costs: the same unary calls straight to a server and through the tap, in turns and in one run.
//
//     sh scripts/node24 test/bench/tap.ts [rounds]
//
// Prints added latency (p50, one call at a time), calls a second (64 at a time), and the tap's memory. Asserts nothing.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeTree } from '../../lib/remove-tree.ts';

const ROUNDS = Number(process.argv[2] ?? 10);
const CALLS = 300;
const BURST = 4000;
const AT_ONCE = 64;
/** A message of the size of a usual CRI request. */
const BODY = Buffer.concat([Buffer.from([0, 0, 0, 1, 0]), Buffer.alloc(256, 7)]);

const TREE = fileURLToPath(new URL('../..', import.meta.url));

function start(args: readonly string[], stream: 'stdout' | 'stderr'): Promise<ChildProcess> {
  const child = spawn(process.execPath, args, { cwd: TREE, stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    child[stream]?.once('data', () => resolve(child));
    child.once('exit', (code) => reject(new Error(`${args.join(' ')} exited with ${code}`)));
  });
}

function session(path: string): ClientHttp2Session {
  return connect('http://localhost', { createConnection: () => connectSocket(path) });
}

function call(client: ClientHttp2Session): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = client.request({
      ':method': 'POST',
      ':path': '/runtime.v1.RuntimeService/PodSandboxStatus',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('data', () => undefined);
    stream.once('error', reject);
    stream.once('end', () => resolve());
    stream.end(BODY);
  });
}

async function latencies(client: ClientHttp2Session): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < CALLS; index++) {
    const begin = performance.now();
    await call(client);
    found.push(performance.now() - begin);
  }
  return found;
}

/** Calls a second. */
async function rate(clients: readonly ClientHttp2Session[]): Promise<number> {
  let left = BURST;
  const begin = performance.now();
  const worker = async (client: ClientHttp2Session): Promise<void> => {
    while (left-- > 0) await call(client);
  };
  await Promise.all(
    clients.flatMap((client) => Array.from({ length: AT_ONCE / clients.length }, () => worker(client))),
  );
  return (BURST * 1000) / (performance.now() - begin);
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

function statusKiB(pid: number, field: string): number {
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
}

/** CPU time of a process, ms. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const directory = mkdtempSync(join(tmpdir(), 'nodelet-tap-bench-'));
const [direct, tapped, recording] = ['direct.sock', 'tap.sock', 'bench.crirec'].map((name) => join(directory, name));
if (direct === undefined || tapped === undefined || recording === undefined) throw new Error('no paths');
const server = await start([join(TREE, 'test/bench/tap-server.ts'), direct], 'stdout');
const tap = await start(
  [join(TREE, 'cli/main.ts'), 'tap', '--listen', tapped, '--to', `unix://${direct}`, '--record', recording],
  'stderr',
);
try {
  const pid = tap.pid ?? 0;
  const straight = session(direct);
  const through = session(tapped);
  await latencies(straight);
  await latencies(through);
  const added: number[] = [];
  const base: number[] = [];
  const rates: { readonly direct: number[]; readonly tap: number[] } = { direct: [], tap: [] };
  const before = cpuMs(pid);
  const memory: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const first = median(await latencies(straight));
    const second = median(await latencies(through));
    base.push(first);
    added.push(second - first);
    rates.direct.push(await rate([straight]));
    rates.tap.push(await rate([through]));
    memory.push(statusKiB(pid, 'VmRSS') / 1024);
  }
  const calls = ROUNDS * (CALLS + BURST);
  straight.close();
  through.close();
  const show = (name: string, value: string): void => void process.stdout.write(`${name.padEnd(34)}${value}\n`);
  show('p50 direct, ms', median(base).toFixed(3));
  show(
    'p50 added by the tap, ms',
    `${median(added).toFixed(3)}  (rounds: ${added.map((each) => each.toFixed(3)).join(' ')})`,
  );
  show('calls a second, direct', median(rates.direct).toFixed(0));
  show('calls a second, through the tap', median(rates.tap).toFixed(0));
  show('CPU of the tap a call, µs', (((cpuMs(pid) - before) * 1000) / calls).toFixed(1));
  show('so at most calls a second of a core', (1_000_000 / (((cpuMs(pid) - before) * 1000) / calls)).toFixed(0));
  show('resident memory by round, MiB', memory.map((each) => each.toFixed(0)).join(' '));
  show('recording, bytes a call', (statSync(recording).size / (calls + CALLS)).toFixed(0));
} finally {
  const ended = Promise.all([tap, server].map((child) => new Promise((resolve) => child.once('exit', resolve))));
  tap.kill('SIGTERM');
  server.kill('SIGTERM');
  await ended;
  await removeTree(directory);
}
