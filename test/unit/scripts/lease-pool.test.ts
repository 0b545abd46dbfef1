import { beforeEach, describe, expect, it } from 'vitest';
import { LeasePool } from '../../support/lease-pool.ts';

describe('a pool of things that are lent', () => {
  let started = 0;
  let stopped: number[] = [];
  let pool: LeasePool<number>;
  beforeEach(() => {
    started = 0;
    stopped = [];
    pool = new LeasePool(
      async () => ++started,
      async (thing) => {
        stopped.push(thing);
        if (thing === 2) throw new Error('2 left something behind');
      },
    );
  });

  it('starts one only when none is free', async () => {
    const one = await pool.take();
    pool.give(one, true);
    expect(await pool.take()).toBe(1);
    expect(await pool.take()).toBe(2);
    expect(started).toBe(2);
  });

  it('stops what comes back unclean, and does not lend it again', async () => {
    pool.give(await pool.take(), false);
    expect(stopped).toEqual([1]);
    expect(await pool.take()).toBe(2);
  });

  it('takes a thing back once', async () => {
    const one = await pool.take();
    pool.give(one, true);
    pool.give(one, false);
    expect([await pool.take(), stopped]).toEqual([1, []]);
  });

  it('stops all at its end, lent or not, and reports what went wrong', async () => {
    const [one] = [await pool.take(), await pool.take(), await pool.take()];
    pool.give(one, true);
    expect(await pool.close()).toEqual([new Error('2 left something behind')]);
    expect(stopped.toSorted()).toEqual([1, 2, 3]);
  });
});
