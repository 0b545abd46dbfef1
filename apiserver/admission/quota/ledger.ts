// What the objects of each namespace with a ResourceQuota use, kept exact from the store's changes: an object's usage is
// noted when it is written and taken back when it is removed, in the same turn of the event loop. So admission decides by
// figures that no concurrent write can make stale, and a quota's status needs no controller.

import type { ResourceQuota } from 'kubernetes-types/core/v1';
import { errorMessage } from '../../../lib/errors.ts';
import { type Amount, added, amountText } from '../../../lib/quota/amounts.ts';
import { inScopes, type ScopeFacts, scopeFacts } from '../../../lib/quota/scopes.ts';
import { type CountedResource, countedBy, usageOf } from '../../../lib/quota/usage.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { nextTurn } from '../../../lib/turns.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import { as } from '../../kinds/shapes.ts';
import type { Registry } from '../../registry/registry.ts';
import { mutateStored } from '../../registry/write.ts';
import type { QuotaUsage, QuotaView } from './check.ts';
import { countedOf } from './counted.ts';

const QUOTAS = '/resourcequotas';
/** Objects measured in one turn of the event loop: some milliseconds' work. */
const PER_TURN = 200;

interface Measured {
  readonly usage: ReadonlyMap<string, Amount>;
  readonly scopes: ScopeFacts;
}

interface Quota {
  object: KubeObject;
  readonly used: Map<string, Amount>;
}

class NamespaceLedger {
  readonly quotas = new Map<string, Quota>();
  /** By "<resource>/<name>". */
  readonly objects = new Map<string, Measured>();
  /** Resources whose objects are all in `objects`. */
  readonly complete = new Set<string>();
}

const specOf = (object: KubeObject) => as<ResourceQuota>(object, 'ResourceQuota').spec ?? {};
const keyOf = ({ group, plural }: CountedResource): string => `${group}/${plural}`;

function measured(resource: CountedResource, object: KubeObject): Measured {
  const counted = countedOf(resource, object);
  return { usage: usageOf(resource, counted), scopes: scopeFacts(counted) };
}

/** Resources whose objects a quota counts. */
function resourcesOf(quota: KubeObject): CountedResource[] {
  const found = new Map<string, CountedResource>();
  for (const name of Object.keys(specOf(quota).hard ?? {})) {
    const resource = countedBy(name);
    if (resource !== undefined) found.set(keyOf(resource), resource);
  }
  return [...found.values()];
}

export class QuotaLedger implements QuotaUsage {
  readonly #registry: Registry;
  readonly #log: (line: string) => void;
  readonly #namespaces = new Map<string, NamespaceLedger>();
  readonly #subscribed = new Set<string>();
  /** Namespaces and names of quotas whose status is to be written. */
  readonly #stale = new Map<string, { namespace: string; name: string }>();

  constructor(registry: Registry, log: (line: string) => void) {
    this.#registry = registry;
    this.#log = log;
  }

  /** Measures everything that quotas count now, and goes on from there. */
  start(): void {
    const { store, lookup } = this.#registry;
    if (!this.#registry.hasRow('', 'resourcequotas')) return;
    store.subscribe(QUOTAS, ({ record, object }) => {
      if (record.type === 'DELETED') this.#forget(record.namespace, record.name);
      else void this.#follow(object);
    });
    for (const quota of lookup.list('', 'resourcequotas')) {
      this.#adopt(quota);
      for (const resource of resourcesOf(quota)) this.#measureNow(quota.metadata.namespace ?? '', resource);
      this.#recount(quota.metadata.namespace ?? '', quota.metadata.name ?? '');
    }
  }

  quotas(namespace: string, counted: string): readonly QuotaView[] {
    const ledger = this.#namespaces.get(namespace);
    if (ledger === undefined) return [];
    // Where several servers share a store, none may have written such an object since.
    this.#registry.store.dependsOn(counted, namespace);
    return [...ledger.quotas.values()].map(({ object, used }) => ({
      name: object.metadata.name ?? '',
      spec: specOf(object),
      used,
      known: resourcesOf(object).every((resource) => ledger.complete.has(keyOf(resource))),
    }));
  }

  /** Takes a new or changed quota; returns whether its spec is another than before. */
  #adopt(object: KubeObject): boolean {
    const { namespace = '', name = '' } = object.metadata;
    const ledger = this.#namespaces.get(namespace) ?? new NamespaceLedger();
    this.#namespaces.set(namespace, ledger);
    const known = ledger.quotas.get(name);
    const same = known !== undefined && sameJson(specOf(known.object), specOf(object));
    ledger.quotas.set(name, { object, used: same ? known.used : new Map() });
    for (const resource of resourcesOf(object)) this.#subscribe(resource);
    return !same;
  }

  async #follow(quota: KubeObject): Promise<void> {
    const { namespace = '', name = '' } = quota.metadata;
    if (!this.#adopt(quota)) return;
    try {
      for (const resource of resourcesOf(quota)) await this.#measure(namespace, resource);
      this.#recount(namespace, name);
    } catch (error) {
      this.#log(`the usage of quota ${namespace}/${name} could not be measured: ${errorMessage(error)}`);
    }
  }

  #forget(namespace: string, name: string): void {
    const ledger = this.#namespaces.get(namespace);
    ledger?.quotas.delete(name);
    if (ledger?.quotas.size === 0) this.#namespaces.delete(namespace);
  }

  #subscribe(resource: CountedResource): void {
    const key = keyOf(resource);
    if (this.#subscribed.has(key)) return;
    this.#subscribed.add(key);
    this.#registry.store.subscribe(key, ({ record, object }) => {
      const ledger = this.#namespaces.get(record.namespace);
      if (ledger === undefined) return;
      this.#note(
        record.namespace,
        ledger,
        `${key}/${record.name}`,
        record.type === 'DELETED' ? undefined : measured(resource, object),
      );
    });
  }

  /** Puts an object's usage in the place of what it used before. */
  #note(namespace: string, ledger: NamespaceLedger, key: string, now: Measured | undefined): void {
    const before = ledger.objects.get(key);
    if (now === undefined) ledger.objects.delete(key);
    else ledger.objects.set(key, now);
    for (const [name, quota] of ledger.quotas) {
      const changed = [count(quota, before, -1), count(quota, now, 1)];
      if (changed.includes(true)) this.#markStale(namespace, name);
    }
  }

  /** Notes the objects of a resource that are there, a slice in each turn; what changes meanwhile notes itself. */
  async #measure(namespace: string, resource: CountedResource): Promise<void> {
    for (const _ of this.#slices(namespace, resource)) await nextTurn();
  }

  #measureNow(namespace: string, resource: CountedResource): void {
    for (const _ of this.#slices(namespace, resource));
  }

  *#slices(namespace: string, resource: CountedResource): Generator<void> {
    const ledger = this.#namespaces.get(namespace);
    const key = keyOf(resource);
    if (ledger === undefined || ledger.complete.has(key)) return;
    const { group, plural } = resource;
    let after: { namespace: string; name: string } | undefined;
    if (this.#registry.hasRow(group, plural)) {
      const row = this.#registry.rowOf(group, plural);
      for (;;) {
        let seen = 0;
        for (const stored of this.#registry.store.scan(key, namespace, after)) {
          // Of a custom object metadata counts alone.
          const object =
            row.custom === undefined ? this.#registry.parse(row, stored) : this.#registry.parseStored(stored);
          this.#note(namespace, ledger, `${key}/${stored.name}`, measured(resource, object));
          after = { namespace, name: stored.name };
          if (++seen === PER_TURN) break;
        }
        if (seen < PER_TURN) break;
        yield;
      }
    }
    ledger.complete.add(key);
  }

  /** The sum over all objects that are noted. */
  #recount(namespace: string, name: string): void {
    const ledger = this.#namespaces.get(namespace);
    const quota = ledger?.quotas.get(name);
    if (ledger === undefined || quota === undefined) return;
    quota.used.clear();
    for (const each of ledger.objects.values()) count(quota, each, 1);
    this.#markStale(namespace, name);
  }

  /** Has the status written after the write that is under way, and before the event loop's next turn. */
  #markStale(namespace: string, name: string): void {
    if (this.#stale.size === 0) queueMicrotask(() => this.#writeStale());
    this.#stale.set(`${namespace}/${name}`, { namespace, name });
  }

  #writeStale(): void {
    const stale = [...this.#stale.values()];
    this.#stale.clear();
    for (const { namespace, name } of stale) {
      this.#registry.store
        .commit(() => this.#writeStatus(namespace, name))
        .catch((error: unknown) => {
          // A full store, or one that has been closed; the next change of the namespace tries again.
          this.#log(`the status of quota ${namespace}/${name} could not be written: ${errorMessage(error)}`);
        });
    }
  }

  #writeStatus(namespace: string, name: string): void {
    const quota = this.#namespaces.get(namespace)?.quotas.get(name);
    const row = this.#registry.rowOf('', 'resourcequotas');
    const stored = this.#registry.find(row, namespace, name);
    if (quota === undefined || stored === undefined) return;
    const hard = specOf(quota.object).hard ?? {};
    const used = Object.fromEntries(
      Object.keys(hard).map((resource) => {
        const amount = quota.used.get(resource);
        return [resource, amount === undefined ? '0' : amountText(amount)] as const;
      }),
    );
    mutateStored(this.#registry, row, stored, false, (object) => {
      object['status'] = { hard: { ...hard }, used };
    });
  }
}

/** Adds or subtracts an object's usage where the quota counts it; returns whether anything changed. */
function count({ object, used }: Quota, measured: Measured | undefined, sign: 1 | -1): boolean {
  const spec = specOf(object);
  if (measured === undefined || !inScopes(spec, measured.scopes)) return false;
  let changed = false;
  for (const name of Object.keys(spec.hard ?? {})) {
    const amount = measured.usage.get(name);
    if (amount === undefined || amount.nano === 0n) continue;
    used.set(name, added(used.get(name), amount, sign));
    changed = true;
  }
  return changed;
}
