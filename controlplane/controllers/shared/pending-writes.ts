// What a controller has written and its cache does not show yet. A service whose slices are not all as they were written is
// not synced again until they are: the controller would create the same slice twice.

import { type Identified, objectKey, type ReadableStore } from '../../../client/store.ts';
import { type Clock, elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { EXPECTATION_MS } from './expectations.ts';

interface Pending {
  readonly uid: string;
  /** The version that was written; undefined: it was deleted. */
  readonly version: bigint | undefined;
  readonly since: MonotonicMs;
}

/** resourceVersions are numbers that grow (KEP-5504); the versions of one object are compared, no others. */
const versionOf = ({ metadata }: Identified): bigint => BigInt(metadata.resourceVersion);

/** `owner` is the key of what the written objects belong to. */
export class PendingWrites<T extends Identified> {
  readonly #store: ReadableStore<T>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By owner, then by key of the object. */
  readonly #pending = new Map<string, Map<string, Pending>>();

  constructor(store: ReadableStore<T>, clock: Pick<Clock, 'monotonic'>) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The server's answer to a create or an update. */
  written(owner: string, object: T): void {
    this.#put(owner, object, versionOf(object));
  }

  deleted(owner: string, object: T): void {
    this.#put(owner, object, undefined);
  }

  /** Whether the cache shows everything that was written, or has had long enough. */
  settled(owner: string): boolean {
    const pending = this.#pending.get(owner);
    if (pending === undefined) return true;
    const now = this.#clock.monotonic();
    for (const [key, each] of pending) {
      if (this.#shows(key, each) || elapsedMs(each.since, now) > EXPECTATION_MS) pending.delete(key);
    }
    if (pending.size > 0) return false;
    this.#pending.delete(owner);
    return true;
  }

  forget(owner: string): void {
    this.#pending.delete(owner);
  }

  #put(owner: string, object: T, version: bigint | undefined): void {
    const pending = this.#pending.get(owner) ?? new Map<string, Pending>();
    pending.set(objectKey(object), { uid: object.metadata.uid, version, since: this.#clock.monotonic() });
    this.#pending.set(owner, pending);
  }

  #shows(key: string, { uid, version }: Pending): boolean {
    const known = this.#store.get(key);
    if (version === undefined) return known?.metadata.uid !== uid;
    // Not there: it has not come yet, or has gone again; which is seen by the time it takes.
    if (known === undefined) return false;
    return known.metadata.uid !== uid || versionOf(known) >= version;
  }
}
