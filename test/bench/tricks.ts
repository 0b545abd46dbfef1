// `npm run bench -- --tricks`: what each trick of lib/tricks.ts saves. The agent of a lab is restarted again and again, with
// a random half of the tricks on and then with the other half; test/bench/effects.ts makes savings of it. --root says where
// the lab is, for another disk. Prints a table for docs/performance.md.

import { readdirSync, readFileSync } from 'node:fs';
import { type RunningLab, startLab } from '../../cli/lab/lab.ts';
import { resourcePath } from '../../client/paths.ts';
import { execOk } from '../../lib/exec.ts';
import { TRICKS } from '../../lib/tricks.ts';
import { type Half, type PairSample, randomHalves, savings } from './effects.ts';
import { BenchPods, type PodTemplate } from './pods.ts';
import { peakResidentMiB } from './processes.ts';

export const MEASURES = ['start ms', 'claim start ms', 'burst ms', 'burst CPU ms', 'peak RSS MiB'] as const;
export type Measure = (typeof MEASURES)[number];
export type Values = Readonly<Record<Measure, number>>;

export interface TricksOptions {
  readonly root: string;
  readonly pairs: number;
  readonly seed: number;
  readonly burst: number;
  readonly starts: number;
  readonly template: PodTemplate;
  readonly say: (line: string) => void;
}

const NAMESPACE = 'tricks';
const CLAIM = 'data';

export interface RawPair {
  readonly on: Half;
  readonly first: Values;
  readonly second: Values;
}

/** Value of NODELET_TRICKS for the tricks that are on. */
const spec = (on: Half): string => ['none', ...TRICKS.filter((_, index) => on[index] === true)].join(',');

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

export async function measureTricks(options: TricksOptions): Promise<readonly RawPair[]> {
  const { say } = options;
  const lab = await startLab({
    root: options.root,
    images: 'build',
    csi: true,
    restart: { initialMs: 10, maxMs: 10, factor: 1, resetMs: 10 },
    say,
  });
  const pairs: RawPair[] = [];
  try {
    await lab.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    await lab.client.create(resourcePath('v1', 'persistentvolumeclaims', { namespace: NAMESPACE }), {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: CLAIM },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } } },
    });
    const pods = new BenchPods(lab.client, NAMESPACE, options.template);
    await pods.start();
    await new Promise((resolve) => setTimeout(resolve, 2000));
    for (const [index, on] of randomHalves(TRICKS.length, options.pairs, options.seed).entries()) {
      const first = await half(lab, pods, on, options, `${index}-a`);
      const second = await half(
        lab,
        pods,
        on.map((is) => !is),
        options,
        `${index}-b`,
      );
      pairs.push({ on, first, second });
      say(`pair ${index + 1}/${options.pairs}: ${JSON.stringify(first)} ${JSON.stringify(second)}`);
    }
    await pods.stop();
  } finally {
    process.env['NODELET_TRICKS'] = '';
    for (const problem of await lab.stop()) say(problem);
  }
  return pairs;
}

async function half(lab: RunningLab, pods: BenchPods, on: Half, options: TricksOptions, name: string): Promise<Values> {
  const before = lab.pid('agent');
  process.env['NODELET_TRICKS'] = spec(on);
  await execOk('chattr', ['-T', `${lab.paths.kubeletDir}/pods`]);
  if (before !== undefined) process.kill(before, 'SIGKILL');
  let pid = before;
  while (pid === before || pid === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    pid = lab.pid('agent');
  }
  const claim = [{ name: 'claim', persistentVolumeClaim: { claimName: CLAIM } }];
  await pods.create(`${name}-warm`, claim);
  await pods.delete(`${name}-warm`);
  const starts: number[] = [];
  for (let index = 0; index < options.starts; index++) {
    starts.push(await pods.create(`${name}-${index}`));
    await pods.delete(`${name}-${index}`);
  }
  const claimed = await pods.create(`${name}-claim`, claim);
  await pods.delete(`${name}-claim`);
  const all = Array.from({ length: options.burst }, (_, index) => `${name}-burst-${index}`);
  const cpu = treeCpuMs(pid);
  const began = performance.now();
  await Promise.all(all.map((pod) => pods.create(pod)));
  const burst = performance.now() - began;
  const burstCpu = treeCpuMs(pid) - cpu;
  await Promise.all(all.map((pod) => pods.delete(pod)));
  if (lab.pid('agent') !== pid) throw new Error('the agent ended by itself');
  return {
    'start ms': mean(starts),
    'claim start ms': claimed,
    'burst ms': burst,
    'burst CPU ms': burstCpu,
    'peak RSS MiB': peakResidentMiB(pid),
  };
}

/** CPU of the agent, of the helper that runs its programs, and of what both have run, ms. */
function treeCpuMs(agent: number): number {
  let sum = 0;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    let stat: string;
    try {
      stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
    } catch {
      continue;
    }
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(entry) !== agent && Number(fields[1]) !== agent) continue;
    for (const index of [11, 12, 13, 14]) sum += Number(fields[index]) * 10;
  }
  return sum;
}

export function renderTricks(pairs: readonly RawPair[]): string {
  const lines: string[] = [];
  for (const measure of MEASURES) {
    const samples: PairSample[] = pairs.map(({ on, first, second }) => ({
      on,
      first: first[measure],
      second: second[measure],
    }));
    const average = mean(samples.flatMap(({ first, second }) => [first, second]));
    lines.push(`${measure}, ${average.toFixed(1)} on average`);
    const found = savings(samples, TRICKS.length);
    for (const [index, trick] of TRICKS.entries()) {
      const { saving = NaN, range } = found[index] ?? {};
      const percent = (value: number | undefined): string => (((value ?? NaN) / average) * 100).toFixed(1);
      lines.push(
        `  ${trick}: ${saving.toFixed(1)} = ${percent(saving)} % (${percent(range?.low)} to ${percent(range?.high)})`,
      );
    }
  }
  return lines.join('\n');
}
