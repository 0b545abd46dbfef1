// A histogram for what happens many times in each request: a place for each set of labels is found once, and what is observed there
// costs an addition. prom-client's own looks its labels up each time.

import { Histogram, type HistogramConfiguration } from 'prom-client';

export interface CountedPlace {
  observe(value: number): void;
}

class Counts implements CountedPlace {
  readonly #bounds: readonly number[];
  /** For each bound, and what is above all of them. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
  }
}

export class CountedHistogram<L extends string> extends Histogram<L> {
  readonly #bounds: readonly number[];
  readonly #places = new Map<string, { readonly labels: Readonly<Record<L, string>>; readonly counts: Counts }>();

  /** What the library shows of one without figures. */
  readonly #empty: Histogram<L>;

  constructor(configuration: HistogramConfiguration<L> & { readonly buckets: number[] }) {
    super(configuration);
    this.#bounds = configuration.buckets;
    this.#empty = new Histogram({ ...configuration, registers: [] });
  }

  /** The place of these labels; to be kept by those who observe much. */
  place(labels: Readonly<Record<L, string>>): CountedPlace {
    const key = JSON.stringify(labels);
    let known = this.#places.get(key);
    if (known === undefined) {
      known = { labels, counts: new Counts(this.#bounds) };
      this.#places.set(key, known);
    }
    return known.counts;
  }

  override async get() {
    const base = await this.#empty.get();
    const name = base.name;
    const values = [...this.#places.values()].flatMap(({ labels, counts }) => {
      let total = 0;
      const buckets = [...this.#bounds, '+Inf'].map((le, index) => {
        total += counts.counts[index] ?? 0;
        return { labels: { le, ...labels }, value: total, metricName: `${name}_bucket` };
      });
      return [
        ...buckets,
        { labels, value: counts.sum, metricName: `${name}_sum` },
        { labels, value: total, metricName: `${name}_count` },
      ];
    });
    return { ...base, values };
  }

  /** By this name the library's page asks. */
  getForPromString() {
    return this.get();
  }
}
