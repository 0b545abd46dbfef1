// The benchmark's figures as tables for people and as JSON for programs, and which goals they reach. Pure.

import { medianRange, pairedRatio, percentile, type Range, summarize } from './stats.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly containerd: string;
  readonly node: string;
  /** Under the labs: "ext4 with a journal". */
  readonly disk: string;
  /** Load averages of one minute before the first and after the last measurement: above 0.5 other programs took part. */
  readonly load: readonly [number, number];
}

/** Times, ms. */
export interface Row {
  readonly name: string;
  readonly samples: readonly number[];
  /** The floor's, taken in turns with them. */
  readonly floor?: readonly number[];
  /** How many times the floor's they are to be at most. */
  readonly ratioLimit?: number;
  /** What the median is to be at most, ms. */
  readonly limitMs?: number;
  /** What the longest is to be at most, ms. */
  readonly maxLimitMs?: number;
}

/** Anything but times. */
export interface Amount {
  readonly name: string;
  readonly unit: 'ms' | 'MiB' | '% of a core' | '% of the CPU' | 'containers' | '×';
  readonly samples: readonly number[];
  /** The largest of the samples counts; else the median. */
  readonly peak?: boolean;
  /** To reach, at most. */
  readonly limit?: number;
}

export interface Figures {
  readonly machine: Machine;
  readonly rows: readonly Row[];
  readonly amounts: readonly Amount[];
  /** What was not measured, and why. */
  readonly notes?: readonly string[];
}

export interface Goal {
  readonly name: string;
  readonly value: number;
  /** 95 of 100 runs like this one give a value in this range; of a peak, all that were measured. */
  readonly range: Range;
  readonly limit: number;
  readonly unit: string;
  /** Only when the whole range is. */
  readonly reached: boolean;
}

const median = (samples: readonly number[]): number => percentile(samples, 0.5);

function measured({ samples, peak }: Pick<Amount, 'samples' | 'peak'>): { value: number; range: Range } {
  if (peak !== true) return { value: median(samples), range: medianRange(samples) };
  return { value: Math.max(...samples), range: { low: Math.min(...samples), high: Math.max(...samples) } };
}

/** What nodelet wants to reach, and whether this run did. */
export function goals({ rows, amounts }: Pick<Figures, 'rows' | 'amounts'>): readonly Goal[] {
  const found: Goal[] = [];
  const add = (name: string, unit: string, limit: number | undefined, at: { value: number; range: Range }): void => {
    if (limit !== undefined) found.push({ name, unit, limit, ...at, reached: at.range.high <= limit });
  };
  for (const { name, samples, floor, ratioLimit, limitMs, maxLimitMs } of rows) {
    if (floor !== undefined) add(`${name}, of the floor`, '×', ratioLimit, pairedRatio(samples, floor));
    add(`${name}, p50`, 'ms', limitMs, measured({ samples }));
    add(`${name}, max`, 'ms', maxLimitMs, measured({ samples, peak: true }));
  }
  for (const amount of amounts) add(amount.name, amount.unit, amount.limit, measured(amount));
  return found;
}

/** The samples of several runs on one machine as if they were of one; of equal names, the later run says the limits. */
export function pooled(runs: readonly Figures[]): Figures {
  const [first] = runs;
  const last = runs.at(-1);
  if (first === undefined || last === undefined) throw new RangeError('no runs');
  const rows = new Map<string, Row>();
  const amounts = new Map<string, Amount>();
  for (const run of runs) {
    for (const row of run.rows) {
      const { samples = [], floor = [] } = rows.get(row.name) ?? {};
      const both = row.floor === undefined ? {} : { floor: [...floor, ...row.floor] };
      rows.set(row.name, { ...row, samples: [...samples, ...row.samples], ...both });
    }
    for (const amount of run.amounts) {
      const earlier = amounts.get(amount.name)?.samples ?? [];
      amounts.set(amount.name, { ...amount, samples: [...earlier, ...amount.samples] });
    }
  }
  const load = [first.machine.load[0], last.machine.load[1]] as const;
  return {
    machine: { ...last.machine, load },
    rows: [...rows.values()],
    amounts: [...amounts.values()],
    ...(last.notes === undefined ? {} : { notes: last.notes }),
  };
}

/** Markdown, ready for docs/performance.md. */
export function renderReport(figures: Figures): string {
  const { machine, rows, amounts } = figures;
  const range = ({ low, high }: Range, digits: number): string => `${low.toFixed(digits)} to ${high.toFixed(digits)}`;
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB; Linux ${machine.kernel}; containerd ${machine.containerd}; Node ${machine.node}; ${machine.disk}; load average before and after: ${machine.load.map((load) => load.toFixed(1)).join(' and ')}`,
    '',
    '| ms | runs | p50 | p95 | max | of the floor | 95 % of runs |',
    '|---|---:|---:|---:|---:|---:|---:|',
    ...rows.map(({ name, samples, floor }) => {
      const { p50, p95, max, runs } = summarize(samples);
      const times = [p50, p95, max].map((value) => value.toFixed(1)).join(' | ');
      const of = floor === undefined ? undefined : pairedRatio(samples, floor);
      const ratio =
        of === undefined
          ? ` | ${range(medianRange(samples), 1)} ms`
          : `${of.value.toFixed(2)} × | ${range(of.range, 2)} ×`;
      return `| ${name} | ${runs} | ${times} | ${ratio} |`;
    }),
    '',
    '| | value | of |',
    '|---|---:|---:|',
    ...amounts.map((amount) => {
      const at = measured(amount);
      return `| ${amount.name} | ${at.value.toFixed(1)} ${amount.unit} | ${range(at.range, 1)} |`;
    }),
    '',
    ...goals(figures).map(
      ({ reached, name, value, unit, range: of, limit }) =>
        `- ${reached ? 'reached' : 'NOT reached'}: ${name} ${value.toFixed(2)} ${unit}, ${range(of, 2)} (to reach with all of it: ≤ ${Number(limit.toFixed(2))} ${unit})`,
    ),
    ...(figures.notes ?? []).map((note) => `- ${note}`),
  ].join('\n');
}
