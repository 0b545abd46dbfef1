// Seats: shares, lending and borrowing, and when to come again.

import { describe, expect, it } from 'vitest';
import {
  type AllocationClass,
  adjust,
  allocate,
  type LevelDemand,
  type LevelSpec,
  limitsOf,
  NO_DEMAND,
  nextDemand,
} from '../../../../apiserver/flowcontrol/concurrency.ts';
import { DemandIntegral } from '../../../../apiserver/flowcontrol/demand.ts';
import { RetryAfter } from '../../../../apiserver/flowcontrol/retry-after.ts';
import { PRIORITY_LEVELS } from '../../../../apiserver/kinds/flowcontrol/default-objects.ts';
import { monotonicMs } from '../../../../lib/clock.ts';

const DEFAULTS = new Map<string, LevelSpec>(
  Object.entries({ ...PRIORITY_LEVELS.mandatory, ...PRIORITY_LEVELS.suggested }),
);

describe('the seats of the default levels', () => {
  it.each<[string, number, number, number]>([
    ['exempt', 0, 0, 600],
    ['catch-all', 13, 13, 613],
    ['system', 74, 50, 674],
    ['node-high', 98, 73, 698],
    ['leader-election', 25, 25, 625],
    ['workload-high', 98, 49, 698],
    ['workload-low', 245, 24, 845],
    ['global-default', 49, 24, 649],
  ])('%s', (name, nominal, lower, upper) => {
    expect(limitsOf(DEFAULTS, 600).get(name)).toEqual({ nominal, lower, upper });
  });

  it('with a limit of what may be borrowed', () => {
    const limited = { nominalConcurrencyShares: 10, lendablePercent: 50, borrowingLimitPercent: 20 };
    expect(limitsOf(new Map([['one', { type: 'Limited', limited }]]), 100).get('one')).toEqual({
      nominal: 100,
      lower: 50,
      upper: 120,
    });
  });
});

// Cases of upstream's conc_alloc_test.go.
describe('what each class gets', () => {
  const one = (lower: number, target: number, upper: number): AllocationClass => ({ lower, target, upper });
  it.each<[number, AllocationClass[], number[], number]>([
    [0, [one(0, 0, 0)], [0], 0],
    [1, [one(0, 0, 1)], [1], 1000],
    [100, [one(10, 10, 200), one(10, 10, 200)], [50, 50], 5],
    [100, [one(0, 10, 200), one(0, 30, 200)], [25, 75], 2.5],
    [100, [one(0, 10, 20), one(0, 10, 200)], [20, 80], 8],
    [100, [one(60, 60, 200), one(10, 80, 200)], [60, 40], 0.5],
    [100, [one(50, 50, 50), one(50, 50, 50)], [50, 50], 1],
  ])('%d seats for %j', (total, classes, expected, fraction) => {
    const allocation = allocate(total, classes);
    expect(allocation.seats.map((seats) => Math.round(seats * 1e6) / 1e6)).toEqual(expected);
    expect(allocation.fraction).toBeCloseTo(fraction, 6);
  });
});

describe('lending and borrowing', () => {
  const limits = (nominal: number, lower: number, upper: number) => ({ nominal, lower, upper });
  const demand = (highWatermark: number, smoothed = highWatermark) => ({ ...NO_DEMAND, highWatermark, smoothed });
  const level = (own: LevelDemand['limits'], highWatermark: number): LevelDemand => {
    return { exempt: false, limits: own, demand: demand(highWatermark) };
  };
  const exempt = (highWatermark: number): LevelDemand => {
    return { exempt: true, limits: limits(0, 0, 100), demand: demand(highWatermark) };
  };

  it.each<[string, LevelDemand[], number[]]>([
    [
      'a busy level borrows what an idle one lends',
      [level(limits(50, 10, 150), 0), level(limits(50, 50, 150), 90)],
      [10, 90],
    ],
    ['not more than it may borrow', [level(limits(50, 10, 150), 0), level(limits(50, 50, 60), 90)], [40, 60]],
    [
      'a level gets back at once what it needs of its own',
      [level(limits(50, 10, 150), 40), level(limits(50, 50, 150), 500)],
      [40, 60],
    ],
    ['both busy: each its own', [level(limits(50, 10, 150), 500), level(limits(50, 10, 150), 500)], [50, 50]],
    [
      'exempt requests take from what is lent',
      [exempt(60), level(limits(50, 10, 150), 50), level(limits(50, 10, 150), 50)],
      [60, 20, 20],
    ],
    [
      'never from what may not be lent',
      [exempt(95), level(limits(50, 10, 150), 50), level(limits(50, 10, 150), 50)],
      [95, 10, 10],
    ],
  ])('%s', (_name, levels, expected) => {
    const { current } = adjust(new Map(levels.map((one, index) => [String(index), one])));
    expect([...current].sort().map(([, seats]) => seats)).toEqual(expected);
  });

  it('demand rises at once and falls slowly', () => {
    const high = nextDemand(NO_DEMAND, { max: 100, average: 80, deviation: 10 });
    expect(high).toEqual({ highWatermark: 100, average: 80, deviation: 10, smoothed: 90 });
    expect(nextDemand(high, { max: 0, average: 0, deviation: 0 }).smoothed).toBeCloseTo(87.93, 2);
  });

  it('is observed over time', () => {
    const integral = new DemandIntegral(monotonicMs(0));
    integral.set(10, monotonicMs(500));
    expect(integral.reset(monotonicMs(1000))).toEqual({ max: 10, average: 5, deviation: 5 });
    expect(integral.reset(monotonicMs(2000))).toEqual({ max: 10, average: 10, deviation: 0 });
  });
});

describe('Retry-After', () => {
  it('doubles while many are refused, up to 32, and goes back one by one', () => {
    const after = new RetryAfter();
    const seconds: number[] = [];
    let second = 100;
    for (; second < 170; second++) {
      for (let i = 0; i < 200; i++) after.refused(second);
      seconds.push(after.seconds);
    }
    expect([...new Set(seconds)]).toEqual([1, 2, 4, 8, 16, 32]);
    for (; second < 1300; second += 100) after.refused(second);
    expect(after.seconds).toBe(21);
  });
  it('stays 1 for a few', () => {
    const after = new RetryAfter();
    for (let second = 0; second < 50; second++) for (let i = 0; i < 2; i++) after.refused(second);
    expect(after.seconds).toBe(1);
  });
});
