// Leases of etcd for objects that end by themselves: events, an hour after they were last written. One lease serves what is written
// within a minute, as kube-apiserver's lease manager does.

import { type Clock, elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import type { ObjectKey } from '../object-store.ts';
import type { EtcdClient } from './client.ts';

/** kube-apiserver's --event-ttl. */
const TTL_SECONDS = 3600;
const REUSED_SECONDS = 60;

export class EventLeases {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  #lease: { readonly id: Promise<string>; readonly since: MonotonicMs } | undefined;

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  covers({ resource }: ObjectKey): boolean {
    return resource === '/events';
  }

  /** The id of a lease that has at least the whole time left. */
  current(): Promise<string> {
    const now = this.#clock.monotonic();
    if (this.#lease === undefined || elapsedMs(this.#lease.since, now) >= REUSED_SECONDS * 1000) {
      const lease = { id: this.#client.grantLease(TTL_SECONDS + REUSED_SECONDS), since: now };
      this.#lease = lease;
      lease.id.catch(() => {
        if (this.#lease === lease) this.#lease = undefined;
      });
    }
    return this.#lease.id;
  }
}
