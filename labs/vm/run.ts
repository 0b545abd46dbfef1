// One run in a virtual machine from beginning to end: its disks, the accelerator, a boot, the lines that come out, and nothing
// that is left, however it ends.

import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { imageCacheDirectory } from '../images/build.ts';
import { clearLeftWork, guardRun, workDirectories } from './guarded.ts';
import { inputDisk, rootDisk, treeDisk } from './image.ts';
import { chooseAccel, type MachineLimits, runMachine } from './machine.ts';
import type { Accel } from './plan.ts';
import { checkRequirements } from './requirements.ts';

/** The checkout, as the machine sees it. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CPUS = 2;
export const MEMORY_MIB = 3072;
const CONSOLE_LINES = 30;

export interface MachineRun {
  /** Chosen by a try where it is undefined. */
  readonly accel?: Accel | undefined;
  /** What runs in it: a TypeScript file below the checkout. */
  readonly program: string;
  /** See plan.ts. */
  readonly only?: string | undefined;
  /** Files for the program, below INPUT_MOUNT: see inputDisk. */
  readonly input?: Parameters<typeof inputDisk>[1];
  /** No job: the machine's console at this terminal. */
  readonly shell?: boolean;
  /** Where the console's text is kept; without it, it goes with the run. */
  readonly console?: string;
  /** How long it may take, by the accelerator. */
  readonly limits: Readonly<Record<Accel, Pick<MachineLimits, 'runMs' | 'silenceMs'>>>;
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
  /** What is done here, line by line. */
  readonly say: (line: string) => void;
}

export interface MachineOutcome {
  /** Why it did not come to its own end; undefined when it did. */
  readonly trouble: string | undefined;
  /** The last lines of its console. */
  readonly console: string;
}

/** `.cache/vm` of the checkout, or the user's cache where that cannot be written. */
export const machineCache = async (): Promise<string> => join(dirname(await imageCacheDirectory()), 'vm');

/** Rejects with UserError where the machine cannot be made, and when `signal` aborts before it runs. */
export async function runInMachine(run: MachineRun): Promise<MachineOutcome> {
  await checkRequirements();
  const cache = await machineCache();
  await mkdir(cache, { recursive: true });
  await clearLeftWork(cache);
  const work = await workDirectories(cache);
  const guarded = await guardRun(Object.values(work));
  try {
    return await boot(run, guarded.directory, { cache, work });
  } catch (error) {
    if (run.signal.aborted) throw new UserError('interrupted', { cause: error });
    throw error;
  } finally {
    await guarded.end();
  }
}

async function boot(
  run: MachineRun,
  directory: string,
  { cache, work }: { readonly cache: string; readonly work: Awaited<ReturnType<typeof workDirectories>> },
): Promise<MachineOutcome> {
  const { say, signal, program, only } = run;
  const root = await rootDisk({ cache, work: work.root, say, signal });
  const tree = await treeDisk(ROOT, { cache, work: work.tree, say, signal });
  const input = run.input === undefined ? undefined : await inputDisk(directory, run.input, signal);
  const accel = run.accel ?? (await chooseAccel(root.kernel, say));
  signal.throwIfAborted();
  const consoleLog = run.console ?? join(directory, 'console.log');
  say(`booting a Debian with systemd: ${accel}, ${CPUS} CPUs, ${MEMORY_MIB} MiB`);
  const trouble = await runMachine(
    directory,
    {
      ...{ accel, kernel: root.kernel, initrd: root.initrd, rootDisk: root.disk, treeDisk: tree.disk },
      ...{ cpus: CPUS, memoryMiB: MEMORY_MIB, consoleLog: run.shell === true ? undefined : consoleLog, program },
      ...(input === undefined ? {} : { inputDisk: input }),
      ...(only === undefined ? {} : { only }),
    },
    { ...run.limits[accel], signal, onLine: run.onLine },
  );
  return { trouble, console: await lastLines(consoleLog) };
}

async function lastLines(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trimEnd().split('\n').slice(-CONSOLE_LINES).join('\n');
  } catch (error) {
    // A machine that did not start has no console.
    if (!isErrno(error, 'ENOENT')) throw new Error(`${file}: ${errorMessage(error)}`, { cause: error });
    return '';
  }
}
