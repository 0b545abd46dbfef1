// Keeps an APIService for each group and version that this server has, and finds out whether the other servers that are
// registered answer: their condition Available, and what discovery shows of them.

import type { Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { readText } from '../../lib/read-body.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import { REVIEWS } from '../discovery/groups.ts';
import { type ApiService, type ApiServiceCondition, apiServiceOf } from '../kinds/apiservices.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import type { RemoteVersion } from '../kinds/rows.ts';
import type { JsonObject } from '../patch/json-value.ts';
import type { Registry, WriteOptions } from '../registry/registry.ts';
import { createObject, mutateStored, newObject } from '../registry/write.ts';
import { prioritiesOf } from './priorities.ts';
import { type AggregationProxy, identityHeaders } from './proxy.ts';
import { discoveredResources } from './remote-discovery.ts';

export const API_SERVICES = { group: 'apiregistration.k8s.io', plural: 'apiservices' } as const;
const RESOURCE = `${API_SERVICES.group}/${API_SERVICES.plural}`;
/** A change of one of these may make a server reachable. */
const WATCHED = ['/services', '/endpoints', 'discovery.k8s.io/endpointslices'];
/** On the automatic ones: made at the start, or with the definition of a custom kind. */
const AUTOMATIC = 'kube-aggregator.kubernetes.io/automanaged';
const CHECK_MS = 30_000;
const DISCOVERY_TIMEOUT_MS = 5000;
/** Of a discovery document; a larger one is refused. */
const MAX_DISCOVERY_BYTES = 4 * 1024 * 1024;
const CALLER = { name: 'system:kube-aggregator', groups: ['system:masters'] };
const OPTIONS: WriteOptions = { caller: CALLER, dryRun: false, fieldValidation: 'Ignore', warn: () => undefined };

interface Check {
  readonly condition: Omit<ApiServiceCondition, 'lastTransitionTime'>;
  /** Absent when the server has not been asked, or has not answered. */
  readonly resources?: readonly JsonObject[];
}

const LOCAL = { type: 'Available', status: 'True', reason: 'Local', message: 'Local APIServices are always available' };

type Served = Pick<ResourceKind, 'group' | 'version' | 'custom'>;

export class AggregationController {
  readonly #registry: Registry;
  readonly #proxy: AggregationProxy;
  readonly #log: (line: string) => void;
  readonly #ends: (() => void)[] = [];
  /** What each remote server has last served, by the APIService's name. */
  readonly #known = new Map<string, readonly JsonObject[]>();
  #timer: Timer | undefined;
  #isScheduled = false;
  #isRunning = false;
  #isOutdated = false;
  #hasRemote = false;
  #isStopped = false;

  constructor(registry: Registry, proxy: AggregationProxy, log: (line: string) => void) {
    this.#registry = registry;
    this.#proxy = proxy;
    this.#log = log;
  }

  /** Resolves once this server's own versions have their APIServices. */
  async start(): Promise<void> {
    const { store, rows } = this.#registry;
    if (!this.#registry.hasRow(API_SERVICES.group, API_SERVICES.plural)) return;
    this.#ends.push(store.subscribe(RESOURCE, () => this.#wake()));
    for (const resource of WATCHED) {
      this.#ends.push(
        store.subscribe(resource, () => {
          if (this.#hasRemote) this.#wake();
        }),
      );
    }
    this.#ends.push(rows.onChange(() => this.#wake()));
    await store.commit(() => this.#keepLocal());
    this.#wake();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    for (const end of this.#ends) end();
    this.#proxy.close();
  }

  #wake(): void {
    if (this.#isScheduled || this.#isStopped) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    if (this.#isStopped) return;
    // What changes during a run is for the next one.
    this.#isOutdated = this.#isRunning;
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      await this.#registry.store.commit(() => this.#keepLocal());
      await this.#checkRemote();
    } catch (error) {
      if (!this.#isStopped) this.#log(`aggregation: ${errorMessage(error)}`);
    } finally {
      this.#isRunning = false;
      if (this.#isOutdated) this.#wake();
    }
  }

  #row(): ResourceKind {
    return this.#registry.rowOf(API_SERVICES.group, API_SERVICES.plural);
  }

  #all(): ApiService[] {
    return Array.from(this.#registry.store.scan(RESOURCE), (stored) =>
      apiServiceOf(this.#registry.parse(this.#row(), stored)),
    );
  }

  /** One for each local group and version; those that are no longer served go. */
  #keepLocal(): void {
    const { rows } = this.#registry;
    // kube-apiserver registers all of its groups but that of the APIServices themselves.
    const served: readonly Served[] = [...rows.all, ...REVIEWS].filter(
      ({ group }) => group !== 'apiregistration.k8s.io',
    );
    const wanted = new Map(served.map((row) => [`${row.version}.${row.group}`, row]));
    const stored = new Map(this.#all().map((service) => [service.metadata.name ?? '', service]));
    for (const [name, row] of wanted) if (!stored.has(name)) this.#create(name, row);
    for (const [name, service] of stored) {
      if (service.metadata.labels?.[AUTOMATIC] === undefined || wanted.has(name)) continue;
      const found = this.#registry.find(this.#row(), '', name);
      if (found === undefined) continue;
      this.#registry.remove(this.#row(), this.#registry.key(this.#row(), '', name), service, found);
    }
  }

  #create(name: string, row: Served): void {
    const { group, version } = row;
    const spec = { group, version, ...prioritiesOf(group, version) };
    const object = newObject(this.#row(), name, { spec });
    object.metadata.labels = { [AUTOMATIC]: row.custom === undefined ? 'onstart' : 'true' };
    createObject(this.#registry, this.#row(), '', object, OPTIONS);
    this.#setCondition(name, LOCAL);
  }

  #setCondition(name: string, wanted: Check['condition']): void {
    const stored = this.#registry.find(this.#row(), '', name);
    if (stored === undefined) return;
    mutateStored(this.#registry, this.#row(), stored, false, (object) => {
      const service = apiServiceOf(object);
      const before = service.status?.conditions?.find((one) => one.type === 'Available');
      const { lastTransitionTime = '', ...was } = before ?? {};
      if (sameJson(was, wanted)) return;
      const since =
        before?.status === wanted.status && lastTransitionTime !== ''
          ? lastTransitionTime
          : rfc3339(this.#registry.clock.now());
      service.status = { conditions: [{ ...wanted, lastTransitionTime: since }] };
    });
  }

  async #checkRemote(): Promise<void> {
    this.#timer?.cancel();
    const services = this.#all().filter(({ spec }) => spec?.service !== undefined);
    this.#hasRemote = services.length > 0;
    const checks = await Promise.all(services.map(async (service) => [service, await this.#check(service)] as const));
    if (this.#isStopped) return;
    const remote: RemoteVersion[] = [];
    for (const [service, { condition, resources }] of checks) {
      const { name = '' } = service.metadata;
      await this.#registry.store.commit(() => this.#setCondition(name, condition));
      if (resources !== undefined) this.#known.set(name, resources);
      const { group = '', version = '' } = service.spec ?? {};
      remote.push({ group, version, resources: this.#known.get(name) ?? [], isCurrent: condition.status === 'True' });
    }
    for (const name of this.#known.keys()) {
      if (!services.some(({ metadata }) => metadata.name === name)) this.#known.delete(name);
    }
    this.#registry.rows.setRemote(remote);
    if (services.length > 0) this.#timer = this.#registry.clock.after(CHECK_MS, () => this.#wake());
  }

  async #check(service: ApiService): Promise<Check> {
    const failed = (reason: string, message: string): Check => ({
      condition: { type: 'Available', status: 'False', reason, message },
    });
    const address = this.#proxy.resolve(service);
    if ('reason' in address) return failed(address.reason, address.message);
    const { group = '', version = '' } = service.spec ?? {};
    const path = `/apis/${group}/${version}`;
    const url = `https://${address.host}:${address.port}${path}`;
    try {
      const headers = { ...identityHeaders(CALLER), Accept: 'application/json' };
      const signal = AbortSignal.timeout(DISCOVERY_TIMEOUT_MS);
      const response = await this.#proxy.send(service, { method: 'GET', path, headers, signal });
      const text = await readText(response, MAX_DISCOVERY_BYTES, 'the discovery document is too large');
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode > 299) {
        return failed(
          'FailedDiscoveryCheck',
          `failing or missing response from ${url}: bad status from ${url}: ${statusCode}`,
        );
      }
      const document: unknown = JSON.parse(text);
      const resources = discoveredResources(document, group, version) ?? [];
      return {
        condition: { type: 'Available', status: 'True', reason: 'Passed', message: 'all checks passed' },
        resources,
      };
    } catch (error) {
      return failed('FailedDiscoveryCheck', `failing or missing response from ${url}: ${errorMessage(error)}`);
    }
  }
}
