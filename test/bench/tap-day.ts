// Passes as many calls as a kubelet with 110 pods makes in days through `nodelet tap`, without a recording and with one, and shows
// that its memory does not grow with them.
//
//     sh scripts/node24 test/bench/tap-day.ts [--days N] [--minutes N]
//
// A day has DAY_CALLS calls on one connection, and between them a short connection every ten seconds, as a script with crictl
// makes. They come as fast as the tap takes them, a day in a minute; --minutes ends each of the two runs early. The tap's
// resident memory is read a hundred times. V8 sizes its heap in the first half; fails where the median of the last tenth is above
// the highest of the first half by more than ALLOWED. The recording takes 1.5 GiB a day in the directory of temporary files.

import { mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { removeTree } from '../../lib/remove-tree.ts';
import { percentile } from './stats.ts';
import { MESSAGE, METHOD } from './tap-call.ts';
import { connectFrames } from './tap-frames.ts';
import { end, NODELET, type Program, start, statusKiB, TREE } from './tap-programs.ts';

const DAY_S = 86_400;
/** docs/comparing.md has a kubelet's lists and statuses; an exec probe of each pod every ten seconds is added. */
const CALLS_A_SECOND = 7 + 110 / 10;
const DAY_CALLS = CALLS_A_SECOND * DAY_S;
const CONNECTIONS = DAY_S / 10;
const AT_ONCE = 16;
const SAMPLES = 100;
/** Of the memory, what V8 takes and gives back between two collections. */
const ALLOWED = 0.05;

const { values } = parseArgs({ options: { days: { type: 'string' }, minutes: { type: 'string' } } });
const DAYS = Number(values.days ?? 1);
const CALLS = Math.round(DAYS * DAY_CALLS);
const LIMIT_MS = Number(values.minutes ?? 30) * 60_000;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const MiB = (kib: number): string => `${(kib / 1024).toFixed(1)} MiB`;

/** Connects, makes one call and goes. */
async function passBy(path: string): Promise<void> {
  const client = await connectFrames(path, METHOD, MESSAGE);
  await client.call();
  client.close();
}

/** Makes `calls` on the client's connection, and short connections between them. */
async function calls(path: string, call: () => Promise<void>, count: number): Promise<void> {
  const short = Math.round((CONNECTIONS * count) / DAY_CALLS);
  const every = Math.max(1, Math.floor(count / Math.max(1, short)));
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      const number = left--;
      await call();
      if (number % every === 0) await passBy(path);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

interface Day {
  readonly made: number;
  /** KiB, in the order of time. */
  readonly memory: readonly number[];
}

async function passDay(tap: Program, path: string): Promise<Day> {
  const client = await connectFrames(path, METHOD, MESSAGE);
  const memory: number[] = [];
  const began = performance.now();
  let made = 0;
  while (memory.length < SAMPLES && performance.now() - began < LIMIT_MS) {
    const batch = Math.ceil((CALLS - made) / (SAMPLES - memory.length));
    await calls(path, client.call, batch);
    made += batch;
    memory.push(statusKiB(tap.pid, 'VmRSS'));
  }
  client.close();
  return { made, memory };
}

/** Of the samples between two parts of the run, 0 to 1. */
const median = (memory: readonly number[], from: number, to: number): number =>
  percentile(memory.slice(Math.floor(memory.length * from), Math.ceil(memory.length * to)), 0.5);

/** Whether its memory is at the end no more than in the first half. */
async function measure(directory: string, records: boolean): Promise<boolean> {
  const [direct, tapped, recording] = ['server.sock', `tap-${records}.sock`, 'day.crirec'].map((name) =>
    join(directory, name),
  );
  if (direct === undefined || tapped === undefined || recording === undefined) throw new Error('no paths');
  const args = ['tap', '--listen', tapped, '--to', `unix://${direct}`];
  const tap = await start([...args, ...(records ? ['--record', recording] : [])], 'stderr', true, NODELET);
  const began = performance.now();
  try {
    const { made, memory } = await passDay(tap, tapped);
    const seconds = (performance.now() - began) / 1000;
    const tenths = Array.from({ length: 10 }, (_, index) => median(memory, index / 10, (index + 1) / 10));
    const early = Math.max(...memory.slice(0, Math.ceil(memory.length / 2)));
    const late = tenths[9] ?? 0;
    say(`${records ? 'with a recording' : 'without a recording'}: ${made} calls in ${seconds.toFixed(0)} s`);
    say(`  resident memory by tenths of the calls: ${tenths.map(MiB).join(', ')}; peak ${MiB(Math.max(...memory))}`);
    say(`  highest in the first half ${MiB(early)}, median of the last tenth ${MiB(late)}`);
    if (records) say(`  recording: ${(statSync(recording).size / 2 ** 30).toFixed(2)} GiB; ${await lastWord(tap)}`);
    return late <= early * (1 + ALLOWED);
  } finally {
    if (tap.child.exitCode === null) await end(tap);
  }
}

/** What the tap says of its recording at its end. */
async function lastWord(tap: Program): Promise<string> {
  const next = tap.lines.next();
  await end(tap);
  const { value, done } = await next;
  return done === true ? 'the tap said nothing' : value;
}

const directory = mkdtempSync(join(tmpdir(), 'nodelet-tap-day-'));
try {
  const server = await start(
    [join(TREE, 'test/bench/tap-server.ts'), 'frames', join(directory, 'server.sock')],
    'stdout',
    true,
  );
  try {
    say(
      `a day: ${DAY_CALLS} calls (${CALLS_A_SECOND} a second), ${CONNECTIONS} short connections; made here: ${CALLS}`,
    );
    const flat = [await measure(directory, false), await measure(directory, true)];
    process.exitCode = flat.every(Boolean) ? 0 : 1;
    say(process.exitCode === 0 ? 'no growth' : `FAILED: memory grew by more than ${ALLOWED * 100} %`);
  } finally {
    await end(server);
  }
} finally {
  await removeTree(directory);
}
