// The contents of ConfigMaps and Secrets that are kept in memory for a while, within a fixed number of bytes. Small ones
// stay as long as there is room: kube-root-ca.crt is in every pod. A big one goes soon after its last reader: it is read from
// the API server again when it is needed later. Never the place where it is known which version is current.

import type { Clock, Timer } from '../../lib/clock.ts';
import { BIG_BYTES } from '../model/big-objects.ts';

export interface ContentCacheOptions {
  readonly clock: Pick<Clock, 'after'>;
  /** Together at most this many bytes; the least recently used goes first. */
  readonly totalBytes?: number;
  /** From this size on (bytes) an object is a big one. */
  readonly bigBytes?: number;
  /** How long (ms) a big one stays after it was last read. */
  readonly bigStaysMs?: number;
}

const TOTAL_BYTES = 8 * 1024 * 1024;
/** Long enough for the pods of one Deployment, that come together, to share one reading. */
export const BIG_STAYS_MS = 5_000;

interface Entry<T> {
  readonly object: T;
  readonly bytes: number;
  timer: Timer | undefined;
}

export class ContentCache<T> {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #totalBytes: number;
  readonly #bigBytes: number;
  readonly #bigStaysMs: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry<T>>();
  #bytes = 0;

  constructor({
    clock,
    totalBytes = TOTAL_BYTES,
    bigBytes = BIG_BYTES,
    bigStaysMs = BIG_STAYS_MS,
  }: ContentCacheOptions) {
    this.#clock = clock;
    this.#totalBytes = totalBytes;
    this.#bigBytes = bigBytes;
    this.#bigStaysMs = bigStaysMs;
  }

  /** Bytes of all contents that are kept now. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    this.#restartTimer(key, entry);
    return entry.object;
  }

  /** Keeps `object`, of `bytes` bytes, in place of what was kept under the key. */
  set(key: string, object: T, bytes: number): void {
    this.delete(key);
    const entry: Entry<T> = { object, bytes, timer: undefined };
    this.#entries.set(key, entry);
    this.#bytes += bytes;
    this.#restartTimer(key, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#totalBytes) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.timer?.cancel();
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }

  clear(): void {
    for (const key of [...this.#entries.keys()]) this.delete(key);
  }

  #restartTimer(key: string, entry: Entry<T>): void {
    if (entry.bytes < this.#bigBytes) return;
    entry.timer?.cancel();
    entry.timer = this.#clock.after(this.#bigStaysMs, () => this.delete(key));
  }
}

/** Bytes that the values of a ConfigMap or Secret take in memory, about: their text as it came. */
export function contentBytes(object: {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}): number {
  const values = [object.data ?? {}, object.binaryData ?? {}].flatMap((map) => Object.entries(map));
  return values.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
}
