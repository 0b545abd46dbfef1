// Runs the checks and ends with one line alone: "tests: N passed, N failed, N skipped". Exit code 0 only if something ran
// and nothing failed. Types, style and the state of the machine afterwards count as one test each.
//
//   run-tests.ts          types, style, unit tests, end-to-end tests
//   run-tests.ts unit     types, style, unit tests: needs neither root nor containerd
//   run-tests.ts e2e      end-to-end tests, those with containerd and those without side by side
//
// Words after that go to vitest (a path, -t <name>). Before the last line the ten slowest test files are listed, and
// the tests that failed; how long each file took is kept in .cache/test-durations.json, and the next run begins with the
// longest.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildImages, loadDefinitions } from '../labs/images/build.ts';
import { errorMessage, isErrno } from '../lib/errors.ts';
import { exec } from '../lib/exec.ts';
import { compareWithMachine, SHARED_DIRECTORIES, snapshotMachine } from '../lib/machine.ts';
import { readMounts } from '../lib/mounts.ts';
import { removeTree } from '../lib/remove-tree.ts';
import { addTallies, EMPTY, failureLines, type Tally, tallyLine, tallyOf } from './tally.ts';
import {
  DURATIONS_FILE,
  DURATIONS_VARIABLE,
  type Durations,
  mergeDurations,
  readDurations,
  slowestLines,
  writeDurations,
} from './test-durations.ts';
import { endRun, markRun, RUN_VARIABLE } from './test-run.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const DURATION_REPORTER = join(ROOT, 'test/support/duration-reporter.ts');

/** The run is to stop: what runs is ended, what it has started is taken down, and nothing more is run. */
const stop = new AbortController();
/** How long a program may take to end after its signal, ms. */
const GRACE_MS = 20_000;

/**
 * Runs a program with its output going straight to ours, or to `collect`. Resolves with whether it exited with 0.
 */
function stream(file: string, args: readonly string[], collect?: (text: string) => void): Promise<boolean> {
  return new Promise((resolve, reject) => {
    if (stop.signal.aborted) {
      resolve(false);
      return;
    }
    const output = collect === undefined ? 'inherit' : 'pipe';
    const child = spawn(file, [...args], { cwd: ROOT, stdio: ['inherit', output, output] });
    for (const piped of [child.stdout, child.stderr]) piped?.setEncoding('utf8').on('data', collect ?? say);
    let timer: NodeJS.Timeout | undefined;
    const end = (): void => {
      child.kill('SIGTERM');
      timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
    };
    stop.signal.addEventListener('abort', end, { once: true });
    child.on('error', reject);
    child.on('close', (code) => {
      stop.signal.removeEventListener('abort', end);
      clearTimeout(timer);
      resolve(code === 0);
    });
  });
}

/** A closed output is no reason to stop half-way (see the listeners at the end). */
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function check(what: string, body: () => Promise<boolean>): Promise<Tally> {
  say(`== ${what}`);
  const ok = await body();
  if (!ok) say(`FAILED: ${what}`);
  return ok ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 };
}

/** The tests of this run that failed, a line each. */
const failures: string[] = [];
/** How long the files of this run took. */
const measured = new Map<string, number>();

/** vitest projects, side by side: progress as it happens, figures from the JSON report. */
async function vitest(what: string, projects: readonly string[], words: readonly string[]): Promise<Tally> {
  say(`== ${what}`);
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-tests-'));
  const report = join(directory, 'report.json');
  const durations = join(directory, 'durations.json');
  process.env[DURATIONS_VARIABLE] = durations;
  try {
    const reporters = ['default', 'json', DURATION_REPORTER].map((name) => `--reporter=${name}`);
    const chosen = projects.flatMap((name) => ['--project', name]);
    const args = [...chosen, ...reporters, `--outputFile.json=${report}`, ...words];
    const ok = await stream(process.execPath, [VITEST, 'run', ...args]);
    await keepDurations(await readDurations(durations));
    const result = await readReport(report);
    failures.push(...failureLines(result, ROOT));
    return tallyOf(result, ok);
  } finally {
    delete process.env[DURATIONS_VARIABLE];
    await removeTree(directory);
  }
}

async function keepDurations(run: Durations): Promise<void> {
  for (const [file, ms] of run) measured.set(file, ms);
  const path = join(ROOT, DURATIONS_FILE);
  const known = mergeDurations(await readDurations(path), run, (file) => existsSync(join(ROOT, file)));
  if (known.size > 0) await writeDurations(path, known);
}

function showSlowest(): void {
  if (measured.size === 0) return;
  say('== the ten slowest files');
  for (const line of slowestLines(measured, 10)) say(line);
}

/** Where they failed is far up in a long output. */
function showFailures(): void {
  if (failures.length === 0) return;
  say('== the tests that failed');
  for (const line of failures) say(`   ${line}`);
}

async function readReport(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    // vitest that fails before its first test writes none.
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** They run beside the unit tests: what a check prints is shown as a whole when it has ended. */
async function staticChecks(): Promise<Tally> {
  const run = async (what: string, name: string, ...args: readonly string[]): Promise<Tally> => {
    let output = '';
    const ok = await stream(join(ROOT, 'node_modules/.bin', name), args, (text) => {
      output += text;
    });
    return check(what, async () => {
      process.stdout.write(output);
      return ok;
    });
  };
  const types = await run('types', 'tsc', '--noEmit', '-p', 'tsconfig.json');
  // The timeline's page runs in a browser, whose types the rest must not have.
  const page = await run('types of the page', 'tsc', '--noEmit', '-p', 'cli/timeline/page');
  return addTallies(addTallies(types, page), await run('style', 'biome', 'check', '--error-on-warnings', '.'));
}

/**
 * The tests run every kubectl that set-up has put here, unless NODELET_KUBECTLS names others; its newest is the one of a
 * machine without a kubectl of its own.
 */
async function offerKubectls(): Promise<void> {
  const directory = join(ROOT, '.cache/kubectl');
  if ((process.env['NODELET_KUBECTLS'] ?? '') !== '' || !existsSync(directory)) return;
  const names = (await readdir(directory)).filter((name) => /^kubectl\.\d+\.\d+$/.test(name)).sort();
  if (names.length === 0) return;
  process.env['NODELET_KUBECTLS'] = names.map((name) => join(directory, name)).join(delimiter);
  process.env['PATH'] = `${process.env['PATH'] ?? ''}${delimiter}${directory}`;
}

async function endToEnd(words: readonly string[]): Promise<Tally> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    say('FAILED: the end-to-end tests run real containers and need root on Linux ("npm run test:unit" does not)');
    return { passed: 0, failed: 1, skipped: 0 };
  }
  try {
    // Here, so that no test's time limit pays for building them.
    await buildImages(await loadDefinitions(), (line) => say(`   ${line}`));
  } catch (error) {
    say(`FAILED: the lab's images: ${errorMessage(error)}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  await offerKubectls();
  // Other programs of the machine may start something meanwhile.
  const mark = `${RUN_VARIABLE}=${run}`;
  const before = await snapshotMachine({ mark });
  const made = SHARED_DIRECTORIES.filter((path) => !existsSync(path));
  const netnsMounted = await isMounted(NETNS);
  // Here, so that they do not come and go under tests that run side by side.
  for (const path of made) await mkdir(path, { recursive: true });
  const tests = await vitest('end-to-end tests', ['e2e', 'services'], words);
  if (stop.signal.aborted) await endRun(run, say);
  // `ip netns add` mounts its directory onto itself, and leaves it so. Another program may do so right now: then it stays, and is reported.
  if (!netnsMounted && (await isMounted(NETNS)) && (await readdir(NETNS)).length === 0) await exec('umount', [NETNS]);
  await removeEmpty(made);
  if (stop.signal.aborted) return addTallies(tests, { passed: 0, failed: 1, skipped: 0 });
  const clean = await check('the machine is as it was before the end-to-end tests', async () => {
    const differences = await compareWithMachine(before, { mark, settleMs: SETTLE_MS });
    for (const line of differences) say(`   ${line}`);
    return differences.length === 0;
  });
  return addTallies(tests, clean);
}

const NETNS = '/run/netns';
/** How long what the kernel takes away by itself may take. */
const SETTLE_MS = 120_000;

async function isMounted(path: string): Promise<boolean> {
  return (await readMounts()).some((mount) => mount.path === path);
}

/** A directory with content stays, and the comparison of the machine reports it. */
async function removeEmpty(directories: readonly string[]): Promise<void> {
  for (const path of directories) {
    try {
      await rmdir(path);
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTEMPTY')) throw error;
    }
  }
}

async function main(args: readonly string[]): Promise<number> {
  const suite = args[0] === 'unit' || args[0] === 'e2e' ? args[0] : 'all';
  const words = suite === 'all' ? args : args.slice(1);
  let total = EMPTY;
  if (suite !== 'e2e') {
    const [checks, tests] = await Promise.all([staticChecks(), vitest('unit tests', ['unit'], words)]);
    total = addTallies(checks, tests);
  }
  if (suite !== 'unit' && !stop.signal.aborted) total = addTallies(total, await endToEnd(words));
  showSlowest();
  showFailures();
  say(tallyLine(total));
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 } as const;
let stoppedBy: keyof typeof NUMBERS | undefined;
for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
  process.on(name, () => {
    stoppedBy ??= name;
    stop.abort();
  });
}
process.on('uncaughtException', (error) => {
  say(`FAILED: ${error.stack ?? error.message}`);
  stop.abort();
});
for (const output of [process.stdout, process.stderr]) output.on('error', () => stop.abort());
const run = markRun();
try {
  process.exitCode = await main(process.argv.slice(2));
} finally {
  // However the tests ended: removes labs that outlived them.
  await endRun(run, say);
}
if (stop.signal.aborted) process.exitCode = stoppedBy === undefined ? 1 : 128 + NUMBERS[stoppedBy];
