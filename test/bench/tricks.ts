// `npm run bench -- --tricks`: what each trick of lib/tricks.ts saves. The agent of one lab is restarted again and again,
// with a random half of the tricks on and then with the other half; effects.ts makes savings of it. Prints a table for
// docs/performance.md.

import type { RunningLab } from '../../cli/lab/lab.ts';
import { resourcePath } from '../../client/paths.ts';
import { TRICKS, TRICKS_VARIABLE } from '../../lib/tricks.ts';
import { type Half, randomHalves, savings } from './effects.ts';
import { startBenchLab } from './lab.ts';
import { BenchPods, type PodTemplate } from './pods.ts';
import { agentCpuMs, peakResidentMiB } from './processes.ts';

export const MEASURES = ['start, ms', 'burst, ms', 'agent’s CPU in the burst, ms', 'agent’s peak RSS, MiB'] as const;
export type Measure = (typeof MEASURES)[number];
export type Values = Readonly<Record<Measure, number>>;

export interface TricksOptions {
  readonly root: string;
  readonly pairs: number;
  readonly template: PodTemplate;
  readonly say: (line: string) => void;
}

export interface MeasuredPair {
  readonly on: Half;
  /** With `on`, and with the other half. */
  readonly first: Values;
  readonly second: Values;
}

const NAMESPACE = 'tricks';
const STARTS = 3;
const BURST = 12;
const SEED = 1;
/** So that a restart is a short one, as often as there are halves. */
const RESTART = { initialMs: 10, maxMs: 10, factor: 1, resetMs: 10 };

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

export async function measureTricks({ root, pairs, template, say }: TricksOptions): Promise<readonly MeasuredPair[]> {
  const before = process.env[TRICKS_VARIABLE];
  const lab = await startBenchLab({ root, restart: RESTART, say });
  const measured: MeasuredPair[] = [];
  try {
    const metadata = { name: NAMESPACE };
    await lab.client.create(resourcePath('v1', 'namespaces'), { apiVersion: 'v1', kind: 'Namespace', metadata });
    const pods = new BenchPods(lab.client, NAMESPACE, template);
    await pods.start();
    for (const [index, on] of randomHalves(TRICKS.length, pairs, SEED).entries()) {
      const other = on.map((is) => !is);
      const first = await measureHalf(lab, pods, on, `${index}-a`);
      const second = await measureHalf(lab, pods, other, `${index}-b`);
      measured.push({ on, first, second });
      say(`pair ${index + 1}/${pairs}: ${JSON.stringify(first)}, ${JSON.stringify(second)}`);
    }
    await pods.stop();
  } finally {
    if (before === undefined) delete process.env[TRICKS_VARIABLE];
    else process.env[TRICKS_VARIABLE] = before;
    for (const problem of await lab.stop()) say(problem);
  }
  return measured;
}

/** The lab starts its processes with this one's environment. */
async function restartAgent(lab: RunningLab, on: Half): Promise<number> {
  const before = lab.pid('agent');
  process.env[TRICKS_VARIABLE] = ['none', ...TRICKS.filter((_, index) => on[index] === true)].join(',');
  if (before !== undefined) process.kill(before, 'SIGKILL');
  for (;;) {
    const pid = lab.pid('agent');
    if (pid !== undefined && pid !== before) return pid;
    await wait(20);
  }
}

async function measureHalf(lab: RunningLab, pods: BenchPods, on: Half, name: string): Promise<Values> {
  const agent = await restartAgent(lab, on);
  await pods.create(`${name}-warm`);
  await pods.delete(`${name}-warm`);
  const starts: number[] = [];
  for (let index = 0; index < STARTS; index++) {
    starts.push(await pods.create(`${name}-${index}`));
    await pods.delete(`${name}-${index}`);
  }
  const all = Array.from({ length: BURST }, (_, index) => `${name}-burst-${index}`);
  const cpu = agentCpuMs(agent);
  const began = performance.now();
  await Promise.all(all.map((pod) => pods.create(pod)));
  const burst = performance.now() - began;
  const burstCpu = agentCpuMs(agent) - cpu;
  await Promise.all(all.map((pod) => pods.delete(pod)));
  if (lab.pid('agent') !== agent) throw new Error('the agent ended while it was measured');
  return {
    'start, ms': mean(starts),
    'burst, ms': burst,
    'agent’s CPU in the burst, ms': burstCpu,
    'agent’s peak RSS, MiB': peakResidentMiB(agent),
  };
}

/** Markdown: what each trick saves of each measure, in percent of its average, with the range of 95 of 100 runs. Pure. */
export function renderTricks(pairs: readonly MeasuredPair[]): string {
  const columns = MEASURES.map((measure) => {
    const samples = pairs.map(({ on, first, second }) => ({ on, first: first[measure], second: second[measure] }));
    const average = mean(samples.flatMap(({ first, second }) => [first, second]));
    const percent = (value: number): string => ((value / average) * 100).toFixed(1);
    const cells = savings(samples, TRICKS.length).map(
      ({ saving, range }) => `${percent(saving)} (${percent(range.low)} to ${percent(range.high)})`,
    );
    return { title: `% of ${measure} (${average.toFixed(0)})`, cells };
  });
  return [
    `| ${pairs.length} pairs | ${columns.map(({ title }) => title).join(' | ')} |`,
    `|---|${columns.map(() => '---:|').join('')}`,
    ...TRICKS.map((trick, index) => `| \`${trick}\` | ${columns.map(({ cells }) => cells[index] ?? '').join(' | ')} |`),
  ].join('\n');
}
