// The rules of node pressure: thresholds, grace periods, conditions, and what is acted on first.

import { describe, expect, it, test } from 'vitest';
import {
  evictionGraceSeconds,
  isMet,
  isResolved,
  NO_PRESSURE_STATE,
  nextPressureState,
  type PressureState,
} from '../../../../agent/eviction/decide.ts';
import { parseThresholds, type ThresholdConfig, thresholdAmount } from '../../../../agent/eviction/thresholds.ts';
import type { Observations } from '../../../../agent/eviction/types.ts';
import { monotonicMs } from '../../../../lib/clock.ts';
import { MI } from './support.ts';

const NONE: ThresholdConfig = {
  evictionHard: {},
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: [],
};

function memory(mebibytes: number): Observations {
  return { 'memory.available': { available: mebibytes * MI, capacity: 1000 * MI } };
}

describe('thresholds', () => {
  test.each([
    ['an amount', '100Mi', 100 * MI],
    ['a share of the capacity', '10%', 100 * MI],
    ['a share with a fraction', '2.5%', 25 * MI],
    ['a decimal amount', '1M', 1_000_000],
  ])('%s is understood', (_what, text, amount) => {
    const [threshold] = parseThresholds({ ...NONE, evictionHard: { 'memory.available': text } });
    expect(threshold && thresholdAmount(threshold.value, 1000 * MI)).toBe(amount);
  });

  test.each(['0%', '100%'])('%s switches a threshold off', (text) => {
    expect(parseThresholds({ ...NONE, evictionHard: { 'nodefs.available': text } })).toEqual([]);
  });

  test.each([
    ['-1Mi', /must be positive/],
    ['0', /must be positive/],
    ['120%', /must be <= 100%/],
    ['lots', /not a quantity or percentage/],
    ['-5%', /not a quantity or percentage/],
  ])('%s is refused', (text, why) => {
    expect(() => parseThresholds({ ...NONE, evictionHard: { 'memory.available': text } })).toThrow(why);
  });

  it('a soft threshold without grace period is refused', () => {
    expect(() => parseThresholds({ ...NONE, evictionSoft: { 'memory.available': '1Gi' } })).toThrow(
      /grace period must be specified/,
    );
  });

  it('where kubepods is limited, the hard memory threshold holds inside it as well', () => {
    const config = { ...NONE, evictionHard: { 'memory.available': '100Mi' } };
    const signals = (enforceNodeAllocatable: string[]) =>
      parseThresholds({ ...config, enforceNodeAllocatable }).map(({ signal }) => signal);
    expect(signals(['pods'])).toEqual(['allocatableMemory.available', 'memory.available']);
    expect(signals([])).toEqual(['memory.available']);
  });

  it('a threshold is met below its amount, not at it, and never while nothing was measured', () => {
    const [threshold] = parseThresholds({ ...NONE, evictionHard: { 'memory.available': '100Mi' } });
    if (threshold === undefined) throw new Error('no threshold');
    expect(isMet(threshold, memory(100), false)).toBe(false);
    expect(isMet(threshold, memory(99), false)).toBe(true);
    expect(isMet(threshold, {}, false)).toBe(false);
  });

  it('resolving takes the minimum reclaim on top', () => {
    const met = parseThresholds({
      ...NONE,
      evictionHard: { 'memory.available': '100Mi' },
      evictionMinimumReclaim: { 'memory.available': '50Mi' },
    });
    expect(isResolved(met, memory(149))).toBe(false);
    expect(isResolved(met, memory(150))).toBe(true);
  });
});

describe('pressure over time', () => {
  const TRANSITION = 300_000;
  const hard = parseThresholds({ ...NONE, evictionHard: { 'memory.available': '100Mi' } });
  const soft = parseThresholds({
    ...NONE,
    evictionSoft: { 'memory.available': '200Mi' },
    evictionSoftGracePeriod: { 'memory.available': 90_000 },
  });

  function follow(
    thresholds: typeof hard,
    steps: readonly (readonly [at: number, mebibytes: number])[],
  ): PressureState {
    return steps.reduce<PressureState>(
      (state, [at, available]) => nextPressureState(thresholds, memory(available), state, monotonicMs(at), TRANSITION),
      NO_PRESSURE_STATE,
    );
  }

  it('a hard threshold is acted on at once, and the node says so', () => {
    const state = follow(hard, [[0, 50]]);
    expect(state.met).toEqual(hard);
    expect(state.conditions).toEqual(['MemoryPressure']);
  });

  it('a soft threshold makes the condition at once, but is acted on only after its grace period', () => {
    expect(follow(soft, [[0, 150]])).toMatchObject({ met: [], conditions: ['MemoryPressure'] });
    expect(
      follow(soft, [
        [0, 150],
        [80_000, 150],
      ]).met,
    ).toEqual([]);
    expect(
      follow(soft, [
        [0, 150],
        [90_000, 150],
      ]).met,
    ).toEqual(soft);
  });

  it('a soft threshold that is not met for one round starts its grace period anew', () => {
    const steps = [
      [0, 150],
      [80_000, 250],
      [90_000, 150],
      [170_000, 150],
    ] as const;
    expect(follow(soft, steps).met).toEqual([]);
    expect(follow(soft, [...steps, [180_000, 150]]).met).toEqual(soft);
  });

  it('a condition stays for the transition period after it was last observed', () => {
    expect(
      follow(hard, [
        [0, 50],
        [299_999, 500],
      ]).conditions,
    ).toEqual(['MemoryPressure']);
    expect(
      follow(hard, [
        [0, 50],
        [300_000, 500],
      ]).conditions,
    ).toEqual([]);
    expect(
      follow(hard, [
        [0, 50],
        [200_000, 50],
        [400_000, 500],
      ]).conditions,
    ).toEqual(['MemoryPressure']);
  });

  it('a condition that stays on does not go on evicting', () => {
    expect(
      follow(hard, [
        [0, 50],
        [10_000, 500],
      ]).met,
    ).toEqual([]);
  });

  it('a threshold that was acted on stays met until the minimum reclaim is free', () => {
    const thresholds = parseThresholds({
      ...NONE,
      evictionHard: { 'memory.available': '100Mi' },
      evictionMinimumReclaim: { 'memory.available': '50Mi' },
    });
    expect(follow(thresholds, [[0, 120]]).met).toEqual([]);
    expect(
      follow(thresholds, [
        [0, 50],
        [10_000, 120],
      ]).met,
    ).toEqual(thresholds);
    expect(
      follow(thresholds, [
        [0, 50],
        [10_000, 120],
        [20_000, 150],
      ]).met,
    ).toEqual([]);
  });

  it('memory is acted on before disk', () => {
    const thresholds = parseThresholds({
      ...NONE,
      evictionHard: { 'nodefs.available': '10%', 'memory.available': '100Mi', 'pid.available': '100' },
    });
    const low = { available: 1, capacity: 1000 * MI };
    const observations = { 'nodefs.available': low, 'memory.available': low, 'pid.available': low };
    const state = nextPressureState(thresholds, observations, NO_PRESSURE_STATE, monotonicMs(0), TRANSITION);
    expect(state.met.map(({ signal }) => signal)).toEqual(['memory.available', 'nodefs.available', 'pid.available']);
    expect([...state.conditions].sort()).toEqual(['DiskPressure', 'MemoryPressure', 'PIDPressure']);
  });
});

describe('the time that an evicted pod gets', () => {
  test.each([
    ['a hard eviction gives one second', 0, 60, 30, 1],
    ['a soft one gives the configured maximum', 90_000, 60, 120, 60],
    ['a soft one gives no more than the pod asked for', 90_000, 60, 30, 30],
    ['a soft one with no maximum configured gives none', 90_000, 0, 30, 0],
  ])('%s', (_rule, gracePeriodMs, maximum, own, expected) => {
    expect(evictionGraceSeconds({ gracePeriodMs }, maximum, own)).toBe(expected);
  });
});
