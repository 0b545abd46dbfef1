// The EndpointSlice controller: the slices of each service that has a selector are what its pods are. plan.ts decides.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey, type ReadableStore } from '../../../client/store.ts';
import type { EndpointSlice, Node, Pod, Service } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { isNamespaceTerminating } from '../shared/namespace-terminating.ts';
import { ENDPOINT_SLICE, pathOf, SERVICE, subjectOf } from '../shared/objects.ts';
import { PendingWrites } from '../shared/pending-writes.ts';
import {
  hasOwnEndpoints,
  MANAGED_BY_LABEL,
  podsOf,
  SERVICE_NAME_LABEL,
  servicesOfChange,
} from '../shared/service-pods.ts';
import { TriggerTimes, withTriggerTime } from '../shared/trigger-time.ts';
import { ZONE_LABEL } from './desired.ts';
import { EndpointSliceMetrics } from './metrics.ts';
import { MANAGED_BY, MAX_ENDPOINTS, planSlices } from './plan.ts';
import { isZoneNode, type ZoneShares, zoneShares } from './topology.ts';
import { ZoneState } from './zone-state.ts';

interface Needed {
  readonly pods: ReadableStore<Pod>;
  readonly nodes: ReadableStore<Node>;
  readonly services: ReadableStore<Service>;
  readonly endpointSlices: ReadableStore<EndpointSlice>;
}

/** Keys are those of services. */
export class EndpointSliceController implements Controller {
  readonly name = 'endpointslice';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly metrics: EndpointSliceMetrics;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #written: PendingWrites<EndpointSlice>;
  readonly #triggers = new TriggerTimes();
  readonly #zones = new ZoneState();
  /** 'unknown': the nodes have changed since. */
  #shares: ZoneShares | 'unknown' = 'unknown';

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.metrics = new EndpointSliceMetrics(() => informers.endpointSlices.list().filter(isManaged).length);
    this.#written = new PendingWrites(informers.endpointSlices, context.clock);
    informers.services.onChange((changes) => {
      for (const { object } of changes) this.queue.add(objectKey(object));
    });
    informers.pods.onChange((changes) => {
      const services = changes.length === 0 ? [] : informers.services.list();
      for (const change of changes) for (const key of servicesOfChange(change, services)) this.queue.add(key);
    });
    informers.endpointSlices.onChange((changes) => {
      for (const change of changes) {
        if (isManaged(change.object)) this.#enqueueOwner(change.object);
        if (change.type === 'modified' && isManaged(change.old)) this.#enqueueOwner(change.old);
      }
    });
    informers.nodes.onChange((changes) => {
      let zonesChange = false;
      for (const change of changes) {
        const { object } = change;
        const sameZone =
          change.type === 'modified' &&
          change.old.metadata.labels?.[ZONE_LABEL] === object.metadata.labels?.[ZONE_LABEL];
        if (!sameZone) this.#enqueueNode(object.metadata.name);
        if (!sameZone || isZoneNode(change.old) !== isZoneNode(object)) zonesChange = true;
      }
      if (!zonesChange) return;
      this.#shares = 'unknown';
      for (const key of this.#zones.overloaded(this.#currentShares())) this.queue.add(key);
    });
  }

  #currentShares(): ZoneShares {
    if (this.#shares === 'unknown') this.#shares = zoneShares(this.#informers.nodes.list());
    return this.#shares;
  }

  #enqueueOwner(slice: EndpointSlice): void {
    const name = slice.metadata.labels?.[SERVICE_NAME_LABEL] ?? '';
    if (name !== '') this.queue.add(`${slice.metadata.namespace}/${name}`);
  }

  /** A node that comes has pods that were left out; one whose zone changes has endpoints in another zone. */
  #enqueueNode(name: string): void {
    const services = this.#informers.services.list();
    for (const pod of this.#informers.pods.list()) {
      if (pod.spec.nodeName !== name) continue;
      for (const key of servicesOfChange({ type: 'added', object: pod }, services)) this.queue.add(key);
    }
  }

  async sync(key: string): Promise<void> {
    const service = this.#informers.services.get(key);
    if (service === undefined) {
      this.#triggers.forget(key);
      this.#written.forget(key);
      this.#zones.forget(key);
      return;
    }
    if (!hasOwnEndpoints(service)) return;
    // The change that shows what was written brings the key back.
    if (!this.#written.settled(key)) {
      this.metrics.synced('stale');
      return;
    }
    const pods = podsOf(service, this.#informers.pods.list());
    const trigger = this.#triggers.next(key, service, pods);
    const existing = this.#informers.endpointSlices
      .list()
      .filter((slice) => isManaged(slice) && ownerKey(slice) === key && slice.metadata.deletionTimestamp === undefined);
    const nodeOf = (name: string): Node | undefined => this.#informers.nodes.get(name);
    const plan = planSlices(service, pods, nodeOf, existing, MAX_ENDPOINTS, this.#currentShares());
    const events = this.#zones.planned(key, plan);
    try {
      await this.#perform(key, service, plan, trigger);
      const [missing] = plan.withoutNode;
      if (missing !== undefined) {
        throw new Error(`skipping Pod ${missing.pod} for Service ${key}: Node ${missing.node} Not Found`);
      }
      this.metrics.synced('success');
    } catch (error) {
      this.metrics.synced('error');
      if (isConflict(error)) throw error;
      const message = `Error updating Endpoint Slices for Service ${key}: ${errorMessage(error)}`;
      this.#context.recorder.event(subjectOf(SERVICE, service), 'Warning', 'FailedToUpdateEndpointSlices', message);
      throw error;
    } finally {
      for (const { type, reason, message } of events) {
        this.#context.recorder.event(subjectOf(SERVICE, service), type, reason, message);
      }
    }
  }

  async #perform(
    key: string,
    service: Service,
    { create, update, remove }: ReturnType<typeof planSlices>,
    trigger: EpochMs | undefined,
  ): Promise<void> {
    const { client } = this.#context;
    const { namespace, name } = service.metadata;
    const { apiVersion, kind, plural } = ENDPOINT_SLICE;
    const at = namespace === undefined ? {} : { namespace };
    // A service on its way out gets nothing new: the garbage collector would race with it.
    for (const slice of service.metadata.deletionTimestamp === undefined ? create : []) {
      const metadata = { ...slice.metadata, annotations: withTriggerTime({}, trigger) };
      try {
        const path = resourcePath(apiVersion, plural, at);
        this.#written.written(key, await client.create<EndpointSlice>(path, { ...slice, apiVersion, kind, metadata }));
        this.metrics.changed('create');
      } catch (error) {
        if (isNamespaceTerminating(error)) return;
        if (isConflict(error)) throw error;
        throw new Error(`failed to create EndpointSlice for Service ${key}: ${errorMessage(error)}`, { cause: error });
      }
    }
    for (const slice of update) {
      const metadata = { ...slice.metadata, annotations: withTriggerTime(slice.metadata.annotations, trigger) };
      try {
        const body = { ...slice, apiVersion, kind, metadata };
        this.#written.written(key, await client.replace<EndpointSlice>(pathOf(ENDPOINT_SLICE, slice), body));
        this.metrics.changed('update');
      } catch (error) {
        if (isConflict(error)) throw error;
        const what = `failed to update ${slice.metadata.name} EndpointSlice for Service ${namespace}/${name}`;
        throw new Error(`${what}: ${errorMessage(error)}`, { cause: error });
      }
    }
    for (const slice of remove) {
      await client.delete(pathOf(ENDPOINT_SLICE, slice)).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
      this.#written.deleted(key, slice);
      this.metrics.changed('delete');
    }
  }
}

function ownerKey({ metadata }: EndpointSlice): string {
  return `${metadata.namespace}/${metadata.labels?.[SERVICE_NAME_LABEL] ?? ''}`;
}

function isManaged({ metadata }: EndpointSlice): boolean {
  return metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY;
}
