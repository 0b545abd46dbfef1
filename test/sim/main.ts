// `npm run sim -- --seed N --steps M`: one random history of the simulated node, on a virtual clock. A broken rule
// prints the seed, its kind of runtime, the step and what led to it; the same seed goes wrong at the same step. --seeds K
// runs K seeds in a row, --trace prints everything that happens, --storage is about volumes and a driver at its worst. The
// last line says how long it ran and on which runtimes.

import { parseArgs } from 'node:util';
import { runtimeKindOf } from '../../labs/sim/cri/kinds.ts';
import { throwOnViolation } from '../../lib/invariant.ts';
import { BrokenControlPlane, runControlPlaneHistory } from './control-plane/history.ts';
import { BrokenRule, runHistory } from './history.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    steps: { type: 'string', default: '10000' },
    storage: { type: 'boolean', default: false },
    'control-plane': { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});

function count(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new RangeError(`--${name} must be a whole number, not "${text}"`);
  return Number(text);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const first = count('seed', values.seed);
const seeds = count('seeds', values.seeds);
const steps = count('steps', values.steps);

/** Processor time, or wall time, of what ran: seconds and steps a second. */
function pace(stepsRun: number, seconds: number): number {
  return Math.round(stepsRun / Math.max(seconds, 0.001));
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** How often each kind of runtime was there, and how often a rule was broken on it. */
const kinds = new Map<string, { seeds: number; broken: number }>();
const totals = { steps: 0, hours: 0, broken: [] as number[] };

async function runSeed(seed: number): Promise<void> {
  const { name } = runtimeKindOf(seed);
  const kind = kinds.get(name) ?? { seeds: 0, broken: 0 };
  kinds.set(name, kind);
  kind.seeds++;
  const began = performance.now();
  const cpu = cpuSeconds();
  try {
    const report = await runHistory({ seed, steps, storage: values.storage, ...(values.trace ? { onLine: say } : {}) });
    const hours = report.virtualMs / 3_600_000;
    totals.steps += report.steps;
    totals.hours += hours;
    const rate = pace(report.steps, (performance.now() - began) / 1000);
    // What the rate is where no other program needs the processor.
    const cpuRate = pace(report.steps, cpuSeconds() - cpu);
    say(
      `seed ${seed} (${name}): ${report.steps} steps, ${report.events} events in ${hours.toFixed(1)} h, every rule held, ` +
        `at rest in the end; ${rate} steps a second (${cpuRate} of processor time), history ${report.digest}`,
    );
  } catch (error) {
    if (!(error instanceof BrokenRule)) throw error;
    say(error.message);
    totals.steps += error.step;
    totals.broken.push(seed);
    kind.broken++;
  }
}

/** A history of a whole control plane instead. */
async function runControlPlaneSeed(seed: number): Promise<void> {
  try {
    const report = await runControlPlaneHistory({ seed, ...(values.trace ? { onLine: say } : {}) });
    const { arrangement, writes, virtualMs, convergedMs, digest } = report;
    totals.steps += report.steps;
    totals.hours += virtualMs / 3_600_000;
    say(
      `seed ${seed} (${arrangement}): ${report.steps} steps, ${writes} writes in ${(virtualMs / 60_000).toFixed(1)} min, every rule ` +
        `held, as it should be ${(convergedMs / 1000).toFixed(0)} s after the last change; history ${digest}`,
    );
  } catch (error) {
    if (!(error instanceof BrokenControlPlane)) throw error;
    say(error.message);
    totals.broken.push(seed);
  }
}

/** What was run, how long it took, and on what. */
function summary(seconds: number): string {
  const each = [...kinds].sort(([a], [b]) => (a < b ? -1 : 1));
  const onKinds = each.map(
    ([name, kind]) => `${name}: ${kind.seeds}${kind.broken > 0 ? `, ${kind.broken} broken` : ''}`,
  );
  const broken = totals.broken.length === 0 ? 'every rule held' : `rules broken by seeds ${totals.broken.join(', ')}`;
  return (
    `${seeds} seeds${onKinds.length === 0 ? '' : ` (${onKinds.join('; ')})`}, ${totals.steps} steps, ${totals.hours.toFixed(1)} h of virtual time: ${broken}. ` +
    `It ran ${seconds.toFixed(1)} s, ${pace(totals.steps, seconds)} steps a second ` +
    `(${pace(totals.steps, cpuSeconds())} of processor time)`
  );
}

throwOnViolation();
const began = performance.now();
for (let seed = first; seed < first + seeds; seed++) {
  await (values['control-plane'] ? runControlPlaneSeed(seed) : runSeed(seed));
}
say(summary((performance.now() - began) / 1000));
process.exitCode = totals.broken.length === 0 ? 0 : 1;
