// node.status.volumesInUse: attachable volumes that this node uses, or is about to. A volume may be mounted only once
// node.status.volumesInUse names it, so that it is not detached during the mount. Small, because every agent loads it.

import { Signal, type SignalSource } from '../../lib/signal.ts';

export class VolumesInUse {
  readonly #names = new Set<string>();
  #written: ReadonlySet<string> = new Set();
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #changed = new Signal();

  /** The list is another one: the node's status is to be written. */
  get changed(): SignalSource<void> {
    return this.#changed;
  }

  list(): readonly string[] {
    return [...this.#names].sort();
  }

  /** Resolves when the node's status on the server names the volume. */
  add(name: string): Promise<void> {
    if (!this.#names.has(name)) {
      this.#names.add(name);
      this.#changed.emit();
    }
    if (this.#written.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
    });
  }

  delete(name: string): void {
    if (this.#names.delete(name)) this.#changed.emit();
  }

  /** The status on the server names these. */
  written(names: readonly string[]): void {
    this.#written = new Set(names);
    for (const name of names) {
      for (const resolve of this.#waiting.get(name) ?? []) resolve();
      this.#waiting.delete(name);
    }
  }
}
