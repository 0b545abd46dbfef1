// The EndpointSlice mirroring controller: Endpoints that someone writes by hand appear as slices, which is what proxies read.
// mirror.ts decides.

import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey, type ReadableStore } from '../../../client/store.ts';
import type { EndpointSlice, Endpoints, Service } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { isNamespaceTerminating } from '../shared/namespace-terminating.ts';
import { ENDPOINT_SLICE, ENDPOINTS, pathOf, subjectOf } from '../shared/objects.ts';
import { PendingWrites } from '../shared/pending-writes.ts';
import { MANAGED_BY_LABEL, SERVICE_NAME_LABEL } from '../shared/service-pods.ts';
import { MANAGED_BY, MAX_PER_SUBSET, type MirrorPlan, mayMirror, planMirror } from './mirror.ts';

interface Needed {
  readonly services: ReadableStore<Service>;
  readonly endpoints: ReadableStore<Endpoints>;
  readonly endpointSlices: ReadableStore<EndpointSlice>;
}

/** Keys are those of Endpoints, and of services, which have the same. */
export class EndpointSliceMirroringController implements Controller {
  readonly name = 'endpointslice-mirroring';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #written: PendingWrites<EndpointSlice>;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#written = new PendingWrites(informers.endpointSlices, context.clock);
    informers.endpoints.onChange((changes) => {
      for (const { object } of changes) this.queue.add(objectKey(object));
    });
    informers.services.onChange((changes) => {
      for (const { object } of changes) this.queue.add(objectKey(object));
    });
    informers.endpointSlices.onChange((changes) => {
      for (const change of changes) {
        if (isManaged(change.object)) this.queue.add(keyOf(change.object));
        if (change.type === 'modified' && isManaged(change.old)) this.queue.add(keyOf(change.old));
      }
    });
  }

  async sync(key: string): Promise<void> {
    if (!this.#written.settled(key)) return;
    const endpoints = this.#informers.endpoints.get(key);
    const existing = this.#informers.endpointSlices
      .list()
      .filter((slice) => isManaged(slice) && keyOf(slice) === key && slice.metadata.deletionTimestamp === undefined);
    if (endpoints === undefined || !mayMirror(endpoints, this.#informers.services.get(key))) {
      for (const slice of existing) await this.#delete(key, slice);
      return;
    }
    const plan = planMirror(endpoints, existing);
    this.#report(endpoints, plan);
    await this.#perform(key, endpoints, plan);
  }

  #report(endpoints: Endpoints, { invalid, skipped }: MirrorPlan): void {
    const { recorder } = this.#context;
    const subject = subjectOf(ENDPOINTS, endpoints);
    if (invalid > 0) {
      const message = `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`;
      recorder.event(subject, 'Warning', 'InvalidIPAddress', message);
    }
    if (skipped > 0) {
      const rule = `A max of ${MAX_PER_SUBSET} addresses can be mirrored to EndpointSlices per Endpoints subset.`;
      const message = `${rule} ${skipped + invalid} addresses were skipped`;
      recorder.event(subject, 'Warning', 'TooManyAddressesToMirror', message);
    }
  }

  async #perform(key: string, { metadata }: Endpoints, { create, update, remove }: MirrorPlan): Promise<void> {
    const { client } = this.#context;
    const { apiVersion, kind, plural } = ENDPOINT_SLICE;
    const { namespace = '', name } = metadata;
    for (const body of metadata.deletionTimestamp === undefined ? create : []) {
      const made = { ...body, apiVersion, kind, metadata: { ...body.metadata, namespace, generateName: `${name}-` } };
      try {
        const path = resourcePath(apiVersion, plural, { namespace });
        this.#written.written(key, await client.create<EndpointSlice>(path, made));
      } catch (error) {
        if (isNamespaceTerminating(error)) return;
        throw error;
      }
    }
    for (const { stored, body } of update) {
      const changed = { ...stored, ...body, apiVersion, kind, metadata: { ...stored.metadata, ...body.metadata } };
      this.#written.written(key, await client.replace<EndpointSlice>(pathOf(ENDPOINT_SLICE, stored), changed));
    }
    for (const slice of remove) await this.#delete(key, slice);
  }

  async #delete(key: string, slice: EndpointSlice): Promise<void> {
    await this.#context.client.delete(pathOf(ENDPOINT_SLICE, slice)).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    this.#written.deleted(key, slice);
  }
}

function isManaged({ metadata }: EndpointSlice): boolean {
  return metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY;
}

function keyOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace}/${metadata.labels?.[SERVICE_NAME_LABEL] ?? ''}`;
}
