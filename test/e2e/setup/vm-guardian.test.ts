// A run in a virtual machine that is killed leaves nothing: no emulator, no mount of an unfinished Debian, no file.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readMounts } from '../../../lib/mounts.ts';
import { readProcess } from '../../../lib/processes.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { eventually } from '../agent/harness.ts';

/** A run that has mounted something in its work directory, and whose program has started another of its own session. */
const RUN = `
import { spawn } from 'node:child_process';
import { writeFileSync, mkdirSync } from 'node:fs';
import { execOk } from './lib/exec.ts';
import { guardRun } from './labs/vm/guarded.ts';
const [work, how] = process.argv.slice(1);
const run = await guardRun([work]);
mkdirSync(work + '/tree/proc', { recursive: true });
writeFileSync(work + '/disk.part', '');
writeFileSync(run.directory + '/results.sock', '');
await execOk('mount', ['-t', 'tmpfs', 'none', work + '/tree/proc']);
const program = spawn('sh', ['-c', 'setsid sleep 100000 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
const other = await new Promise((resolve) => program.stdout.once('data', (data) => resolve(Number(data))));
console.log(JSON.stringify({ directory: run.directory, pids: [program.pid, other] }));
if (how === 'ends') await run.end();
else await new Promise((resolve) => setInterval(resolve, 2 ** 30));
`;

let parent: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'nodelet-vm-guardian-'));
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await removeTree(parent);
});

async function startRun(
  how: 'ends' | 'is killed',
): Promise<{ directory: string; pids: number[]; ended: Promise<unknown[]> }> {
  const work = join(parent, 'work');
  child = spawn(process.execPath, ['--input-type=module', '--eval', RUN, work, how], {
    cwd: join(import.meta.dirname, '../../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  if (child.stdout === null) throw new Error('no pipe');
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { ...JSON.parse(line), ended };
}

test.each(['ends', 'is killed'] as const)('of a run that %s nothing is left', async (how) => {
  const { directory, pids, ended } = await startRun(how);
  if (how === 'is killed') child?.kill('SIGKILL');
  const [code] = await ended;
  expect(code).toBe(how === 'ends' ? 0 : null);
  await eventually('everything of the run to be gone', async () => {
    const alive = await Promise.all(pids.map(readProcess));
    if (alive.some((entry) => entry !== undefined && entry.state !== 'Z')) return undefined;
    if ((await readMounts()).some(({ path }) => path.startsWith(parent))) return undefined;
    return existsSync(directory) || existsSync(join(parent, 'work')) ? undefined : true;
  });
});
