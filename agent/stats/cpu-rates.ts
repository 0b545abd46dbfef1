// How many cores' worth of time each cgroup uses now: the difference of two readings, as the kubelet's usageNanoCores. The
// earlier reading is that of the request before, so nothing is read between requests.

import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';

/** Readings closer than this are one: the kernel counts in steps. ms. */
const SHORTEST_MS = 200;
/** A reading that is older says nothing about now. ms. */
const LONGEST_MS = 60_000;

interface Reading {
  /** ns. */
  readonly usage: number;
  readonly at: MonotonicMs;
  /** Between the reading before and this one, billionths of a core. */
  readonly rate: number | undefined;
}

export class CpuRates {
  readonly #readings = new Map<string, Reading>();

  /** Billionths of a core; undefined where there is no earlier reading to compare with. */
  observe(cgroup: string, usage: number, at: MonotonicMs): number | undefined {
    const before = this.#readings.get(cgroup);
    const rate = before === undefined ? undefined : rateSince(before, usage, at);
    if (before !== undefined && rate === 'too soon') return before.rate;
    const known = rate === 'too soon' ? undefined : rate;
    this.#readings.set(cgroup, { usage, at, rate: known });
    return known;
  }

  /** Forgets the cgroups that are gone. */
  keep(cgroups: ReadonlySet<string>): void {
    for (const cgroup of this.#readings.keys()) if (!cgroups.has(cgroup)) this.#readings.delete(cgroup);
  }
}

function rateSince(before: Reading, usage: number, at: MonotonicMs): number | undefined | 'too soon' {
  const ms = elapsedMs(before.at, at);
  if (ms < SHORTEST_MS) return 'too soon';
  // A counter that went back is another cgroup's of the same name.
  if (ms > LONGEST_MS || usage < before.usage) return undefined;
  return Math.round(((usage - before.usage) / ms) * 1000);
}
