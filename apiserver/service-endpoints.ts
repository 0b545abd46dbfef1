// Endpoints and an EndpointSlice of the `kubernetes` service: the addresses of all API servers of the store, as upstream's lease
// reconciler keeps them. Each server renews its own lease and compares the endpoints with all of them, every ten seconds and
// when one has come or gone. A store in a file has one server.

import { isIPv6 } from 'node:net';
import type { Clock, Timer } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { getOwn } from '../lib/own-property.ts';
import { sameJson } from '../lib/same-json.ts';
import type { Advertised } from './bootstrap.ts';
import type { KubeObject } from './kinds/resource.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';
import { parseObject } from './storage/change.ts';
import type { MasterLeases } from './storage/object-store.ts';

/** kube-apiserver's. */
const INTERVAL_MS = 10_000;
/** What leaving the others may take, as upstream. */
const STOP_MS = 2 * INTERVAL_MS;

const OPTIONS: WriteOptions = {
  caller: { name: 'system:apiserver', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Ignore',
  warn: () => undefined,
};

/** One of the two objects. */
interface Wanted {
  readonly group: string;
  readonly plural: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What there should be; `port` is the server's own, as upstream. A slice has addresses of one family, the first one's. Pure. */
export function serviceEndpoints(addresses: readonly string[], port: number): readonly Wanted[] {
  const sorted = addresses.toSorted();
  const isV6 = isIPv6(sorted[0] ?? '');
  const ports = [{ name: 'https', protocol: 'TCP', port }];
  return [
    {
      group: '',
      plural: 'endpoints',
      // No controller mirrors it.
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
      fields: { subsets: [{ addresses: sorted.map((ip) => ({ ip })), ports }] },
    },
    {
      group: 'discovery.k8s.io',
      plural: 'endpointslices',
      labels: { 'kubernetes.io/service-name': 'kubernetes' },
      fields: {
        addressType: isV6 ? 'IPv6' : 'IPv4',
        endpoints: sorted
          .filter((address) => isIPv6(address) === isV6)
          .map((address) => ({ addresses: [address], conditions: { ready: true } })),
        ports,
      },
    },
  ];
}

export interface ServiceEndpointsParts {
  readonly registry: Registry;
  readonly advertised: Advertised;
  /** Absent where there is one server alone. */
  readonly leases: MasterLeases | undefined;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export class ServiceEndpoints {
  readonly #parts: ServiceEndpointsParts;
  #timer: Timer | undefined;
  #stopFollowing: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** What failed last; logged once. */
  #failure = '';

  constructor(parts: ServiceEndpointsParts) {
    this.#parts = parts;
  }

  /** Resolves when the endpoints are there. */
  async start(): Promise<void> {
    const { leases, advertised } = this.#parts;
    if (advertised.address === undefined) return;
    this.#stopFollowing = leases?.onChange(() => this.#soon()) ?? (() => undefined);
    await this.#attempt();
    this.#wait();
  }

  /** One after another, and the last one with what is known then. */
  #soon(): void {
    this.#running = this.#running.then(() => (this.#isStopped ? undefined : this.#attempt()));
  }

  #wait(): void {
    this.#timer = this.#parts.clock.after(INTERVAL_MS, () => {
      this.#soon();
      this.#wait();
    });
  }

  async #attempt(): Promise<void> {
    const { address } = this.#parts.advertised;
    if (address === undefined) return;
    try {
      await this.#reconcile(address);
      this.#failure = '';
    } catch (error) {
      const failure = errorMessage(error);
      if (failure !== this.#failure) this.#parts.log(`endpoints of the service kubernetes: ${failure}`);
      this.#failure = failure;
    }
  }

  async #reconcile(own: string): Promise<void> {
    const { leases } = this.#parts;
    await leases?.renew(own);
    const addresses = leases === undefined ? [own] : await leases.list();
    // Its own is among them unless something is wrong: then no endpoints are taken away.
    if (addresses.length > 0) await this.#write(addresses);
  }

  async #write(addresses: readonly string[]): Promise<void> {
    const { registry, advertised } = this.#parts;
    for (const wanted of serviceEndpoints(addresses, advertised.port)) {
      if (registry.hasRow(wanted.group, wanted.plural)) await registry.store.commit(() => ensure(registry, wanted));
    }
  }

  /** Takes its own address away, where other servers go on. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#stopFollowing();
    await this.#running;
    const { leases, advertised, clock } = this.#parts;
    if (leases === undefined || advertised.address === undefined) return;
    // An etcd that is away must not keep the server from stopping: the lease ends by itself.
    const late = new AbortController();
    await Promise.race([this.#leave(leases, advertised.address), clock.sleep(STOP_MS, late.signal)]);
    late.abort();
  }

  async #leave(leases: MasterLeases, own: string): Promise<void> {
    try {
      await leases.remove(own);
      const others = await leases.list();
      if (others.length > 0) await this.#write(others);
    } catch (error) {
      this.#parts.log(`endpoints of the service kubernetes: ${errorMessage(error)}`);
    }
  }
}

function ensure(registry: Registry, { group, plural, labels, fields }: Wanted): void {
  const row = registry.rowOf(group, plural);
  const stored = registry.find(row, 'default', 'kubernetes');
  if (stored === undefined) {
    const object = newObject(row, 'kubernetes', { ...fields });
    object.metadata.labels = { ...labels };
    createObject(registry, row, 'default', object, OPTIONS);
    return;
  }
  const present = parseObject(stored.text);
  if (isAsWanted(present, { labels, fields })) return;
  mutateStored(registry, row, stored, false, (object) => {
    Object.assign(object, fields);
    object.metadata.labels = { ...object.metadata.labels, ...labels };
  });
}

function isAsWanted(object: KubeObject, { labels, fields }: Pick<Wanted, 'labels' | 'fields'>): boolean {
  const isLabelled = Object.entries(labels).every(
    ([key, value]) => getOwn(object.metadata.labels ?? {}, key) === value,
  );
  return isLabelled && Object.entries(fields).every(([key, value]) => sameJson(getOwn(object, key), value));
}
