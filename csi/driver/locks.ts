// One call at a time per volume or snapshot: a second one is answered ABORTED at once, as the specification allows, and
// never waits.

import { DriverError } from './errors.ts';

export class Locks {
  readonly #locked = new Map<string, string>();

  /** Runs `body` while nothing else holds any of `keys`. */
  async hold<T>(call: string, keys: readonly string[], body: () => Promise<T>): Promise<T> {
    const wanted = [...new Set(keys)];
    for (const key of wanted) {
      const other = this.#locked.get(key);
      if (other !== undefined) {
        throw new DriverError('ABORTED', `an operation is pending for ${key}: ${other} has not ended`);
      }
    }
    for (const key of wanted) this.#locked.set(key, call);
    try {
      return await body();
    } finally {
      for (const key of wanted) this.#locked.delete(key);
    }
  }
}
