// The controller of ResourceQuotas: counts what a quota limits and writes its status. status.ts decides; admission counts what is
// created, so this one counts when a quota is new or limits something else, when something is gone or has changed, and every five
// minutes. The embedded API server keeps the same figures itself, by which there is then nothing to write.

import type { ResourceQuotaSpec } from 'kubernetes-types/core/v1';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { inScopes, scopeFacts } from '../../../lib/quota/scopes.ts';
import { type CountedResource, resourcesLimited } from '../../../lib/quota/usage.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { discover } from '../../discovery.ts';
import type { Informers } from '../../informers.ts';
import { type Controller, type ControllerContext, runController } from '../../runtime.ts';
import { type CountedInformers, CountedKinds, type CountedListener } from './counted-kinds.ts';
import {
  countedResources,
  countsOtherwise,
  isUncounted,
  type Population,
  quotaStatus,
  type ResourceQuota,
  resourceKey,
  usedBy,
} from './status.ts';

/** Keys of the queue that are no quota's: every quota is counted, and kinds are looked for again. */
const ALL = 'all quotas';
const KINDS = 'kinds';
/** Every quota is counted that often, whatever has changed. ms. */
const RESYNC_MS = 5 * 60_000;
/** Between two looks at which kinds there are, where a quota counts one that may come or go. ms. */
const DISCOVERY_EVERY_MS = 30_000;
/**
 * After a write the quota is counted again so much later: what admission has counted meanwhile may not have been in the caches,
 * and no creation would have the quota counted. ms.
 */
const RECOUNT_MS = 1000;

type Needed = CountedInformers & Pick<Informers, 'resourceQuotas'>;

const specOf = ({ spec = {} }: ResourceQuota): ResourceQuotaSpec => spec;

/** Keys are those of quotas, ALL and KINDS. */
export class ResourceQuotaController implements Controller {
  readonly name = 'resource-quota';
  readonly workers = 5;
  readonly queue: WorkQueue;
  /** Those that the API server refuses requests for until they are counted: as many workers, for these alone. */
  readonly #uncounted: WorkQueue;
  readonly #context: ControllerContext;
  readonly #quotas: Needed['resourceQuotas'];
  readonly #kinds: CountedKinds;
  /** Namespace → its quotas. */
  readonly #byNamespace = new Map<string, Map<string, ResourceQuota>>();
  /** Named by quotas, and not found at the last discovery. */
  readonly #unknown = new Map<string, CountedResource>();
  #signal: AbortSignal | undefined;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#quotas = informers.resourceQuotas;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#uncounted = new WorkQueue({ clock: context.clock });
    this.#kinds = new CountedKinds(informers, context.clock, (...change) => this.#objectChanged(...change));
    informers.resourceQuotas.onChange((changes) => {
      for (const change of changes) {
        this.#index(change.object, change.type !== 'removed');
        if (change.type === 'removed') continue;
        // A status alone is what this controller or admission has written.
        if (change.type === 'modified' && sameJson(specOf(change.old), specOf(change.object))) continue;
        (isUncounted(change.object) ? this.#uncounted : this.queue).add(objectKey(change.object));
      }
    });
  }

  async background(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    this.queue.addAfter(ALL, RESYNC_MS);
    const { name, workers } = this;
    const first = { name, workers, queue: this.#uncounted, sync: (key: string) => this.sync(key) };
    await runController(first, this.#context.log, signal);
  }

  #index(quota: ResourceQuota, isThere: boolean): void {
    const { namespace = '', name } = quota.metadata;
    const quotas = this.#byNamespace.get(namespace) ?? new Map<string, ResourceQuota>();
    if (isThere) quotas.set(name, quota);
    else quotas.delete(name);
    if (quotas.size === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, quotas);
  }

  readonly #objectChanged: CountedListener = (namespace, resource, before, now) => {
    const quotas = this.#byNamespace.get(namespace);
    if (quotas === undefined || (now !== undefined && !countsOtherwise(resource, before, now))) return;
    for (const quota of quotas.values()) {
      const spec = specOf(quota);
      if (resourcesLimited(resource, Object.keys(spec.hard ?? {})).length === 0) continue;
      const isIn = [before, now].some((each) => each !== undefined && inScopes(spec, scopeFacts(each)));
      if (isIn) this.queue.add(objectKey(quota));
    }
  };

  async sync(key: string): Promise<void> {
    if (key === ALL) {
      for (const quota of this.#quotas.list()) this.queue.add(objectKey(quota));
      this.queue.addAfter(ALL, RESYNC_MS);
      return;
    }
    if (key === KINDS) return await this.#discover([]);
    const quota = this.#quotas.get(key);
    if (quota === undefined || quota.metadata.deletionTimestamp !== undefined) return;
    const resources = countedResources(specOf(quota));
    const unknown = resources.filter((resource) => !this.#kinds.isKnown(resource));
    if (unknown.some((resource) => !this.#unknown.has(resourceKey(resource)))) await this.#discover(unknown);
    const { namespace = '' } = quota.metadata;
    const populations: Population[] = [];
    const failures: unknown[] = [];
    for (const resource of resources) {
      try {
        const population = await this.#kinds.population(resource, namespace);
        if (population !== undefined) populations.push(population);
      } catch (error) {
        failures.push(error);
      }
    }
    await this.#write(key, quota, populations);
    // What could be counted is written all the same.
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('; '));
  }

  /** Looks for kinds: for these, those that were not there before, and those that may be gone. What no quota names is no longer watched. */
  async #discover(wanted: readonly CountedResource[]): Promise<void> {
    const signal = this.#signal;
    if (signal === undefined) throw new Error('the controller of quotas is not running');
    const discovery = await discover(this.#context.client);
    const missing = [...this.#unknown.values()];
    this.#unknown.clear();
    const named = new Set(this.#quotas.list().flatMap((quota) => countedResources(specOf(quota)).map(resourceKey)));
    for (const resource of [...missing, ...wanted, ...this.#kinds.discovered]) {
      const key = resourceKey(resource);
      if (!named.has(key)) this.#kinds.stop(resource);
      else {
        this.#kinds.update(resource, discovery, signal);
        if (!this.#kinds.isKnown(resource)) this.#unknown.set(key, resource);
      }
    }
    const found = missing.filter((resource) => this.#kinds.isKnown(resource));
    for (const quota of this.#quotas.list()) {
      const names = Object.keys(specOf(quota).hard ?? {});
      if (found.some((resource) => resourcesLimited(resource, names).length > 0)) this.queue.add(objectKey(quota));
    }
    if (this.#unknown.size > 0 || this.#kinds.discovered.length > 0) this.queue.addAfter(KINDS, DISCOVERY_EVERY_MS);
  }

  async #write(key: string, quota: ResourceQuota, populations: readonly Population[]): Promise<void> {
    const status = quotaStatus(quota, usedBy(specOf(quota), populations));
    if (status === undefined) return;
    const { name, namespace = '' } = quota.metadata;
    const path = resourcePath('v1', 'resourcequotas', { namespace, name, subresource: 'status' });
    try {
      await this.#context.client.replace(path, { ...quota, apiVersion: 'v1', kind: 'ResourceQuota', status });
    } catch (error) {
      if (isNotFound(error)) return;
      throw error;
    }
    this.queue.addAfter(key, RECOUNT_MS);
  }
}
