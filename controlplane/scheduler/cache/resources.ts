// Amounts of resources that pods request and nodes offer, in a form that is quick to add and compare: cpu in millicores, all
// others in whole units (bytes, devices).

import type { Amounts } from '../requests.ts';

export class Resources {
  cpu = 0;
  memory = 0;
  ephemeralStorage = 0;
  /** Huge pages and extended resources. */
  readonly scalars = new Map<string, number>();

  static of(amounts: Amounts): Resources {
    const resources = new Resources();
    for (const [name, amount] of amounts) {
      if (name === 'cpu') resources.cpu = amount;
      else if (name === 'memory') resources.memory = amount;
      else if (name === 'ephemeral-storage') resources.ephemeralStorage = amount;
      else if (name !== 'pods') resources.scalars.set(name, amount);
    }
    return resources;
  }

  /** Adds the amounts, `sign` times. */
  add(other: Resources, sign: 1 | -1): void {
    this.cpu += sign * other.cpu;
    this.memory += sign * other.memory;
    this.ephemeralStorage += sign * other.ephemeralStorage;
    for (const [name, amount] of other.scalars) this.scalars.set(name, (this.scalars.get(name) ?? 0) + sign * amount);
  }

  amountOf(name: string): number {
    switch (name) {
      case 'cpu':
        return this.cpu;
      case 'memory':
        return this.memory;
      case 'ephemeral-storage':
        return this.ephemeralStorage;
      default:
        return this.scalars.get(name) ?? 0;
    }
  }

  clone(): Resources {
    const copy = new Resources();
    copy.add(this, 1);
    return copy;
  }
}
