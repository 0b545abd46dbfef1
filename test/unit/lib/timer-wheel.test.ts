import { describe, expect, test } from 'vitest';
import { TimerWheel } from '../../../lib/timer-wheel.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** A small generator of its own, so that a failure can be played again. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('TimerWheel', () => {
  test('a timer fires no sooner than asked and at most a tick later', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 10);
    const start = clock.monotonic();
    const fired: number[] = [];
    for (const ms of [0, 1, 9, 10, 11, 639, 640, 641, 5_000, 40_960, 3_600_000]) {
      wheel.after(ms, () => fired.push(clock.monotonic() - start - ms));
    }
    await clock.advance(4_000_000);
    expect(fired).toHaveLength(11);
    for (const late of fired) {
      expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThanOrEqual(10);
    }
  });

  test('however many timers wait, one timer of the clock is pending', () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock);
    for (let n = 0; n < 5_000; n++) wheel.after((n * 7919) % 60_000, () => undefined);
    expect(wheel.size).toBe(5_000);
    expect(clock.timers).toBe(1);
  });

  test('cancelling the last timer leaves nothing pending', () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock);
    const timers = [5, 500, 50_000].map((ms) => wheel.after(ms, () => undefined));
    for (const timer of timers) timer.cancel();
    for (const timer of timers) timer.cancel();
    expect(wheel.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test('a timer that is cancelled by another of the same tick does not fire', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock);
    let fired = 0;
    const first = wheel.after(100, () => {
      fired++;
      second.cancel();
    });
    const second = wheel.after(100, () => {
      fired++;
    });
    await clock.advance(1_000);
    first.cancel();
    expect(fired).toBe(1);
    expect(wheel.size).toBe(0);
  });

  test('a timer set while another fires waits its own time', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 10);
    const start = clock.monotonic();
    const at: number[] = [];
    const again = (): void => {
      at.push(clock.monotonic() - start);
      if (at.length < 4) wheel.after(1_000, again);
    };
    wheel.after(1_000, again);
    await clock.advance(10_000);
    expect(at).toEqual([1_000, 2_000, 3_000, 4_000]);
  });

  test('what one timer throws reaches the clock and does not keep the others from firing', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock);
    let fired = 0;
    wheel.after(50, () => {
      throw new Error('broken');
    });
    wheel.after(50, () => {
      fired++;
    });
    await expect(clock.advance(100)).rejects.toThrow('broken');
    await clock.advance(100);
    expect(fired).toBe(1);
  });

  test.each([1, 2, 3, 4, 5])('random timers, cancels and pauses fire like plain timers (seed %i)', async (seed) => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 1);
    const random = randomFrom(seed);
    const expected = new Map<number, number>();
    const fired = new Map<number, number>();
    const timers: { id: number; cancel: () => void }[] = [];
    for (let id = 0; id < 2_000; id++) {
      const ms = Math.floor(random() ** 4 * 400_000);
      expected.set(id, clock.monotonic() + ms);
      timers.push({ id, ...wheel.after(ms, () => fired.set(id, clock.monotonic())) });
      if (random() < 0.3) {
        const victim = timers[Math.floor(random() * timers.length)];
        victim?.cancel();
        if (victim !== undefined && !fired.has(victim.id)) expected.delete(victim.id);
      }
      if (random() < 0.1) await clock.advance(Math.floor(random() * 2_000));
    }
    await clock.advance(500_000);
    expect([...fired.keys()].sort((a, b) => a - b)).toEqual([...expected.keys()].sort((a, b) => a - b));
    for (const [id, at] of fired) {
      const late = at - (expected.get(id) ?? 0);
      expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThanOrEqual(1);
    }
    expect(wheel.size).toBe(0);
    expect(clock.timers).toBe(0);
  });
});
