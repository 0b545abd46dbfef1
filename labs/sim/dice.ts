// Chance from a seed: the same seed gives the same throws, whatever machine it runs on.

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, 1. mulberry32: small, and good enough to choose events. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    const state = this.#state;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly [T, ...T[]]): T;
  pick<T>(items: readonly T[]): T | undefined;
  pick<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)];
  }

  /** One of the keys, by their weights. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const entries = Object.entries<number>(weights) as [T, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    let chosen: T | undefined;
    for (const [key, weight] of entries) {
      if (weight <= 0) continue;
      chosen = key;
      left -= weight;
      if (left < 0) break;
    }
    if (chosen === undefined) throw new RangeError('no weight is above zero');
    return chosen;
  }

  /** Chance of its own for one part, so that a throw more in one part changes nothing in another. */
  fork(): Dice {
    return new Dice(Math.floor(this.next() * 4294967296));
  }
}
