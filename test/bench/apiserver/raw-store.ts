// The store itself, in this process: what it could do without any connection.

import { join } from 'node:path';
import { parseObject } from '../../../apiserver/storage/change.ts';
import { Store } from '../../../apiserver/storage/store.ts';
import { systemClock } from '../../../lib/clock.ts';

const keyOf = (name: string) => ({ resource: '/pods', namespace: 'default', name });

export class RawStore {
  readonly #store: Store;
  readonly #template: string;

  /** `template`: a pod as it is stored, JSON. */
  constructor(directory: string, template: string) {
    this.#store = new Store(join(directory, 'in-process.db'), { clock: systemClock });
    this.#template = template;
  }

  /** Reads and writes below return how long all of them took, ms. */
  create(names: readonly string[]): number {
    return timed(() => {
      for (const name of names) {
        const object = parseObject(this.#template);
        object.metadata.name = name;
        this.#store.put(keyOf(name), object);
      }
    });
  }

  get(names: readonly string[]): number {
    return timed(() => {
      for (const name of names) this.#need(name);
    });
  }

  /** Reads each, sets an annotation, stores it. */
  patch(names: readonly string[], value: string): number {
    return timed(() => {
      for (const name of names) {
        const stored = this.#need(name);
        const object = parseObject(stored.text);
        object.metadata.annotations = { 'bench/value': value };
        this.#store.put(keyOf(name), object, stored);
      }
    });
  }

  list(): number {
    return timed(() => {
      let bytes = 0;
      for (const { text } of this.#store.scan('/pods', 'default')) bytes += text.length;
      if (bytes === 0) throw new Error('no pods');
    });
  }

  remove(names: readonly string[]): void {
    for (const name of names) {
      const stored = this.#need(name);
      this.#store.remove(keyOf(name), parseObject(stored.text), stored);
    }
  }

  close(): void {
    this.#store.close();
  }

  #need(name: string) {
    const stored = this.#store.get(keyOf(name));
    if (stored === undefined) throw new Error(`no pod ${name}`);
    return stored;
  }
}

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
