import { describe, expect, it } from 'vitest';
import { pauseMs } from '../../support/pause.ts';

describe('the pause between two looks', () => {
  it.each([
    ['is the shortest one at first', { leastMs: 20, tookMs: 3, waitedMs: 3 }, 20],
    ['is a fifth of the time so far', { leastMs: 20, tookMs: 3, waitedMs: 500 }, 100],
    ['is twice what the look took', { leastMs: 20, tookMs: 150, waitedMs: 500 }, 300],
    ['is half a second at most for time alone', { leastMs: 20, tookMs: 3, waitedMs: 20_000 }, 500],
    ['is a second at most', { leastMs: 20, tookMs: 900, waitedMs: 20_000 }, 1_000],
  ])('%s', (_, looks, expected) => {
    expect(pauseMs(looks)).toBe(expected);
  });
});
