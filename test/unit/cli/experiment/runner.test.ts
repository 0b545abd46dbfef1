// The runner with a world of the test's own: waits, failures, interruption, and that the world is always closed.

import { expect, test } from 'vitest';
import { parseExperiment } from '../../../../cli/experiment/load.ts';
import type { Observation } from '../../../../cli/experiment/observation.ts';
import { runExperiment, stepText, variationsOf } from '../../../../cli/experiment/runner.ts';
import type { World, WorldStep } from '../../../../cli/experiment/world.ts';
import { type MonotonicMs, monotonicMs } from '../../../../lib/clock.ts';
import { UserError } from '../../../../lib/errors.ts';

/** A container exits each second. */
class FakeWorld implements World {
  readonly kind = 'sim';
  readonly observations: Observation[] = [];
  readonly performed: WorldStep[] = [];
  readonly refuses: readonly string[];
  readonly fails: boolean;
  time = 0;
  closed = 0;

  constructor({ refuses = [], fails = false }: { refuses?: readonly string[]; fails?: boolean } = {}) {
    this.refuses = refuses;
    this.fails = fails;
  }

  now(): MonotonicMs {
    return monotonicMs(this.time);
  }
  cannot(): readonly string[] {
    return this.refuses;
  }
  start(): Promise<void> {
    return Promise.resolve();
  }
  perform(step: WorldStep): Promise<void> {
    this.performed.push(step);
    return this.fails ? Promise.reject(new UserError('the machine is on fire')) : Promise.resolve();
  }
  sleep(ms: number): Promise<void> {
    this.time += ms;
    return Promise.resolve();
  }
  changed(limitMs: number): Promise<boolean> {
    this.time += Math.min(1000, limitMs);
    const at = this.now();
    this.observations.push({
      type: 'container',
      at,
      change: 'exited',
      pod: 'default/a',
      container: 'c',
      attempt: 0,
      exitCode: 1,
    });
    return Promise.resolve(true);
  }
  recordings(): Promise<ReadonlyMap<string, string>> {
    return Promise.resolve(new Map([['spans.jsonl', 'x']]));
  }
  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }
}

function file(until = 'count(container("c").exited) >= $(n)'): string {
  return `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: one, title: One }
question: a
prediction: b
reading: c
on: [sim]
parameters: { n: { default: 3 } }
steps:
  - { name: kill it, kill: { process: agent } }
  - wait: { until: '${until}', timeout: 10s }
  - sleep: 5s
measure:
  - { name: exits, value: 'container("c").exited' }
  - { name: waited, value: 'step("wait*").ended - step("kill it").began' }
  - { name: wrong, value: '"a" - 1' }
expect:
  - { that: 'count(exits) == 3', because: three }
  - { that: 'waited == 3s' }
  - { that: 'first(container("none").exited) < 1s' }
  - { that: 'sim and not lab' }
  - { that: 'wrong == 1' }
`;
}

async function go(
  world: FakeWorld,
  text = file(),
  options: { repeat?: number; n?: readonly number[]; signal?: AbortSignal; patience?: number } = {},
) {
  const notes: string[] = [];
  const worlds: FakeWorld[] = [];
  const outcome = await runExperiment({
    source: await parseExperiment(text, 'one.yaml'),
    kind: 'sim',
    agent: 'nodelet',
    createWorld: () => {
      const one = worlds.length === 0 ? world : new FakeWorld();
      worlds.push(one);
      return one;
    },
    repeat: options.repeat ?? 1,
    seed: 7,
    matrix: new Map(options.n === undefined ? [] : [['n', options.n]]),
    signal: options.signal ?? new AbortController().signal,
    ...(options.patience === undefined ? {} : { patience: options.patience }),
    note: (line) => notes.push(line),
  });
  return { ...outcome, worlds, notes };
}

test('steps, waits, measures and expectations', async () => {
  const world = new FakeWorld();
  const { result, notes } = await go(world);
  expect(world.performed).toEqual([{ name: 'kill it', kill: { process: 'agent' } }]);
  expect(result.verdict).toBe('failed');
  const [run] = result.runs;
  expect(run).toMatchObject({ parameters: { n: 3 }, seed: 7, repeat: 1, worldMs: 8000, recordings: ['spans.jsonl'] });
  expect(run?.measures).toEqual({ exits: [1000, 2000, 3000], waited: 3000 });
  expect(run?.expectations.map(({ outcome }) => outcome)).toEqual(['met', 'met', 'not met', 'met', 'error']);
  expect(run?.expectations[0]).toMatchObject({ because: 'three', detail: 'exits = [1000,2000,3000]' });
  expect(run?.expectations[2]?.detail).toBe('it has no value');
  expect(notes).toContain('wrong has no value: "-" needs numbers, not a text and a number');
  expect(world.closed).toBe(1);
});

test('a condition that does not come true ends the run, and says which', async () => {
  const world = new FakeWorld();
  const { result } = await go(world, file('count(container("c").exited) > 50'));
  expect(result.runs[0]?.failure).toBe('step 2, wait until count(container("c").exited) > 50: not true within 10s');
  expect(result.verdict).toBe('failed');
  expect(world.time).toBe(10_000);
  expect(world.closed).toBe(1);
});

test('a step that fails ends the run, and the world is closed', async () => {
  const world = new FakeWorld({ fails: true });
  const { result } = await go(world);
  expect(result.runs[0]?.failure).toBe('step 1, kill it: the machine is on fire');
  expect(world.closed).toBe(1);
});

test('what the world cannot do is refused before anything is started', async () => {
  const world = new FakeWorld({ refuses: ['there is no CSI driver'] });
  await expect(go(world)).rejects.toThrow('one.yaml cannot run on sim:\n  there is no CSI driver');
  expect(world.performed).toEqual([]);
});

test('a file that is for another world', async () => {
  const text = file().replace('on: [sim]', 'on: [lab]');
  await expect(go(new FakeWorld(), text)).rejects.toThrow('one.yaml: one runs on lab, not on sim');
});

test('variations and repeats, with names of recordings that differ', async () => {
  const { result, recordings, worlds } = await go(new FakeWorld(), file(), { repeat: 2, n: [2, 3] });
  expect(result.runs.map(({ parameters, repeat, seed }) => [parameters['n'], repeat, seed])).toEqual([
    [2, 1, 7],
    [2, 2, 8],
    [3, 1, 7],
    [3, 2, 8],
  ]);
  expect([...recordings.keys()]).toEqual([
    'run-1-spans.jsonl',
    'run-2-spans.jsonl',
    'run-3-spans.jsonl',
    'run-4-spans.jsonl',
  ]);
  expect(worlds.every(({ closed }) => closed === 1)).toBe(true);
});

/** Each phase of a run, and where it says that it was interrupted. */
test.each<[keyof Pick<World, 'start' | 'perform' | 'changed' | 'sleep' | 'recordings' | 'close'>, string | undefined]>([
  ['start', 'the world did not start: interrupted'],
  ['perform', 'step 1, kill it: interrupted'],
  ['changed', 'step 2, wait until count(container("c").exited) >= 3: interrupted'],
  ['sleep', 'step 3, sleep 5s: interrupted'],
  ['recordings', undefined],
  ['close', undefined],
])('an interruption in %s is a verdict of its own, and the world is closed', async (phase, failure) => {
  const abort = new AbortController();
  const world = new FakeWorld();
  const { recordings, close } = world;
  let begun = 0;
  // As a real world does: what it waits for is given up.
  const interrupted = async (): Promise<never> => {
    begun++;
    abort.abort(new Error('stop'));
    throw abort.signal.reason;
  };
  // Nothing is given up in these.
  const done = (): void => {
    begun++;
    abort.abort(new Error('stop'));
  };
  if (phase === 'recordings') {
    world.recordings = () => {
      done();
      return recordings.call(world);
    };
  } else if (phase === 'close') {
    world.close = () => {
      done();
      return close.call(world);
    };
  } else Object.assign(world, { [phase]: interrupted });
  const { result, worlds } = await go(world, file(), { signal: abort.signal, repeat: 3 });
  expect(begun).toBe(1);
  expect(result.verdict).toBe('interrupted');
  expect(result.runs.map((run) => run.failure)).toEqual([failure]);
  expect(worlds).toEqual([world]);
  expect(world.closed).toBe(1);
});

test('a condition is waited for as often as long as the machine is slow', async () => {
  const never = file('count(container("c").exited) >= 1000');
  const [world, slow] = [new FakeWorld(), new FakeWorld()];
  const { result } = await go(world, never);
  const { result: other } = await go(slow, never, { patience: 10 });
  expect([world.time, slow.time]).toEqual([10_000, 100_000]);
  expect(result.runs[0]?.failure).toContain('not true within 10s');
  expect(other.runs[0]?.failure).toContain('not true within 10 x 10s');
});

test('the step after an interruption is not done', async () => {
  const abort = new AbortController();
  const world = new FakeWorld();
  world.perform = () => {
    abort.abort(new Error('stop'));
    return Promise.resolve();
  };
  const { result } = await go(world, file(), { signal: abort.signal });
  expect(result.runs[0]?.failure).toBe('step 2, wait until count(container("c").exited) >= 3: interrupted');
  expect(world.time).toBe(0);
});

test('every combination of the values', () => {
  expect(variationsOf(new Map())).toEqual([{}]);
  const matrix = new Map<string, (string | number)[]>([
    ['a', [1, 2]],
    ['b', ['x']],
  ]);
  expect(variationsOf(matrix)).toEqual([
    { a: 1, b: 'x' },
    { a: 2, b: 'x' },
  ]);
});

test.each([
  [{ sleep: '5s' }, 'sleep 5s'],
  [{ cut: { from: 'apiserver' } } as const, 'cut apiserver'],
  [{ kill: { pod: 'a', container: 'b' } }, 'kill a/b'],
  [{ use: { memory: '1Gi' } }, 'use memory 1Gi'],
  [{ name: 'mine', sleep: '5s' }, 'mine'],
])('the text of a step', (step, text) => {
  expect(stepText(step)).toBe(text);
});
