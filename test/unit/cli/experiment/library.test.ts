// Every experiment of the library is as the schema says and, where it runs on sim, runs there: its predictions are met. An
// expectation with a wrong figure is not.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseMatrix, summary } from '../../../../cli/experiment/command.ts';
import { FUNCTIONS } from '../../../../cli/experiment/expression/evaluate.ts';
import { LIBRARY, libraryNames } from '../../../../cli/experiment/library.ts';
import { type ExperimentSource, loadExperiment, parseExperiment } from '../../../../cli/experiment/load.ts';
import type { ExperimentResult } from '../../../../cli/experiment/model.ts';
import { runExperiment } from '../../../../cli/experiment/runner.ts';
import { createSimWorld } from '../../../../cli/experiment/sim/world.ts';

const NAMES = await libraryNames();
/** What else than the default is run: a day of it takes seconds. */
const MATRIX: Readonly<Record<string, readonly string[]>> = {
  'crash-loop-day': ['hours=2'],
  'agent-killed': ['after'],
  'pre-stop': ['hook=4,60'],
  'startup-probe': ['threshold'],
  'restart-never': ['code'],
  'restart-on-failure': ['code'],
  'restart-reset': ['run'],
  'configmap-propagation': ['strategy'],
  'image-pull-parallel': ['parallel'],
  'clock-jump': ['jump'],
  'liveness-threshold': ['period=1,10', 'threshold=1,5'],
  'lost-events': ['runtime'],
  'cni-fails': ['plugin'],
  'agent-killed-at-call': ['call'],
  'clock-jump-timers': ['jump'],
  'cni-backoff': ['plugin', 'failures'],
  'deadline-and-grace': ['deadline'],
  'delete-while-starting': ['call'],
  'force-delete': ['grace'],
  'liveness-grace': ['probe'],
  'relist-latency': ['runtime'],
  'restart-policy-mixed': ['policy'],
  'runtime-away-node': ['away'],
  'secret-propagation': ['strategy'],
  'slow-status-writes': ['delay'],
  'status-after-outage': ['away'],
  'stop-in-parallel': ['grace'],
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

test('there are at least 30', () => {
  expect(NAMES.length).toBeGreaterThanOrEqual(30);
});

test.each(NAMES)('%s is called by its file and points editors to the schema', async (name) => {
  const file = join(LIBRARY, `${name}.yaml`);
  const { experiment } = await loadExperiment(file);
  expect(experiment.metadata.name).toBe(name);
  expect(await readFile(file, 'utf8')).toMatch(
    /^# yaml-language-server: \$schema=\.\.\/\.\.\/cli\/experiment\/schema\.json\n/,
  );
});

const SOURCES = await Promise.all(NAMES.map((name) => loadExperiment(join(LIBRARY, `${name}.yaml`))));
const ON_SIM = SOURCES.filter(({ experiment }) => experiment.on.includes('sim'));

test.each(ON_SIM.map((source) => [source.experiment.metadata.name, source] as const))(
  '%s: what it predicts is so on sim',
  async (name, source) => {
    const result = await run(source, MATRIX[name]);
    expect(result.verdict, summary(result)).toBe('passed');
  },
);

test.each<[string, string, string]>([
  ['restart-backoff', '[0s, 10s, 20s,', '[0s, 10s, 30s,'],
  ['restart-never', 'starts == 1', 'starts == 2'],
  ['grace-period', 'max([$(grace) * 1s, 2s])', 'max([$(grace) * 2s, 2s])'],
  ['liveness-threshold', '$(threshold) * $(period) * 1s + 1s + 1500ms', '($(threshold) - 1) * $(period) * 1s'],
  ['image-pull-serial', '[20s, 40s]', '[20s, 20s]'],
  ['lease', '* 1s / 4', '* 1s / 2'],
  ['sidecar-order', "that: 'end_gap > 0s'", "that: 'end_gap < 0s'"],
  ['host-port-conflict', '"NodePorts"', '"OutOfcpu"'],
  ['oom-kill', 'codes == [137]', 'codes == [1]'],
  ['relist-latency', 'typical > 150ms', 'typical > 30s'],
  ['event-lost', 'lost > heard', 'lost < heard'],
  ['stop-in-parallel', 'within(ends[2], $(grace) * 1s', 'within(ends[2], $(grace) * 2s'],
  ['job-retries', 'codes == [1, 2, 0]', 'codes == [1, 1, 0]'],
  ['liveness-grace', 'within(killed, $(probe) * 1s', 'within(killed, $(probe) * 2s'],
  ['status-after-outage', 'writes == 1', 'writes == 5'],
])('%s: a wrong figure is not met', async (name, right, wrong) => {
  const text = await readFile(join(LIBRARY, `${name}.yaml`), 'utf8');
  expect(text).toContain(right);
  const result = await run(await parseExperiment(text.replace(right, wrong), `${name}.yaml`));
  expect(result.verdict).toBe('failed');
  expect(result.runs[0]?.expectations.filter(({ outcome }) => outcome === 'not met')).toHaveLength(1);
});

test('the same seed gives the same measures, another one others', async () => {
  const source = await loadExperiment(join(LIBRARY, 'restart-on-failure.yaml'));
  const [first, again, other] = [await run(source), await run(source), await run(source, [], 2)];
  expect(again.runs[0]?.measures).toEqual(first.runs[0]?.measures);
  expect(other.runs[0]?.measures).not.toEqual(first.runs[0]?.measures);
});

test('the documentation names every function, and experiments that are there', async () => {
  const text = await readFile(join(import.meta.dirname, '../../../../docs/experiments.md'), 'utf8');
  for (const { usage } of FUNCTIONS.values()) expect(text).toContain(`\`${usage}\``);
  const [, library = ''] = text.split('## The library');
  const listed = [...library.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name = '']) => name);
  expect(listed.length).toBeGreaterThanOrEqual(30);
  expect(listed.filter((name) => !NAMES.includes(name))).toEqual([]);
});
