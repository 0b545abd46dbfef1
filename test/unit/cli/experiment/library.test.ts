// Every experiment of the library is as the schema says and, where it runs on sim, runs there: its predictions are met. An
// expectation with a wrong figure is not.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseMatrix, summary } from '../../../../cli/experiment/command.ts';
import { FUNCTIONS } from '../../../../cli/experiment/expression/evaluate.ts';
import { labCannot } from '../../../../cli/experiment/lab/cannot.ts';
import { LIBRARY, libraryNames } from '../../../../cli/experiment/library.ts';
import {
  type ExperimentSource,
  loadExperiment,
  type ParameterValues,
  parseExperiment,
} from '../../../../cli/experiment/load.ts';
import type { ExperimentResult } from '../../../../cli/experiment/model.ts';
import { runExperiment } from '../../../../cli/experiment/runner.ts';
import { createSimWorld } from '../../../../cli/experiment/sim/world.ts';

const NAMES = await libraryNames();
/** What else than the default is run: a day of it takes seconds. */
const MATRIX: Readonly<Record<string, readonly string[]>> = {
  'crash-loop-day': ['hours=2'],
  'agent-killed': ['call'],
  'api-server-away': ['away'],
  'clock-jump': ['jump'],
  'cni-fails': ['plugin', 'failures'],
  'configmap-propagation': ['strategy'],
  'deadline-and-grace': ['deadline'],
  'delete-while-starting': ['call'],
  'dns-ndots': ['ndots'],
  'dns-server-away': ['ndots'],
  'force-delete': ['grace'],
  'image-gc': ['high'],
  'image-pull-parallel': ['parallel'],
  'liveness-grace': ['probe'],
  'liveness-threshold': ['period=1,10', 'threshold=1,5'],
  'node-shutdown-priority': ['script'],
  'pre-stop': ['hook=4,60'],
  'relist-latency': ['runtime'],
  'restart-policy': ['policy', 'code'],
  'restart-policy-mixed': ['policy'],
  'restart-reset': ['run'],
  'runtime-away-node': ['away'],
  'secret-propagation': ['strategy'],
  'slow-status-writes': ['delay'],
  'startup-probe': ['threshold'],
  'stop-in-parallel': ['grace'],
  'token-rotation': ['seconds=3600', 'watched=3h'],
};

async function run(source: ExperimentSource, matrix: readonly string[] = [], seed = 1): Promise<ExperimentResult> {
  const { result } = await runExperiment({
    source,
    kind: 'sim',
    agent: 'nodelet',
    createWorld: (one) => createSimWorld({ seed: one }),
    repeat: 1,
    seed,
    matrix: parseMatrix(matrix, source.experiment),
    signal: new AbortController().signal,
    note: () => undefined,
  });
  return result;
}

test('there are at least 60', () => {
  expect(NAMES.length).toBeGreaterThanOrEqual(60);
});

test.each(NAMES)('%s is called by its file and points editors to the schema', async (name) => {
  const file = join(LIBRARY, `${name}.yaml`);
  const { experiment } = await loadExperiment(file);
  expect(experiment.metadata.name).toBe(name);
  expect(await readFile(file, 'utf8')).toMatch(
    /^# yaml-language-server: \$schema=\.\.\/\.\.\/cli\/experiment\/schema\.json\n/,
  );
});

/** Other values than the default for a lab. */
const LAB_VALUES: Readonly<Record<string, ParameterValues>> = {
  'agent-killed': { image: 'busybox:stable' },
  'delete-while-starting': { image: 'busybox:stable', call: 'CreateContainer' },
};

const SOURCES = await Promise.all(NAMES.map((name) => loadExperiment(join(LIBRARY, `${name}.yaml`))));
const ON_SIM = SOURCES.filter(({ experiment }) => experiment.on.includes('sim'));

test.each(ON_SIM.map((source) => [source.experiment.metadata.name, source] as const))(
  '%s: what it predicts is so on sim',
  async (name, source) => {
    const result = await run(source, MATRIX[name]);
    expect(result.verdict, summary(result)).toBe('passed');
  },
);

const ON_LAB = SOURCES.filter(({ experiment }) => experiment.on.includes('lab'));

test.each(ON_LAB.map((source) => [source.experiment.metadata.name, source] as const))(
  '%s: a lab can do its world and its steps, and something is expected there',
  async (name, source) => {
    const { world = {}, steps, expect: expected } = await source.vary(LAB_VALUES[name] ?? {});
    const worldSteps = steps.flatMap((step) => ('wait' in step || 'sleep' in step ? [] : [step]));
    expect(labCannot(world, worldSteps, { kind: 'nodelet' })).toEqual([]);
    expect(expected.filter(({ on }) => on?.includes('lab') !== false)).not.toEqual([]);
  },
);

test.each<[string, string, string]>([
  ['restart-backoff', '[0s, 10s, 20s,', '[0s, 10s, 30s,'],
  ['restart-policy', '[0s, 10s, 20s, 40s]', '[0s, 10s, 30s, 40s]'],
  ['grace-period', 'max([$(grace) * 1s, 2s])', 'max([$(grace) * 2s, 2s])'],
  ['liveness-threshold', '$(threshold) * $(period) * 1s + 1s + 1500ms', '($(threshold) - 1) * $(period) * 1s'],
  ['image-pull-serial', '$(seconds) * 2s], 2s)', '$(seconds) * 1s], 2s)'],
  ['lease', '* 1s / 4', '* 1s / 2'],
  ['sidecar-order', "that: 'end_gap > 0s'", "that: 'end_gap < 0s'"],
  ['host-port-conflict', '"NodePorts"', '"OutOfcpu"'],
  ['oom-kill', 'codes == [137]', 'codes == [1]'],
  ['relist-latency', 'typical > 150ms', 'typical > 30s'],
  ['event-lost', 'lost > heard', 'lost < heard'],
  ['stop-in-parallel', 'within(ends[2], $(grace) * 1s', 'within(ends[2], $(grace) * 2s'],
  ['job-retries', 'codes == [1, 2, 0]', 'codes == [1, 1, 0]'],
  ['liveness-grace', 'within(killed, $(probe) * 1s', 'within(killed, $(probe) * 2s'],
  ['api-server-away', 'writes == 1', 'writes == 5'],
  ['node-shutdown-order', '[2s, 20s, 23s]', '[2s, 30s, 33s]'],
  ['node-shutdown-priority', '[5s, 13s, 17s]', '[5s, 8s, 4s]'],
  ['node-shutdown-unprepared', 'signal == "KILL"', 'signal == null'],
  ['disk-eviction-order', 'evicted[0] < 15s', 'evicted[0] > 15s'],
  ['disk-eviction-imagefs', 'volume == "Running"', 'volume == "Failed"'],
  ['disk-eviction-images', 'removed >= 1', 'removed == 0'],
  ['image-gc', 'max(removed) <= 301s', 'max(removed) <= 30s'],
  ['local-storage-limits', 'pressure == 0', 'pressure == 1'],
  ['node-lease-expiry', 'unknown > 39s', 'unknown > 42s'],
  ['node-cut-off', 'shown == 0', 'shown == 1'],
  ['node-eviction-timing', '[30s, 300s]', '[30s, 30s]'],
  ['dns-policy', 'merged == [0]', 'merged == [1]'],
  ['dns-ndots', '[2, 4, 8, 8, 8, 2]', '[2, 4, 2, 8, 8, 2]'],
  ['dns-server-away', 'within(lasted, 20s', 'within(lasted, 5s'],
])('%s: a wrong figure is not met', async (name, right, wrong) => {
  const text = await readFile(join(LIBRARY, `${name}.yaml`), 'utf8');
  expect(text).toContain(right);
  const result = await run(await parseExperiment(text.replace(right, wrong), `${name}.yaml`));
  expect(result.verdict).toBe('failed');
  expect(result.runs[0]?.expectations.filter(({ outcome }) => outcome === 'not met')).toHaveLength(1);
});

test('the same seed gives the same measures, another one others', async () => {
  const source = await loadExperiment(join(LIBRARY, 'restart-policy.yaml'));
  const [first, again, other] = [await run(source), await run(source), await run(source, [], 2)];
  expect(again.runs[0]?.measures).toEqual(first.runs[0]?.measures);
  expect(other.runs[0]?.measures).not.toEqual(first.runs[0]?.measures);
});

test('two hours of CrashLoopBackOff cost no more calls than their share of the day that the documentation names', async () => {
  const source = await loadExperiment(join(LIBRARY, 'crash-loop-day.yaml'));
  const { recordings } = await runExperiment({
    source,
    kind: 'sim',
    agent: 'nodelet',
    createWorld: (seed) => createSimWorld({ seed }),
    repeat: 1,
    seed: 1,
    matrix: parseMatrix(['hours=2'], source.experiment),
    signal: new AbortController().signal,
    note: () => undefined,
  });
  const spans = recordings.get('spans.jsonl')?.split('\n').length ?? 0;
  // 37,000 a day, and what the beginning adds.
  expect(spans).toBeGreaterThan(2000);
  expect(spans).toBeLessThan((37_000 / 24) * 2 * 1.15);
});

test('the documentation names every function, and experiments that are there', async () => {
  const text = await readFile(join(import.meta.dirname, '../../../../docs/experiments.md'), 'utf8');
  for (const { usage } of FUNCTIONS.values()) expect(text).toContain(`\`${usage}\``);
  const [, library = ''] = text.split('## The library');
  const listed = [...library.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name = '']) => name);
  expect(listed).toEqual(NAMES);
});
