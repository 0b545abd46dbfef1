// How many seats each priority level has: from the shares of all of them, and then from what levels lend and borrow, by
// the demand there was (KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol/conc_alloc.go). Pure.

import type { PriorityLevelConfigurationSpec } from 'kubernetes-types/flowcontrol/v1';
import type { Loose } from '../kinds/shapes.ts';

export type LevelSpec = Loose<PriorityLevelConfigurationSpec>;

/** In seats. */
export interface LevelLimits {
  readonly nominal: number;
  /** What is left when everything that may be lent is lent. */
  readonly lower: number;
  /** With everything that may be borrowed. */
  readonly upper: number;
}

function sharesOf(spec: LevelSpec): { shares: number; lendable: number; borrowing: number | undefined } {
  const { exempt, limited } = spec;
  if (spec.type === 'Exempt') {
    return {
      shares: exempt?.nominalConcurrencyShares ?? 0,
      lendable: exempt?.lendablePercent ?? 0,
      borrowing: undefined,
    };
  }
  return {
    shares: limited?.nominalConcurrencyShares ?? 30,
    lendable: limited?.lendablePercent ?? 0,
    borrowing: limited?.borrowingLimitPercent,
  };
}

/** The limits of each level of a server that executes `total` requests at a time. */
export function limitsOf(specs: ReadonlyMap<string, LevelSpec>, total: number): Map<string, LevelLimits> {
  const sum = [...specs.values()].reduce((all, spec) => all + sharesOf(spec).shares, 0);
  return new Map(
    [...specs].map(([name, spec]) => {
      const { shares, lendable, borrowing } = sharesOf(spec);
      const nominal = sum === 0 ? 0 : Math.ceil((total * shares) / sum);
      const lower = nominal - Math.round((nominal * lendable) / 100);
      const upper = nominal + (borrowing === undefined ? total : Math.round((nominal * borrowing) / 100));
      return [name, { nominal, lower, upper }];
    }),
  );
}

/** What a level needed in the last period, in seats. */
export interface Demand {
  readonly highWatermark: number;
  readonly average: number;
  readonly deviation: number;
  /** Rises at once, falls slowly. */
  readonly smoothed: number;
}

export const NO_DEMAND: Demand = { highWatermark: 0, average: 0, deviation: 0, smoothed: 0 };
/** Of periods of ten seconds. */
const SMOOTHING = 0.977;

export function nextDemand(
  previous: Demand,
  observed: { readonly max: number; readonly average: number; readonly deviation: number },
): Demand {
  const { max, average, deviation } = observed;
  const envelope = average + deviation;
  const smoothed = Math.max(envelope, SMOOTHING * previous.smoothed + (1 - SMOOTHING) * envelope);
  return { highWatermark: Math.round(max), average, deviation, smoothed };
}

export interface LevelDemand {
  readonly exempt: boolean;
  readonly limits: LevelLimits;
  readonly demand: Demand;
}

export interface Adjustment {
  /** Seats of each level from now on. */
  readonly current: ReadonlyMap<string, number>;
  readonly targets: ReadonlyMap<string, number>;
  /** Of its target each level gets this part, where no limit of its own applies. */
  readonly fairFraction: number;
}

/** Divides the seats of all levels anew. */
export function adjust(levels: ReadonlyMap<string, LevelDemand>): Adjustment {
  const current = new Map<string, number>();
  const targets = new Map<string, number>();
  const total = [...levels.values()].reduce((sum, { limits }) => sum + limits.nominal, 0);
  let remaining = total;
  const limited: { name: string; lower: number; needed: number; upper: number; target: number }[] = [];
  for (const [name, { exempt, limits, demand }] of levels) {
    const { nominal, lower, upper } = limits;
    if (exempt) {
      const seats = Math.max(lower, demand.highWatermark);
      current.set(name, seats);
      targets.set(name, seats);
      remaining -= seats;
      continue;
    }
    // A level gets back at once what it needs of its own.
    const needed = Math.max(lower, Math.min(nominal, demand.highWatermark));
    const target = Math.max(needed, demand.smoothed);
    targets.set(name, target);
    limited.push({ name, lower, needed, upper, target });
  }
  const lowerSum = limited.reduce((sum, { lower }) => sum + lower, 0);
  const neededSum = limited.reduce((sum, { needed }) => sum + needed, 0);
  if (remaining <= neededSum) {
    const part = remaining <= lowerSum ? 0 : (remaining - lowerSum) / (neededSum - lowerSum);
    for (const { name, lower, needed } of limited) current.set(name, lower + Math.round((needed - lower) * part));
    return { current, targets, fairFraction: 0 };
  }
  const classes = limited.map(({ needed, upper, target }) => ({ lower: needed, upper, target }));
  const { seats, fraction } = allocate(total, classes);
  for (const [index, { name }] of limited.entries()) current.set(name, Math.round(seats[index] ?? 0));
  return { current, targets, fairFraction: fraction };
}

export interface AllocationClass {
  readonly lower: number;
  readonly upper: number;
  /** At least `lower`. */
  readonly target: number;
}

const MIN_TARGET = 0.001;

/**
 * Seats that come to `total`, of each class its target times the same fraction, within the class's bounds. Where the bounds
 * leave no such fraction, the classes have all of their lower or upper bounds.
 */
export function allocate(total: number, classes: readonly AllocationClass[]): { seats: number[]; fraction: number } {
  const target = (one: AllocationClass): number => Math.max(one.target, MIN_TARGET);
  const seatsAt = (fraction: number): number[] =>
    classes.map((one) => Math.min(one.upper, Math.max(one.lower, target(one) * fraction)));
  const sumAt = (fraction: number): number => seatsAt(fraction).reduce((sum, seats) => sum + seats, 0);
  // Between two neighbours of these the sum is a straight line.
  const bounds = classes.flatMap((one) => [one.lower / target(one), one.upper / target(one)]).sort((a, b) => a - b);
  let low = bounds[0] ?? 0;
  if (sumAt(low) >= total) return { seats: seatsAt(low), fraction: low };
  for (const high of bounds) {
    const [below, above] = [sumAt(low), sumAt(high)];
    if (above >= total) {
      const fraction = above === below ? high : low + ((high - low) * (total - below)) / (above - below);
      return { seats: seatsAt(fraction), fraction };
    }
    low = high;
  }
  return { seats: seatsAt(low), fraction: low };
}
