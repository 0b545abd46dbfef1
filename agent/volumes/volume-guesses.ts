// Which PersistentVolume a claim had when a pod of this node last used it. A claim keeps its volume, so the volume can be
// read beside the claim instead of after it: a pod that comes back waits for one answer of the API server, not for two.
// A guess decides nothing: whether the claim still has that volume is judged by what both say now.

import type { PV } from './claims.ts';

/** Claims that are remembered; the one that was used longest ago makes room. */
const MOST = 256;

export interface Guess {
  /** Of the PersistentVolume. */
  readonly name: string;
  /** Never rejects: what could not be read is undefined, and read again by whoever needs it. */
  readonly volume: Promise<PV | undefined>;
}

export class VolumeGuesses {
  readonly #read: (name: string) => Promise<PV | undefined>;
  /** By the claim's "namespace/name". */
  readonly #names = new Map<string, string>();

  constructor(read: (name: string) => Promise<PV | undefined>) {
    this.#read = read;
  }

  /** Begins to read the volume that the claim had. */
  guess(claim: string): Guess | undefined {
    const name = this.#names.get(claim);
    if (name === undefined) return undefined;
    return { name, volume: this.#read(name).catch(() => undefined) };
  }

  remember(claim: string, volume: string): void {
    this.#names.delete(claim);
    this.#names.set(claim, volume);
    const [oldest] = this.#names.keys();
    if (this.#names.size > MOST && oldest !== undefined) this.#names.delete(oldest);
  }
}
