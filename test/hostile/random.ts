// Numbers that look random and come again with the same seed, for campaigns.

export interface Random {
  /** At least 0 and below 1. */
  next(): number;
  /** A whole number, at least 0 and below `limit`. */
  below(limit: number): number;
  /** One of `values`, which is not empty. */
  pick<T>(values: readonly [T, ...T[]]): T;
}

/** mulberry32: 32 bits of state, enough to choose among bad inputs. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { next, below, pick: (values) => values[below(values.length)] ?? values[0] };
}
