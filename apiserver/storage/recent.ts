// A cache of the objects written last, in parsed form: most are written again soon, and watchers need the previous state.
// Bounded by number and by bytes. Its objects are shared and must not be changed.

import type { KubeObject } from '../kinds/resource.ts';

const MAX_OBJECTS = 256;
/** Of JSON text; the objects themselves take a few times that. */
const MAX_BYTES = 4 * 1024 * 1024;
/** A larger one would push out all the small ones. */
const MAX_OBJECT_BYTES = 256 * 1024;

interface Entry {
  readonly text: string;
  readonly object: KubeObject;
}

export class RecentObjects {
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  /** Length of the texts kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The object whose text is exactly this, or undefined. */
  get(key: string, text: string | undefined): KubeObject | undefined {
    const entry = this.#entries.get(key);
    return entry?.text === text ? entry?.object : undefined;
  }

  set(key: string, text: string, object: KubeObject): void {
    this.delete(key);
    if (text.length > MAX_OBJECT_BYTES) return;
    this.#entries.set(key, { text, object });
    this.#bytes += text.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_OBJECTS && this.#bytes <= MAX_BYTES) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.text.length;
  }
}
