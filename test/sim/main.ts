// `npm run sim -- --seed N --steps M`: one random history of the simulated node, on a virtual clock. A broken rule
// prints the seed, the step and what led to it; the same seed goes wrong at the same step. --seeds K runs K seeds in a
// row, --trace prints everything that happens, --storage is about volumes and a driver at its worst.

import { parseArgs } from 'node:util';
import { throwOnViolation } from '../../lib/invariant.ts';
import { BrokenRule, runHistory } from './history.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    steps: { type: 'string', default: '10000' },
    storage: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});

function count(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new RangeError(`--${name} must be a whole number, not "${text}"`);
  return Number(text);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const first = count('seed', values.seed);
const steps = count('steps', values.steps);
let failed = 0;
throwOnViolation();
for (let seed = first; seed < first + count('seeds', values.seeds); seed++) {
  const began = performance.now();
  const cpu = process.cpuUsage();
  try {
    const report = await runHistory({ seed, steps, storage: values.storage, ...(values.trace ? { onLine: say } : {}) });
    const seconds = (performance.now() - began) / 1000;
    const rate = Math.round(report.steps / seconds);
    // What the rate is where nobody else wants the processor.
    const { user, system } = process.cpuUsage(cpu);
    const cpuRate = Math.round((report.steps * 1e6) / (user + system));
    const hours = (report.virtualMs / 3_600_000).toFixed(1);
    say(
      `seed ${seed}: ${report.steps} steps, ${report.events} events in ${hours} h, every rule held, ` +
        `at rest in the end; ${rate} steps a second (${cpuRate} of processor time), history ${report.digest}`,
    );
  } catch (error) {
    if (!(error instanceof BrokenRule)) throw error;
    say(error.message);
    failed++;
  }
}
process.exitCode = failed === 0 ? 0 : 1;
