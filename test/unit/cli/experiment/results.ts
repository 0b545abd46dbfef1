// Results of experiments for tests: whole ones, of which a test says what matters to it.

import type { Experiment, ExperimentResult, RunResult } from '../../../../cli/experiment/model.ts';

export function experimentOf(given: Partial<Experiment>): Experiment {
  return {
    apiVersion: 'nodelet/v1',
    kind: 'Experiment',
    metadata: { name: 'back-off', title: 'Back-off of a container' },
    question: 'Why is it so?',
    prediction: 'It doubles.',
    reading: 'Each bar is a pause.',
    on: ['sim', 'lab'],
    steps: [{ sleep: '1m' }],
    measure: [{ name: 'pause', value: 'pauses', unit: 'ms' }],
    expect: [{ that: 'pause[0] < 2s' }],
    ...given,
  };
}

export function runOf(given: Partial<RunResult>): RunResult {
  return {
    parameters: {},
    repeat: 1,
    worldMs: 60_000,
    wallMs: 50,
    measures: { pause: [1000] },
    expectations: [{ that: 'pause[0] < 2s', outcome: 'met', detail: 'pause[0] = 1 s' }],
    recordings: [],
    ...given,
  };
}

export function resultOf(given: Partial<ExperimentResult>): ExperimentResult {
  return {
    version: 1,
    experiment: experimentOf({}),
    world: 'sim',
    agent: 'nodelet 0.1.0',
    startedAt: '2026-01-02T03:04:05Z',
    verdict: 'passed',
    runs: [runOf({})],
    ...given,
  };
}
