// Counters, histograms and Prometheus' text format 0.0.4. Small on purpose: prom-client cannot write samples with a time
// of their own, nor samples that others have counted (cgroups), and costs some milliseconds when it is loaded. Pure.

import type { EpochMs } from './clock.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram';
export type Labels = Readonly<Record<string, string>>;

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

function labelValue(text: string): string {
  if (!/[\\"\n]/.test(text)) return text;
  return text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}

/** `a="x",b="y"`: what is between the braces. */
export function labelText(labels: Labels): string {
  let text = '';
  for (const [name, value] of Object.entries(labels)) text += `${text === '' ? '' : ','}${name}="${labelValue(value)}"`;
  return text;
}

export function valueText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

/** A page of metrics under construction. A family with no sample is not on it. */
export class MetricsText {
  #text = '';
  #name = '';
  #head = '';

  /** Begins a family; `help` is one line without backslashes. */
  family(name: string, type: MetricType, help: string): void {
    this.#name = name;
    this.#head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  }

  /** `labels` as labelText writes them; `at`: when the value was read. */
  sample(value: number, labels = '', at?: EpochMs, suffix = ''): void {
    const time = at === undefined ? '' : ` ${Math.trunc(at)}`;
    const braces = labels === '' ? '' : `{${labels}}`;
    this.#text += `${this.#head}${this.#name}${suffix}${braces} ${valueText(value)}${time}\n`;
    this.#head = '';
  }

  toString(): string {
    return this.#text;
  }
}

/** A family that its owner counts and that shows itself on a page. */
export interface Metric {
  show(page: MetricsText): void;
}

/** What every counter and histogram has: its series by the text of their labels. */
abstract class Family<T> implements Metric {
  readonly name: string;
  readonly help: string;
  protected readonly series = new Map<string, T>();

  constructor(name: string, help: string) {
    this.name = name;
    this.help = help;
  }

  /** Removes the series whose labels contain this one, as labelText writes it. */
  removeWhere(label: string): void {
    for (const labels of this.series.keys()) if (labels.includes(label)) this.series.delete(labels);
  }

  abstract show(page: MetricsText): void;
}

export class Counter extends Family<number> {
  inc(labels: Labels = {}, by = 1): void {
    const key = labelText(labels);
    this.series.set(key, (this.series.get(key) ?? 0) + by);
  }

  show(page: MetricsText): void {
    page.family(this.name, 'counter', this.help);
    for (const [labels, value] of this.series) page.sample(value, labels);
  }
}

interface Distribution {
  /** Of each bucket alone; the last one is above every limit. */
  readonly counts: number[];
  sum: number;
}

export class Histogram extends Family<Distribution> {
  readonly #limits: readonly number[];

  /** `limits`: the upper ends of the buckets, ascending, without the infinite one. */
  constructor(name: string, help: string, limits: readonly number[]) {
    super(name, help);
    this.#limits = limits;
  }

  observe(value: number, labels: Labels = {}): void {
    const key = labelText(labels);
    let seen = this.series.get(key);
    if (seen === undefined) {
      seen = { counts: new Array<number>(this.#limits.length + 1).fill(0), sum: 0 };
      this.series.set(key, seen);
    }
    let bucket = this.#limits.findIndex((limit) => value <= limit);
    if (bucket < 0) bucket = this.#limits.length;
    seen.counts[bucket] = (seen.counts[bucket] ?? 0) + 1;
    seen.sum += value;
  }

  show(page: MetricsText): void {
    page.family(this.name, 'histogram', this.help);
    for (const [labels, { counts, sum }] of this.series) {
      const before = labels === '' ? '' : `${labels},`;
      let total = 0;
      for (const [index, count] of counts.entries()) {
        total += count;
        const limit = this.#limits[index] ?? Number.POSITIVE_INFINITY;
        page.sample(total, `${before}le="${valueText(limit)}"`, undefined, '_bucket');
      }
      page.sample(sum, labels, undefined, '_sum');
      page.sample(total, labels, undefined, '_count');
    }
  }
}

/** `count` limits from `start`, each `factor` times the one before. */
export function exponentialBuckets(start: number, factor: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start * factor ** index);
}

/** Prometheus' default buckets, in seconds. */
export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
