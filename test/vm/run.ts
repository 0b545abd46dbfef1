// `npm run test:vm`: boots a Debian with systemd and cgroup v2 in a virtual machine, runs the checks of guest/ in it, and
// ends with "tests: N passed, N failed, N skipped". docs/vm.md has the rest.

import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { tallyLine } from '../../scripts/tally.ts';
import { guardRun } from './guarded.ts';
import { rootDisk, treeDisk, workDirectories } from './image.ts';
import { chooseAccel, runMachine } from './machine.ts';
import { type Accel, DRIVERS, GROUPS } from './plan.ts';
import { renderMessage, tallyMessages } from './results.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, '.cache/vm');
const CONSOLE = join(CACHE, 'console.log');
const CPUS = 2;
const MEMORY_MIB = 3072;
/** Under emulation everything takes many times as long, and other work may share the host's cores. */
const LIMIT_MS: Readonly<Record<Accel, number>> = { kvm: 20 * 60_000, tcg: 80 * 60_000 };

const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Flags {
  readonly accel: Accel | undefined;
  readonly only: string | undefined;
  readonly shell: boolean;
}

function readFlags(): Flags {
  const { values } = parseArgs({
    options: { accel: { type: 'string' }, only: { type: 'string' }, shell: { type: 'boolean', default: false } },
  });
  const { accel, only, shell } = values;
  if (accel !== undefined && accel !== 'kvm' && accel !== 'tcg') throw new UserError('--accel is kvm or tcg');
  const known: readonly string[] = [...GROUPS, ...DRIVERS];
  if (only?.split(',').some((word) => !known.includes(word))) {
    throw new UserError(`--only takes some of ${known.join(', ')}, with commas between them`);
  }
  return { accel, only, shell };
}

async function main(): Promise<number> {
  const flags = readFlags();
  if (process.getuid?.() !== 0)
    throw new UserError('must be root: debootstrap makes device files and runs in a chroot');
  const started = performance.now();
  const seconds = (): string => `${((performance.now() - started) / 1000).toFixed(0)} s`;
  await mkdir(CACHE, { recursive: true });
  const run = await guardRun(Object.values(workDirectories(CACHE)));
  try {
    return await runIn(run.directory, flags, seconds);
  } finally {
    await run.end();
  }
}

async function runIn(directory: string, flags: Flags, seconds: () => string): Promise<number> {
  const root = await rootDisk(CACHE, (line) => say(`== ${line}`));
  const tree = await treeDisk(ROOT, CACHE, (line) => say(`== ${line}`));
  const cached = (one: { fromCache: boolean }): string => (one.fromCache ? 'from the cache' : 'made now');
  say(`== disks after ${seconds()}: Debian ${cached(root)}, project ${cached(tree)}`);
  const accel = flags.accel ?? (await chooseAccel(root.kernel, (line) => say(`== ${line}`)));
  say(`== booting: ${accel}, ${CPUS} CPUs, ${MEMORY_MIB} MiB; console in ${CONSOLE}`);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  const outcome = await runMachine(
    directory,
    {
      ...{ accel, kernel: root.kernel, initrd: root.initrd, rootDisk: root.disk, treeDisk: tree.disk },
      ...{ cpus: CPUS, memoryMiB: MEMORY_MIB, consoleLog: flags.shell ? undefined : CONSOLE },
      ...(flags.only === undefined ? {} : { only: flags.only }),
    },
    {
      limitMs: LIMIT_MS[accel],
      signal: stop.signal,
      onMessage: (message) => {
        for (const line of renderMessage(message)) say(line);
      },
    },
  );
  if (flags.shell) return 0;
  const tally = tallyMessages(outcome.messages);
  if (outcome.trouble !== undefined) say(`FAILED: the machine: ${outcome.trouble}`);
  if (!outcome.messages.some((message) => message.kind === 'end')) {
    const log = await readFile(CONSOLE, 'utf8').catch(() => '');
    say(`FAILED: the checks broke off; the console's last words:\n${log.trimEnd().split('\n').slice(-30).join('\n')}`);
  }
  say(`== done after ${seconds()}`);
  say(tallyLine(tally));
  return tally.failed === 0 && outcome.trouble === undefined ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  say(`FAILED: ${errorMessage(error)}`);
  say(tallyLine({ passed: 0, failed: 1, skipped: 0 }));
  process.exitCode = 1;
}
