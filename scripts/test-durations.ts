// How long each test file takes: kept from run to run, so that the next run can begin with the longest ones, and shown at
// the end of a run. Reads and writes one JSON file ({"test/e2e/x.test.ts": milliseconds}); starts nothing.

import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../lib/atomic.ts';

/** Milliseconds by the file's path from the root of the repository. */
export type Durations = ReadonlyMap<string, number>;

/** Where a run of the tests keeps what it has measured, from the root of the repository. */
export const DURATIONS_FILE = '.cache/test-durations.json';
/** Names the file to which vitest's reporter writes the durations of its run (test/support/duration-reporter.ts). */
export const DURATIONS_VARIABLE = 'NODELET_TEST_DURATIONS';

/**
 * The files that take longest, in seconds on two cores, for a tree in which no run has measured anything yet. It only has
 * to put the long ones first: what is wrong here costs a minute once.
 */
export const USUAL_SECONDS: ReadonlyMap<string, number> = new Map([
  ['test/e2e/csi-driver/crash.test.ts', 170],
  ['test/e2e/lab/lab.test.ts', 169],
  ['test/e2e/lifecycle/containers.test.ts', 120],
  ['test/e2e/csi-agent/agent-killed.test.ts', 105],
  ['test/e2e/volumes/live.test.ts', 105],
  ['test/e2e/probes/probes.test.ts', 96],
  ['test/e2e/csi-driver/sanity.test.ts', 94],
  ['test/e2e/registry/pull.test.ts', 91],
  ['test/hostile/hostile.test.ts', 90],
  ['test/e2e/agent/outages.test.ts', 85],
  ['test/e2e/csi-agent/kill.test.ts', 85],
  ['test/e2e/csi-driver/lab.test.ts', 85],
  ['test/e2e/kubectl/kubectl.test.ts', 85],
  ['test/e2e/agent/agent-killed.test.ts', 83],
  ['test/sim/sim.test.ts', 80],
  ['test/e2e/disk/full-disk.test.ts', 75],
  ['test/e2e/lifecycle/configuration.test.ts', 75],
  ['test/e2e/storage/drill.test.ts', 70],
  ['test/e2e/csi-agent/lab.test.ts', 65],
  ['test/e2e/docs/docs.test.ts', 65],
  ['test/e2e/volumes/types.test.ts', 65],
  ['test/e2e/agent/bad-input.test.ts', 55],
  ['test/e2e/crictl/by-hand.test.ts', 55],
  ['test/e2e/docs/demo.test.ts', 55],
  ['test/e2e/lab/root.test.ts', 55],
  ['test/e2e/setup/run-tests.test.ts', 55],
  ['test/e2e/agent/talk.test.ts', 50],
  ['test/e2e/lab/images.test.ts', 50],
]);

/** For a file of which nothing is known. */
const UNKNOWN_MS = 5_000;

/** Pure. What is no number is left out: the file is only a help. */
export function parseDurations(text: string): Durations {
  const value: unknown = JSON.parse(text);
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return new Map(entries.flatMap(([file, ms]) => (typeof ms === 'number' ? [[file, ms] as const] : [])));
}

/** Empty when there is none, or when it is no JSON. */
export async function readDurations(path: string): Promise<Durations> {
  const text = await readFileIfExists(path);
  if (text === undefined) return new Map();
  try {
    return parseDurations(text);
  } catch (error) {
    if (error instanceof SyntaxError) return new Map();
    throw error;
  }
}

export async function writeDurations(path: string, durations: Durations): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const sorted = [...durations].toSorted(([a], [b]) => (a < b ? -1 : 1));
  await writeFileAtomic(path, `${JSON.stringify(Object.fromEntries(sorted), undefined, 1)}\n`);
}

/** What is known after a run: its own figures, and for the files that it did not run those from before. Pure. */
export function mergeDurations(before: Durations, run: Durations, exists: (file: string) => boolean): Durations {
  return new Map([...before, ...run].filter(([file]) => exists(file)));
}

/** How long a file is expected to take, in ms. Pure. */
export function expectedMs(file: string, known: Durations): number {
  const usual = USUAL_SECONDS.get(file);
  return known.get(file) ?? (usual === undefined ? UNKNOWN_MS : usual * 1000);
}

/** One line for each of the `count` files that took longest. Pure. */
export function slowestLines(durations: Durations, count: number): readonly string[] {
  const slowest = [...durations].toSorted(([, a], [, b]) => b - a).slice(0, count);
  return slowest.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${file}`);
}
