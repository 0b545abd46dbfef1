// An experiment in a virtual machine, without the machine: the job that goes in, the lines that come out, and what is made of a
// machine that was interrupted, breaks off, or refuses.

import { describe, expect, test } from 'vitest';
import { type ExperimentSource, parseExperiment } from '../../../../../cli/experiment/load.ts';
import { runOnVm, type VmOptions } from '../../../../../cli/experiment/vm/host.ts';
import {
  JOB_FILE,
  jobOf,
  outcomeMessages,
  parseMessage,
  sourceOf,
  type VmJob,
  type VmMessage,
  VmOutput,
} from '../../../../../cli/experiment/vm/job.ts';
import type { runInMachine } from '../../../../../labs/vm/run.ts';
import { UserError } from '../../../../../lib/errors.ts';
import { resultOf, runOf } from '../results.ts';

const FILE = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: small, title: small }
question: q
prediction: p
reading: r
on: [lab, vm]
parameters: { code: { default: 1, values: [1, 2] } }
steps: [{ sleep: $(code)s }]
measure: [{ name: time, value: now() }]
expect: [{ that: time >= $(code)s }]
`;
const MATRIX = new Map([['code', [1, 2]]]);
const source = (text = FILE): Promise<ExperimentSource> => parseExperiment(text, 'small.yaml');

describe('the job', () => {
  test('has every variation, so that nothing of this machine is needed in the other', async () => {
    const job = await jobOf(await source(), MATRIX, { repeat: 2, seed: 3, agent: 'nodelet', agentName: 'nodelet 1' });
    const there = sourceOf(JSON.parse(JSON.stringify(job)));
    expect((await there.vary({ code: 2 })).steps).toEqual([{ sleep: '2s' }]);
    expect((await there.vary({ code: 1 })).expect).toEqual([{ that: 'time >= 1s' }]);
    expect(there.file).toBe('small.yaml');
    expect(job).toMatchObject({ repeat: 2, seed: 3, matrix: [['code', [1, 2]]] });
    await expect(there.vary({ code: 3 })).rejects.toThrow('no variation');
  });

  test('has the experiment as it is where nothing is varied', async () => {
    const job = await jobOf(await source(), new Map(), { repeat: 1, seed: 1, agent: 'nodelet', agentName: 'n' });
    expect((await sourceOf(job).vary({})).steps).toEqual([{ sleep: '1s' }]);
  });
});

describe('lines', () => {
  test.each<VmMessage>([
    { kind: 'note', text: 'a\nb' },
    { kind: 'alive' },
    { kind: 'part', name: 'spans.jsonl', text: '{}\n' },
    { kind: 'refused', text: 'no' },
    { kind: 'end' },
  ])('%j is read as it was sent', (message) => {
    expect(parseMessage(JSON.stringify(message))).toEqual(message);
  });

  test.each(['', '{"kind":"par', 'null', '{"kind":"stop"}', '{"kind":"part","text":"x"}', '{"kind":"note"}'])(
    '%j is refused',
    (line) => {
      expect(() => parseMessage(line)).toThrow('the machine sent a line');
    },
  );

  test('carry a result and its recordings in parts, whatever their size', () => {
    const result = resultOf({ world: 'vm', runs: [runOf({ recordings: ['spans.jsonl', 'empty'] })] });
    const long = Array.from({ length: 40_000 }, (_, number) => `{"é":${number}}\n`).join('');
    const recordings = new Map([
      ['spans.jsonl', long],
      ['empty', ''],
    ]);
    const output = new VmOutput();
    let lines = 0;
    for (const message of outcomeMessages({ result, recordings })) {
      expect(output.outcome()).toBeUndefined();
      output.add(parseMessage(JSON.stringify(message)));
      lines++;
    }
    expect(lines).toBeGreaterThan(6);
    expect(output.outcome()).toEqual({ result, recordings });
  });
});

describe('a run', () => {
  const ended = { trouble: undefined, console: 'last words' };
  const options = async (more: Partial<VmOptions> = {}): Promise<VmOptions & { readonly notes: string[] }> => {
    const notes: string[] = [];
    return {
      source: await source(),
      agent: 'nodelet',
      agentName: 'nodelet 1',
      repeat: 1,
      seed: 1,
      matrix: MATRIX,
      signal: new AbortController().signal,
      note: (line) => notes.push(line),
      notes,
      ...more,
    };
  };
  const result = resultOf({ world: 'vm' });
  const machine =
    (messages: Iterable<VmMessage>, outcome = ended): typeof runInMachine =>
    async ({ onLine }) => {
      for (const message of messages) onLine(JSON.stringify(message));
      return outcome;
    };

  test('has the result that came out, and shows the notes', async () => {
    const given = await options();
    const messages: VmMessage[] = [
      { kind: 'note', text: 'the node is Ready' },
      { kind: 'alive' },
      ...outcomeMessages({ result, recordings: new Map([['a', 'b']]) }),
    ];
    expect(await runOnVm(given, machine(messages))).toEqual({ result, recordings: new Map([['a', 'b']]) });
    expect(given.notes).toEqual(['the node is Ready']);
  });

  test('takes the job along, and the program of another kubelet', async () => {
    const seen: Parameters<typeof runInMachine>[0][] = [];
    const record: typeof runInMachine = async (run) => {
      seen.push(run);
      return await machine(outcomeMessages({ result, recordings: new Map() }))(run);
    };
    await runOnVm(await options({ agent: 'kubelet=/bin/sh', agentName: 'kubelet v1' }), record);
    const [run] = seen;
    expect(run?.program).toBe('cli/experiment/vm/guest.ts');
    expect(run?.input?.get('kubelet')).toEqual({ copyOf: '/bin/sh' });
    const file = run?.input?.get(JOB_FILE);
    const job: VmJob = JSON.parse(file !== undefined && 'text' in file ? file.text : '');
    expect(job).toMatchObject({ agent: 'kubelet=/run/nodelet-input/kubelet', agentName: 'kubelet v1' });
    // A machine that hangs is given up; one that works is not, however long it takes.
    expect(run?.limits.tcg.silenceMs).toBeGreaterThan(0);
    expect(run?.limits.tcg.runMs).toBeUndefined();
  });

  test.each<[string, readonly VmMessage[], typeof ended | { trouble: string; console: string }, string]>([
    [
      'breaks off',
      [{ kind: 'note', text: 'x' }],
      ended,
      'the program in it broke off; its console ends with\nlast words',
    ],
    ['is switched off', [], { trouble: 'nothing came out of it', console: '' }, 'nothing came out of it'],
    ['refuses', [{ kind: 'refused', text: 'world.runtime: another one' }], ended, 'world.runtime: another one'],
    ['sends no result', [{ kind: 'end' }], ended, 'result.json is not JSON'],
  ])('that %s is an error that says so', async (_, messages, outcome, words) => {
    const work = runOnVm(await options(), async (run) => {
      await machine(messages)(run);
      return outcome;
    });
    await expect(work).rejects.toThrow(words);
    await expect(work).rejects.toBeInstanceOf(UserError);
  });

  test('that was interrupted has no result', async () => {
    const controller = new AbortController();
    const work = runOnVm(await options({ signal: controller.signal }), async () => {
      controller.abort();
      return { trouble: 'interrupted', console: '' };
    });
    await expect(work).rejects.toThrow('interrupted: the virtual machine was ended');
  });

  const never: typeof runInMachine = () => Promise.reject(new Error('a machine was made'));

  test('of what is for sim alone makes no machine', async () => {
    const sim = await source(FILE.replace('on: [lab, vm]', 'on: [sim]'));
    await expect(runOnVm(await options({ source: sim }), never)).rejects.toThrow('small runs on sim, not on vm');
    const lab = await source(FILE.replace('on: [lab, vm]', 'on: [lab]'));
    await expect(runOnVm(await options({ source: lab }), never)).rejects.toThrow('a machine was made');
  });

  test('of what a lab cannot do makes no machine', async () => {
    const clock = FILE.replace('{ sleep: $(code)s }', '{ clock: { add: 1h } }');
    await expect(runOnVm(await options({ source: await source(clock) }), never)).rejects.toThrow(
      /small\.yaml cannot run on vm:\n {2}clock: /,
    );
  });
});
