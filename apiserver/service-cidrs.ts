// ServiceCIDRs and IPAddresses kept right: the default ServiceCIDR from the flag, the condition Ready, the finalizer while
// addresses of a range are in use, and an IPAddress for each cluster IP. Upstream these are two controllers of
// kube-apiserver (defaultservicecidr, repairip) and one of kube-controller-manager (servicecidrs). What is needed is
// decided by `cidrNeeds` and `addressNeeds`; the rest reads and writes.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { rfc3339, rfc3339Micro } from '../lib/rfc3339.ts';
import { sameJson } from '../lib/same-json.ts';
import type { Companion, KubeObject } from './kinds/resource.ts';
import { familyOf } from './kinds/services/families.ts';
import { ALLOCATOR, clusterIPsOf, ipAddressesOf, MANAGED_BY, NETWORKING } from './kinds/services/ip-addresses.ts';
import { cidrsOf, inRange, serviceRange } from './kinds/services/ranges.ts';
import { isStrictSubset, parseRange } from './kinds/shared/addresses.ts';
import { isObject, type JsonObject } from './patch/json-value.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';

export const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';
const DEFAULT_NAME = 'kubernetes';
const REPAIRER = 'ipallocator-repair-controller';

const OPTIONS: WriteOptions = {
  caller: { name: 'system:apiserver', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Ignore',
  warn: () => undefined,
};

/**
 * Makes the ServiceCIDR `kubernetes`, unless there is one: that one stays, whatever the flag says, but gets the second family
 * where the flag has it beside the range that is there. Only inside `commit`.
 */
export function ensureServiceCidr(
  registry: Registry,
  wanted: readonly string[],
  options: WriteOptions,
  log: (line: string) => void,
): void {
  if (!registry.hasRow(NETWORKING, 'servicecidrs')) return;
  const row = registry.rowOf(NETWORKING, 'servicecidrs');
  const stored = registry.find(row, '', DEFAULT_NAME);
  if (stored !== undefined) {
    const cidrs = cidrsOf(registry.parse(row, stored));
    if (sameJson(cidrs, wanted)) return;
    if (wanted.length === 2 && sameJson(cidrs, wanted.slice(0, 1))) {
      log(`The default ServiceCIDR [${cidrs.join(' ')}] becomes dual-stack: [${wanted.join(' ')}]`);
      mutateStored(registry, row, stored, false, (object) => {
        object['spec'] = { cidrs: [...wanted] };
      });
      return;
    }
    log(
      `The default ServiceCIDR [${cidrs.join(' ')}] does not match the flag --service-cluster-ip-range ${wanted.join(',')}`,
    );
    return;
  }
  createObject(registry, row, '', newObject(row, DEFAULT_NAME, { spec: { cidrs: [...wanted] } }), options);
  const made = registry.need(row, '', DEFAULT_NAME);
  mutateStored(registry, row, made, false, (object) => {
    setReady(
      object,
      { status: 'True', reason: '', message: 'Kubernetes default Service CIDR is ready' },
      registry.clock,
    );
  });
}

interface Ready {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

function conditionsOf({ status }: Readonly<KubeObject>): readonly JsonObject[] {
  const conditions = isObject(status) ? status['conditions'] : undefined;
  return Array.isArray(conditions) ? conditions.filter(isObject) : [];
}

function setReady(object: KubeObject, ready: Ready, clock: Clock): void {
  const others = conditionsOf(object).filter(({ type }) => type !== 'Ready');
  const before = conditionsOf(object).find(({ type }) => type === 'Ready');
  const lastTransitionTime = before?.['status'] === ready.status ? before['lastTransitionTime'] : rfc3339(clock.now());
  const condition = { type: 'Ready', ...ready, lastTransitionTime };
  object['status'] = { ...(isObject(object['status']) ? object['status'] : {}), conditions: [...others, condition] };
}

/** What a ServiceCIDR needs to have. */
export interface CidrNeeds {
  readonly finalizer: boolean;
  /** Absent: it stays as it is. */
  readonly ready?: Ready;
}

const TERMINATING: Ready = {
  status: 'False',
  reason: 'Terminating',
  message: 'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR',
};

/** Pure. `addresses` are the names of the IPAddresses that Services have. */
export function cidrNeeds(
  cidr: Readonly<KubeObject>,
  all: readonly Readonly<KubeObject>[],
  addresses: readonly string[],
): CidrNeeds {
  const condition = conditionsOf(cidr).find(({ type }) => type === 'Ready');
  if (cidr.metadata.deletionTimestamp === undefined) {
    const isReady = condition?.['status'] === 'True';
    const ready: Ready = { status: 'True', reason: '', message: 'Kubernetes Service CIDR is ready' };
    return { finalizer: true, ...(isReady ? {} : { ready }) };
  }
  const others = all.filter(({ metadata }) => metadata.name !== cidr.metadata.name);
  if (cidrsOf(cidr).every((range) => others.some((other) => cidrsOf(other).some((outer) => contains(outer, range))))) {
    return { finalizer: false };
  }
  const covers = (one: Readonly<KubeObject>, address: string): boolean =>
    cidrsOf(one).some((text) => {
      const range = serviceRange(text);
      return range !== undefined && inRange(range, address);
    });
  const isInUse = addresses.some((address) => covers(cidr, address) && !others.some((other) => covers(other, address)));
  return isInUse ? { finalizer: true, ready: TERMINATING } : { finalizer: false };
}

function contains(outer: string, inner: string): boolean {
  if (outer === inner) return true;
  const [a, b] = [parseRange(inner), parseRange(outer)];
  return a !== undefined && b !== undefined && isStrictSubset(a, b);
}

/** What is wrong with the address of a Service, as an event says it. */
export interface AddressNeeds {
  readonly reason: string;
  readonly message: string;
  /** The IPAddress is made anew. */
  readonly repair: boolean;
}

/** Pure. `ip`: the IPAddress of that name; `owner`: the Service that it names. */
export function addressNeeds(
  address: string,
  service: Readonly<KubeObject>,
  cidrs: readonly Readonly<KubeObject>[],
  ip: Readonly<KubeObject> | undefined,
  owner: Readonly<KubeObject> | undefined,
): AddressNeeds | undefined {
  const family = familyOf(address);
  const { namespace = '', name = '' } = service.metadata;
  const isIn = cidrs.flatMap(cidrsOf).some((text) => {
    const range = serviceRange(text);
    return range !== undefined && inRange(range, address);
  });
  if (!isIn) {
    const message = `Cluster IP [${family}]: ${address} is not within any configured Service CIDR; please recreate service`;
    return { reason: 'ClusterIPOutOfRange', message, repair: false };
  }
  if (ip === undefined) {
    const message = `Cluster IP [${family}]: ${address} is not allocated; repairing`;
    return { reason: 'ClusterIPNotAllocated', message, repair: true };
  }
  const parent = parentOf(ip);
  if (parent.isService && parent.namespace === namespace && parent.name === name) return undefined;
  if (parent.isService && owner !== undefined && clusterIPsOf(owner).includes(address)) {
    const message = `Cluster IP [${family}]:${address} was assigned to multiple services; please recreate service`;
    return { reason: 'ClusterIPAlreadyAllocated', message, repair: false };
  }
  const message = `the ClusterIP [${family}]: ${address} for Service ${namespace}/${name} has a wrong reference; repairing`;
  return { reason: 'ClusterIPNotAllocated', message, repair: true };
}

interface Parent {
  readonly isService: boolean;
  readonly namespace: string;
  readonly name: string;
}

function parentOf({ spec }: Readonly<KubeObject>): Parent {
  const parent = isObject(spec) && isObject(spec['parentRef']) ? spec['parentRef'] : {};
  const { group = '', resource = '', namespace = '', name = '' } = parent;
  return { isService: group === '' && resource === 'services', namespace: String(namespace), name: String(name) };
}

const isManaged = ({ metadata }: Readonly<KubeObject>): boolean => metadata.labels?.[MANAGED_BY] === ALLOCATOR;

/** Repairs at the start, and whenever one of these objects changes. */
export class ServiceCidrController {
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #log: (line: string) => void;
  readonly #stops: (() => void)[] = [];
  #isPlanned = false;
  #isStopped = false;
  #running = Promise.resolve();

  constructor(registry: Registry, clock: Clock, log: (line: string) => void) {
    this.#registry = registry;
    this.#clock = clock;
    this.#log = log;
  }

  async start(): Promise<void> {
    if (!this.#registry.hasRow(NETWORKING, 'servicecidrs') || !this.#registry.hasRow('', 'services')) return;
    // A new Service brings its address along: only what others do to addresses and ranges needs a look.
    for (const plural of ['servicecidrs', 'ipaddresses']) {
      this.#stops.push(
        this.#registry.store.subscribe(`${NETWORKING}/${plural}`, ({ record }) => {
          if (plural === 'servicecidrs' || record.type !== 'ADDED') this.#plan();
        }),
      );
    }
    this.#plan();
    await this.#running;
  }

  stop(): void {
    this.#isStopped = true;
    for (const stop of this.#stops) stop();
  }

  #plan(): void {
    if (this.#isPlanned || this.#isStopped) return;
    this.#isPlanned = true;
    this.#running = this.#running
      .then(() => this.#sync())
      .catch((error: unknown) => this.#log(`addresses of Services: ${errorMessage(error)}`));
  }

  async #sync(): Promise<void> {
    this.#isPlanned = false;
    const { lookup } = this.#registry;
    for (const { metadata } of lookup.list(NETWORKING, 'servicecidrs')) {
      if (!this.#isStopped) await this.#registry.store.commit(() => this.#syncCidr(metadata.name ?? ''));
    }
    for (const service of lookup.list('', 'services')) {
      for (const address of clusterIPsOf(service)) {
        if (this.#needsOf(service, address) === undefined || this.#isStopped) continue;
        await this.#registry.store.commit(() => this.#repair(service, address));
      }
    }
    for (const ip of lookup.list(NETWORKING, 'ipaddresses')) {
      if (this.#isLeaked(ip) && !this.#isStopped) {
        await this.#registry.store.commit(() => this.#removeLeaked(ip.metadata.name ?? ''));
      }
    }
  }

  #syncCidr(name: string): void {
    const { lookup } = this.#registry;
    const row = this.#registry.rowOf(NETWORKING, 'servicecidrs');
    const stored = this.#registry.find(row, '', name);
    if (stored === undefined) return;
    const addresses = lookup
      .list(NETWORKING, 'ipaddresses')
      .filter(isManaged)
      .map(({ metadata }) => metadata.name ?? '');
    const needs = cidrNeeds(this.#registry.parse(row, stored), lookup.list(NETWORKING, 'servicecidrs'), addresses);
    mutateStored(this.#registry, row, stored, false, (object) => {
      const { metadata } = object;
      const others = (metadata.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
      const finalizers = needs.finalizer ? [...others, FINALIZER] : others;
      if (finalizers.length > 0) metadata.finalizers = finalizers;
      else delete metadata.finalizers;
      if (needs.ready !== undefined) setReady(object, needs.ready, this.#clock);
    });
  }

  #needsOf(service: Readonly<KubeObject>, address: string): AddressNeeds | undefined {
    const { lookup } = this.#registry;
    const ip = lookup.get(NETWORKING, 'ipaddresses', '', address);
    const parent = ip === undefined ? undefined : parentOf(ip);
    const owner = parent?.isService === true ? lookup.get('', 'services', parent.namespace, parent.name) : undefined;
    return addressNeeds(address, service, lookup.list(NETWORKING, 'servicecidrs'), ip, owner);
  }

  #repair({ metadata }: Readonly<KubeObject>, address: string): void {
    const { namespace = '', name = '', uid } = metadata;
    const service = this.#registry.lookup.get('', 'services', namespace, name);
    const companion = service === undefined ? undefined : ipAddressesOf(service).find((one) => one.name === address);
    const needs = service === undefined ? undefined : this.#needsOf(service, address);
    if (service === undefined || companion === undefined || needs === undefined || service.metadata.uid !== uid) return;
    this.#event(service, needs.reason, 'ClusterIPAllocation', needs.message);
    if (needs.repair) this.#replace(companion);
  }

  #replace(companion: Companion): void {
    const row = this.#registry.rowOf(NETWORKING, 'ipaddresses');
    const stored = this.#registry.find(row, '', companion.name);
    if (stored !== undefined) {
      // It has changed hands: a new object, as its parent cannot be changed.
      this.#registry.store.remove(
        this.#registry.key(row, '', companion.name),
        this.#registry.parse(row, stored),
        stored,
      );
    }
    this.#registry.createCompanion(companion);
  }

  /** One of the allocator's that no Service has. */
  #isLeaked(ip: Readonly<KubeObject>): boolean {
    if (!isManaged(ip)) return false;
    const { isService, namespace, name } = parentOf(ip);
    const service = isService ? this.#registry.lookup.get('', 'services', namespace, name) : undefined;
    return service === undefined || !clusterIPsOf(service).includes(ip.metadata.name ?? '');
  }

  #removeLeaked(name: string): void {
    const row = this.#registry.rowOf(NETWORKING, 'ipaddresses');
    const stored = this.#registry.find(row, '', name);
    if (stored === undefined) return;
    const ip = this.#registry.parse(row, stored);
    if (!this.#isLeaked(ip)) return;
    const parent = parentOf(ip);
    const message = `IPAddress: ${name} for Service ${parent.namespace}/${parent.name} appears to have leaked: cleaning up`;
    this.#event(ip, 'IPAddressNotAllocated', 'IPAddressAllocation', message);
    this.#registry.remove(row, this.#registry.key(row, '', name), ip, stored);
  }

  /** Once for each object and reason: what cannot be repaired is found at each look. */
  #event(about: Readonly<KubeObject>, reason: string, action: string, message: string): void {
    this.#log(message);
    if (!this.#registry.hasRow('', 'events')) return;
    const row = this.#registry.rowOf('', 'events');
    const { namespace = 'default', name = '', uid, resourceVersion } = about.metadata;
    const { apiVersion, kind } = about;
    for (const event of this.#registry.lookup.each('', 'events', namespace)) {
      const involved = isObject(event['involvedObject']) ? event['involvedObject'] : {};
      if (involved['uid'] === uid && event['message'] === message) return;
    }
    const event = newObject(row, `${name}.${randomUUID().slice(0, 8)}`, {
      involvedObject: { apiVersion, kind, namespace: about.metadata.namespace, name, uid, resourceVersion },
      type: 'Warning',
      reason,
      action,
      message,
      eventTime: rfc3339Micro(this.#clock.now()),
      reportingComponent: REPAIRER,
      reportingInstance: `${REPAIRER}-nodelet`,
    });
    event.metadata.namespace = namespace;
    createObject(this.#registry, row, namespace, event, OPTIONS);
  }
}
