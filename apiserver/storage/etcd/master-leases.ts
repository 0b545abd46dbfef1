// Which API servers work on one etcd: each has a key with its address, `/registry/masterleases/<address>`, on a lease that it
// renews; a server that dies loses it. The keys and values are kube-apiserver's.

import type { MasterLeases } from '../object-store.ts';
import type { EtcdClient } from './client.ts';

/** kube-apiserver's. */
const TTL_SECONDS = 15;

export class EtcdMasterLeases implements MasterLeases {
  readonly #client: EtcdClient;
  readonly #directory: string;
  readonly #ttl: number;
  readonly #listeners = new Set<() => void>();
  #renewals = 0;

  constructor(client: EtcdClient, prefix: string, ttlSeconds = TTL_SECONDS) {
    this.#client = client;
    this.#directory = `${prefix}/masterleases/`;
    this.#ttl = ttlSeconds;
  }

  async renew(address: string): Promise<void> {
    const lease = await this.#client.grantLease(this.#ttl);
    const object = {
      kind: 'Endpoints',
      apiVersion: 'v1',
      // kube-apiserver writes nothing where nothing has changed.
      metadata: { generation: ++this.#renewals },
      subsets: [{ addresses: [{ ip: address }] }],
    };
    const put = { key: this.#key(address), value: Buffer.from(JSON.stringify(object)), lease };
    await this.#client.txn({ success: [{ request_put: put }] });
  }

  async list(): Promise<readonly string[]> {
    // All names begin with a digit, or with a colon.
    const { kvs } = await this.#client.range({ key: Buffer.from(this.#directory), range_end: this.#key('~') });
    return kvs.map(({ key }) => key.toString().slice(this.#directory.length));
  }

  async remove(address: string): Promise<void> {
    await this.#client.txn({ success: [{ request_delete_range: { key: this.#key(address) } }] });
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** For a key that has come or gone, and is no object. */
  changed(key: string): void {
    if (key.startsWith(this.#directory)) for (const listener of this.#listeners) listener();
  }

  #key(address: string): Buffer {
    return Buffer.from(`${this.#directory}${address}`);
  }
}
