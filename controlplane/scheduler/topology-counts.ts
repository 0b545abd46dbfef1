// Numbers by topology domain: (topology key, value of that label) → number. Pure, but for its own state.

import { getOwn } from '../../lib/own-property.ts';

type Labels = Readonly<Record<string, string>>;

export class TopologyCounts {
  readonly #keys = new Map<string, Map<string, number>>();

  /** Whether every number is 0, or there is none. */
  get empty(): boolean {
    for (const values of this.#keys.values()) for (const count of values.values()) if (count !== 0) return false;
    return true;
  }

  /** Adds to the domain of the key that these labels are in, if any. */
  add(topologyKey: string, labels: Labels, amount: number): void {
    const value = getOwn(labels, topologyKey);
    if (value !== undefined) this.addValue(topologyKey, value, amount);
  }

  addValue(topologyKey: string, value: string, amount: number): void {
    if (amount === 0) return;
    let values = this.#keys.get(topologyKey);
    if (values === undefined) {
      values = new Map();
      this.#keys.set(topologyKey, values);
    }
    values.set(value, (values.get(value) ?? 0) + amount);
  }

  /** undefined for labels that are in no domain of the key. */
  at(topologyKey: string, labels: Labels): number | undefined {
    const value = getOwn(labels, topologyKey);
    return value === undefined ? undefined : (this.#keys.get(topologyKey)?.get(value) ?? 0);
  }

  /** The sum over all keys. */
  sum(labels: Labels): number {
    let sum = 0;
    for (const [key, values] of this.#keys) {
      const value = getOwn(labels, key);
      if (value !== undefined) sum += values.get(value) ?? 0;
    }
    return sum;
  }

  /** Whether any domain that the labels are in has more than 0. */
  anyAt(labels: Labels): boolean {
    for (const [key, values] of this.#keys) {
      const value = getOwn(labels, key);
      if (value !== undefined && (values.get(value) ?? 0) > 0) return true;
    }
    return false;
  }

  clone(): TopologyCounts {
    const copy = new TopologyCounts();
    for (const [key, values] of this.#keys) copy.#keys.set(key, new Map(values));
    return copy;
  }
}
