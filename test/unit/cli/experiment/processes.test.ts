// Steps that kill or start a process which a world does not have are refused with the same words everywhere.

import { expect, test } from 'vitest';
import { labCannot } from '../../../../cli/experiment/lab/cannot.ts';
import { processProblems } from '../../../../cli/experiment/processes.ts';
import { simCannot } from '../../../../cli/experiment/sim/cannot.ts';
import type { WorldStep } from '../../../../cli/experiment/world.ts';

const missing = (name: string): string | undefined => (name === 'agent' ? undefined : 'it is not there');

test.each<[WorldStep, readonly string[]]>([
  [{ kill: { process: 'agent' } }, []],
  [{ kill: { process: 'scheduler' } }, ['kill scheduler: it is not there']],
  [{ start: { process: 'containerd' } }, ['start containerd: it is not there']],
  [{ kill: { pod: 'web', container: 'scheduler' } }, []],
  [{ cut: { from: 'runtime' } }, []],
])('%j', (step, problems) => {
  expect(processProblems(step, missing)).toEqual(problems);
});

test.each(['kill', 'start'] as const)('to %s the scheduler is refused on sim and on a lab', (verb) => {
  const step: WorldStep = verb === 'kill' ? { kill: { process: 'scheduler' } } : { start: { process: 'scheduler' } };
  for (const problems of [simCannot({}, [step]), labCannot({}, [step], { kind: 'nodelet' })]) {
    expect(problems).toEqual([expect.stringMatching(`^${verb} scheduler: `)]);
  }
});
