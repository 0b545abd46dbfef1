import { describe, expect, test } from 'vitest';
import { anotherRound, turnsOf } from '../../bench/turns.ts';

describe('the order of the sides', () => {
  const rounds = Array.from({ length: 12 }, (_, round) => turnsOf(['a', 'b', 'c'], round).join(''));

  test('has each of them in every round, and first as often as any other', () => {
    for (const round of rounds) expect([...round].sort().join('')).toBe('abc');
    const first = rounds.map((round) => round[0]);
    expect(['a', 'b', 'c'].map((side) => first.filter((found) => found === side).length)).toEqual([4, 4, 4]);
  });

  test('has none behind the same other always', () => {
    expect(rounds.some((round) => round.includes('ab'))).toBe(true);
    expect(rounds.some((round) => round.includes('ba'))).toBe(true);
  });

  test('of two sides alternates', () => {
    expect([0, 1, 2, 3].map((round) => turnsOf(['x', 'y'], round).join(''))).toEqual(['xy', 'yx', 'yx', 'xy']);
  });
});

describe('another round', () => {
  const limits = { least: 3, most: 5, until: 1000 };
  test.each([
    ['the one that warms up', 0, 2000, true],
    ['the last of the least, however late', 3, 2000, true],
    ['one more when time is over', 4, 1000, false],
    ['one more while there is time', 4, 999, true],
    ['the last of the most', 5, 0, true],
    ['one beyond the most', 6, 0, false],
  ])('%s', (_, round, now, expected) => expect(anotherRound(round, limits, now)).toBe(expected));
});
