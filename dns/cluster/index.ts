// What DNS needs to know of Services, EndpointSlices, Pods and Namespaces, indexed by name and by address. Each change of an
// object changes its own entries only. Reads nothing and decides nothing: the stores of the watches tell it.

import type { Change } from '../../client/store.ts';
import type { EndpointSlice, Pod, Service, StoredMeta } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { addressKey } from './addresses.ts';

/** Of a Service or slice without ports: its addresses are found, and SRV records have no port. */
const NO_PORT = -1;

export interface NamedPort {
  readonly name: string;
  /** -1: there is none. */
  readonly port: number;
  /** Lower case. */
  readonly protocol: string;
}

export interface ServiceEntry {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly headless: boolean;
  /** Of type ExternalName, without a dot at the end. */
  readonly externalName: string | undefined;
  readonly clusterIPs: readonly string[];
  readonly ports: readonly NamedPort[];
}

export interface EndpointAddress {
  readonly ip: string;
  readonly hostname: string | undefined;
  /** The pod's name, where it can be a label. */
  readonly targetName: string | undefined;
}

/** The ready endpoints of one slice. */
export interface SliceEntry {
  readonly namespace: string;
  readonly service: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly EndpointAddress[];
  readonly ports: readonly NamedPort[];
}

export interface PodEntry {
  readonly namespace: string;
  readonly ip: string;
}

/** What an answer is made of; unchanged while it is made. */
export interface ClusterView {
  /** All that is watched has been read once. */
  readonly synced: boolean;
  /** Of the last change: seconds since the epoch. */
  readonly serial: number;
  /** Undefined: there is none. */
  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined;
  service(namespace: string, name: string): ServiceEntry | undefined;
  slices(namespace: string, service: string): readonly SliceEntry[];
  /** By addressKey. */
  servicesAt(address: string): readonly ServiceEntry[];
  slicesAt(address: string): readonly SliceEntry[];
  podsAt(address: string): readonly PodEntry[];
}

const SERVICE_NAME = 'kubernetes.io/service-name';
const LONGEST_LABEL = 63;

function serviceEntry({ metadata, spec }: Service): ServiceEntry {
  const { clusterIP = '', clusterIPs, externalName, ports = [] } = spec ?? {};
  const isExternal = spec?.type === 'ExternalName';
  const named = ports.map(({ name = '', port, protocol = 'TCP' }) => ({
    name,
    port,
    protocol: protocol.toLowerCase(),
  }));
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    labels: metadata.labels ?? {},
    headless: clusterIP === 'None',
    externalName: isExternal ? (externalName ?? '').toLowerCase().replace(/\.$/, '') : undefined,
    clusterIPs: (clusterIPs ?? [clusterIP]).filter((ip) => addressKey(ip) !== undefined),
    ports: named.length > 0 ? named : [{ name: '', port: NO_PORT, protocol: '' }],
  };
}

function sliceEntry({ metadata, endpoints = [], ports = [] }: EndpointSlice): SliceEntry {
  const ready = endpoints.filter(({ conditions }) => conditions?.ready !== false);
  const named = ports.map(({ name = '', port = NO_PORT, protocol = '' }) => ({
    name,
    port,
    protocol: protocol.toLowerCase(),
  }));
  return {
    namespace: metadata.namespace ?? '',
    service: metadata.labels?.[SERVICE_NAME] ?? '',
    labels: metadata.labels ?? {},
    addresses: ready.flatMap(({ addresses, hostname, targetRef }) => {
      const target = targetRef?.name;
      const targetName = target !== undefined && target.length <= LONGEST_LABEL ? target : undefined;
      const known = addresses.filter((ip) => addressKey(ip) !== undefined);
      return known.map((ip) => ({ ip, hostname: hostname === '' ? undefined : hostname, targetName }));
    }),
    ports: named.length > 0 ? named : [{ name: '', port: NO_PORT, protocol: '' }],
  };
}

/** A pod that has ended has no address any more, though its status keeps it. */
function podEntry({ metadata, status }: Pod): PodEntry | undefined {
  const { phase, podIP } = status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed' || podIP === undefined || podIP === '') return undefined;
  return { namespace: metadata.namespace, ip: podIP };
}

/** Entries under keys, several under one. */
class Buckets<T> {
  readonly #entries = new Map<string, Set<T>>();

  add(key: string, entry: T): void {
    const bucket = this.#entries.get(key);
    if (bucket === undefined) this.#entries.set(key, new Set([entry]));
    else bucket.add(entry);
  }
  remove(key: string, entry: T): void {
    const bucket = this.#entries.get(key);
    bucket?.delete(entry);
    if (bucket?.size === 0) this.#entries.delete(key);
  }
  get(key: string): readonly T[] {
    const bucket = this.#entries.get(key);
    return bucket === undefined ? [] : [...bucket];
  }
}

/** The entries of one kind: by the object that they come from, and by what they are looked for. */
class Kind<O extends { metadata: StoredMeta }, E> {
  readonly byAddress = new Buckets<E>();
  readonly byOwner = new Buckets<E>();
  readonly #entries = new Map<string, E>();
  readonly #make: (object: O) => E | undefined;
  readonly #ownerOf: (entry: E) => string;
  readonly #addressesOf: (entry: E) => readonly string[];

  constructor(
    make: (object: O) => E | undefined,
    ownerOf: (entry: E) => string,
    addressesOf: (entry: E) => readonly string[],
  ) {
    this.#make = make;
    this.#ownerOf = ownerOf;
    this.#addressesOf = addressesOf;
  }

  apply({ type, object }: Change<O>): void {
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const old = this.#entries.get(key);
    if (old !== undefined) {
      this.#entries.delete(key);
      this.byOwner.remove(this.#ownerOf(old), old);
      for (const address of this.#keys(old)) this.byAddress.remove(address, old);
    }
    const entry = type === 'removed' ? undefined : this.#make(object);
    if (entry === undefined) return;
    this.#entries.set(key, entry);
    this.byOwner.add(this.#ownerOf(entry), entry);
    for (const address of this.#keys(entry)) this.byAddress.add(address, entry);
  }

  #keys(entry: E): readonly string[] {
    return this.#addressesOf(entry).flatMap((address) => addressKey(address) ?? []);
  }
}

const secondsOf = (now: EpochMs): number => Math.floor(now / 1000);
const pathOf = (namespace: string, name: string): string => `${namespace}/${name}`;

export class ClusterIndex implements ClusterView {
  synced = false;
  #serial: number;
  readonly #namespaces = new Map<string, Readonly<Record<string, string>>>();
  readonly #services = new Kind<Service, ServiceEntry>(
    serviceEntry,
    ({ namespace, name }) => pathOf(namespace, name),
    ({ clusterIPs }) => clusterIPs,
  );
  readonly #slices = new Kind<EndpointSlice, SliceEntry>(
    sliceEntry,
    ({ namespace, service }) => pathOf(namespace, service),
    ({ addresses }) => addresses.map(({ ip }) => ip),
  );
  readonly #pods = new Kind<Pod, PodEntry>(
    podEntry,
    ({ namespace }) => namespace,
    ({ ip }) => [ip],
  );

  constructor(now: EpochMs) {
    this.#serial = secondsOf(now);
  }

  get serial(): number {
    return this.#serial;
  }

  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined {
    return this.#namespaces.get(name);
  }
  service(namespace: string, name: string): ServiceEntry | undefined {
    return this.#services.byOwner.get(pathOf(namespace, name))[0];
  }
  slices(namespace: string, service: string): readonly SliceEntry[] {
    return this.#slices.byOwner.get(pathOf(namespace, service));
  }
  servicesAt(address: string): readonly ServiceEntry[] {
    return this.#services.byAddress.get(address);
  }
  slicesAt(address: string): readonly SliceEntry[] {
    return this.#slices.byAddress.get(address);
  }
  podsAt(address: string): readonly PodEntry[] {
    return this.#pods.byAddress.get(address);
  }

  namespaceChanged({ type, object }: Change<{ metadata: StoredMeta }>, now: EpochMs): void {
    if (type === 'removed') this.#namespaces.delete(object.metadata.name);
    else this.#namespaces.set(object.metadata.name, object.metadata.labels ?? {});
    this.#serial = secondsOf(now);
  }
  serviceChanged(change: Change<Service>, now: EpochMs): void {
    this.#services.apply(change);
    this.#serial = secondsOf(now);
  }
  sliceChanged(change: Change<EndpointSlice>, now: EpochMs): void {
    this.#slices.apply(change);
    this.#serial = secondsOf(now);
  }
  podChanged(change: Change<Pod>, now: EpochMs): void {
    this.#pods.apply(change);
    this.#serial = secondsOf(now);
  }
}
