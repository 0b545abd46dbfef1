// Experiments on a virtual machine as a user runs them: one whose result comes out, and one that is interrupted and leaves
// nothing. Each boots a machine of its own.

import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readResultFolder } from '../../cli/experiment/report/folder.ts';
import { machineCache } from '../../labs/vm/run.ts';
import { errorMessage } from '../../lib/errors.ts';
import { listProcesses } from '../../lib/processes.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import type { Tally } from '../../scripts/tally.ts';
import { type Message, renderMessage } from './results.ts';

const NODELET = fileURLToPath(new URL('../../bin/nodelet', import.meta.url));
/** Asks for nothing but an order: an emulated processor keeps no times. */
const EXPERIMENT = 'sidecar-order';
/** Printed when the program in the machine begins. */
const BEGUN = /s after its boot$/;

interface Finding {
  readonly held: boolean;
  readonly saw: string;
}

/** Resolves with the exit code and all lines. `until`: SIGINT follows a line that matches. */
function nodelet(
  args: readonly string[],
  { signal, until }: { readonly signal: AbortSignal; readonly until?: RegExp },
): Promise<{ readonly code: number | null; readonly lines: readonly string[]; readonly pid: number | undefined }> {
  return new Promise((resolve, reject) => {
    const child = spawn(NODELET, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const lines: string[] = [];
    const stop = (): void => void child.kill('SIGINT');
    signal.addEventListener('abort', stop, { once: true });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        if (until?.test(line) === true) stop();
      });
    }
    child.once('error', reject);
    child.once('close', (code) => {
      signal.removeEventListener('abort', stop);
      resolve({ code, lines, pid: child.pid });
    });
  });
}

async function resultComesOut(directory: string, signal: AbortSignal): Promise<Finding> {
  const folder = join(directory, 'result');
  const { code, lines } = await nodelet(['experiment', 'run', EXPERIMENT, '--on', 'vm', '-o', folder], { signal });
  const saw = lines.slice(-12).join('\n');
  if (code !== 0) return { held: false, saw };
  const { world, verdict, runs } = await readResultFolder(folder);
  const spans = await readFile(join(folder, 'spans.jsonl'), 'utf8');
  const held = world === 'vm' && verdict === 'passed' && runs.length === 1 && spans.includes('"StartContainer"');
  return { held, saw: `${saw}\n${(await readdir(folder)).join(' ')}` };
}

async function interruptedLeavesNothing(directory: string, signal: AbortSignal): Promise<Finding> {
  const before = new Set(await readdir(tmpdir()));
  const folder = join(directory, 'interrupted');
  const args = ['experiment', 'run', EXPERIMENT, '--on', 'vm', '-o', folder];
  const { code, lines } = await nodelet(args, { signal, until: BEGUN });
  const left = [
    ...(await readdir(tmpdir())).filter((name) => name.startsWith('nodelet-vm-') && !before.has(name)),
    ...(await readdir(await machineCache())).filter((name) => name.startsWith('work-')),
    ...(await listProcesses()).flatMap(({ argv }) => {
      const run = /nodelet-vm-\w+/.exec(argv.join(' '))?.[0];
      return run === undefined || before.has(run) ? [] : [argv.join(' ')];
    }),
    ...(await readdir(directory)).filter((name) => name === 'interrupted'),
  ];
  const held = code !== 0 && lines.some((line) => line.includes('interrupted')) && left.length === 0;
  return { held, saw: [...lines.slice(-3), ...left.map((each) => `left: ${each}`)].join('\n') };
}

export async function checkExperiments(say: (line: string) => void, signal: AbortSignal): Promise<Tally> {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-vm-test-'));
  let tally = { passed: 0, failed: 0, skipped: 0 };
  const check = async (name: string, look: () => Promise<Finding>): Promise<void> => {
    const finding = await look().catch((error: unknown) => ({ held: false, saw: errorMessage(error) }));
    const message: Message = { kind: 'check', name, ...finding };
    for (const line of renderMessage(message)) say(line);
    tally = finding.held ? { ...tally, passed: tally.passed + 1 } : { ...tally, failed: tally.failed + 1 };
  };
  try {
    await check(`experiment: ${EXPERIMENT} runs on a virtual machine, and its result comes out`, () =>
      resultComesOut(directory, signal),
    );
    if (signal.aborted) return tally;
    await check('experiment: an interrupted run ends its machine and leaves nothing', () =>
      interruptedLeavesNothing(directory, signal),
    );
    return tally;
  } finally {
    await removeTree(directory);
  }
}
