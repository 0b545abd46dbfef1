// Measures what `nodelet tap` costs: the same unary calls straight to a server and through a recording tap, in turns and in one
// run; client, server and tap are processes of their own.
//
//     sh scripts/node24 test/bench/tap.ts [rounds]
//
// Twice: with a client and a server on Node's HTTP/2, as nodelet has them, and with a pair that costs next to nothing, so that the
// tap is the limit. Prints the latency it adds (p50, one call at a time), calls a second (64 at a time) and whose processor time
// they take, and the tap's memory. Asserts nothing.

import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeTree } from '../../lib/remove-tree.ts';
import { percentile } from './stats.ts';
import type { Measured } from './tap-client.ts';
import { end, NODELET, type Program, start, statusKiB, TREE } from './tap-programs.ts';

const ROUNDS = Number(process.argv[2] ?? 10);
const CALLS = 300;
const BURST = 4000;
const AT_ONCE = 64;

async function make({ child, lines }: Program, calls: number, atOnce: number): Promise<Measured> {
  child.stdin?.write(`${calls} ${atOnce}\n`);
  const { value, done } = await lines.next();
  if (done === true) throw new Error('the client ended');
  return JSON.parse(value);
}

/** CPU time of a process, ms. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const show = (name: string, value: string): void => void process.stdout.write(`  ${name.padEnd(34)}${value}\n`);
const spread = (values: readonly number[], digits: number): string =>
  `${percentile(values, 0.5).toFixed(digits)}  (rounds: ${values.map((each) => each.toFixed(digits)).join(' ')})`;

/** Added latency, calls a second, and whose time they take. */
async function measurePair(kind: 'http2' | 'frames', directory: string): Promise<void> {
  const [direct, tapped, recording] = [`${kind}.sock`, `${kind}-tap.sock`, `${kind}.crirec`].map((name) =>
    join(directory, name),
  );
  if (direct === undefined || tapped === undefined || recording === undefined) throw new Error('no paths');
  const bench = (file: string): string => join(TREE, 'test/bench', file);
  const server = await start([bench('tap-server.ts'), kind, direct], 'stdout', true);
  const tapArgs = ['tap', '--listen', tapped, '--to', `unix://${direct}`, '--record', recording];
  const tap = await start(tapArgs, 'stderr', true, NODELET);
  const straight = await start([bench('tap-client.ts'), kind, direct], 'stdout', false);
  const through = await start([bench('tap-client.ts'), kind, tapped], 'stdout', false);
  const programs = [server, tap, straight, through];
  try {
    for (const client of [straight, through]) await make(client, BURST, AT_ONCE);
    const base: number[] = [];
    const added: number[] = [];
    const rates: { readonly direct: number[]; readonly tap: number[] } = { direct: [], tap: [] };
    const memory: number[] = [];
    const used = { client: 0, tap: 0, server: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const first = (await make(straight, CALLS, 1)).p50;
      base.push(first);
      added.push((await make(through, CALLS, 1)).p50 - first);
      rates.direct.push((BURST * 1000) / (await make(straight, BURST, AT_ONCE)).ms);
      const before = [through, tap, server].map(({ pid }) => cpuMs(pid));
      rates.tap.push((BURST * 1000) / (await make(through, BURST, AT_ONCE)).ms);
      const [client = 0, ofTap = 0, ofServer = 0] = [through, tap, server].map(
        ({ pid }, index) => cpuMs(pid) - (before[index] ?? 0),
      );
      used.client += client;
      used.tap += ofTap;
      used.server += ofServer;
      memory.push(statusKiB(tap.pid, 'VmRSS') / 1024);
    }
    const perCall = (ms: number): string => ((ms * 1000) / (ROUNDS * BURST)).toFixed(1);
    show('p50 direct, ms', percentile(base, 0.5).toFixed(3));
    show('p50 added by the tap, ms', spread(added, 3));
    show('calls a second, direct', spread(rates.direct, 0));
    show('calls a second, through the tap', spread(rates.tap, 0));
    show(
      'CPU of a call through the tap, µs',
      `client ${perCall(used.client)}, tap ${perCall(used.tap)}, server ${perCall(used.server)}`,
    );
    show('resident memory by round, MiB', memory.map((each) => each.toFixed(0)).join(' '));
    show('recording, MiB', (statSync(recording).size / 1024 / 1024).toFixed(1));
  } finally {
    for (const program of programs) await end(program);
  }
}

const directory = mkdtempSync(join(tmpdir(), 'nodelet-tap-bench-'));
try {
  for (const kind of ['http2', 'frames'] as const) {
    process.stdout.write(
      `${kind === 'http2' ? 'client and server on Node’s HTTP/2' : 'client and server that send prepared frames'}\n`,
    );
    await measurePair(kind, directory);
  }
} finally {
  await removeTree(directory);
}
