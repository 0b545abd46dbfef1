// `npm run sim -- --seed N --steps M`: one random history of the simulated node, on a virtual clock. A broken rule
// prints the seed and the events that led to it; the same seed replays to the same step. --seeds K runs K seeds in a row.

import { parseArgs } from 'node:util';
import { runHistory } from './random.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    steps: { type: 'string', default: '1000' },
  },
});

function count(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new RangeError(`--${name} must be a whole number, not "${text}"`);
  return Number(text);
}

const first = count('seed', values.seed);
const steps = count('steps', values.steps);
for (let seed = first; seed < first + count('seeds', values.seeds); seed++) {
  const began = performance.now();
  await runHistory(seed, steps);
  const seconds = (performance.now() - began) / 1000;
  const rate = Math.round(steps / seconds);
  process.stdout.write(`seed ${seed}: ${steps} steps, every rule held, at rest in the end (${rate} steps a second)\n`);
}
