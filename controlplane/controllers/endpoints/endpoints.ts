// The Endpoints controller: the older form of what slices are, one object for each service that has a selector. subsets.ts decides.

import type { Endpoints as CoreEndpoints } from 'kubernetes-types/core/v1';
import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey, type ReadableStore } from '../../../client/store.ts';
import type { Endpoints, Pod, Service } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { isNamespaceTerminating } from '../shared/namespace-terminating.ts';
import { ENDPOINTS, pathOf } from '../shared/objects.ts';
import { PendingWrites } from '../shared/pending-writes.ts';
import {
  HEADLESS_LABEL,
  hasOwnEndpoints,
  isHeadless,
  LEADER_ANNOTATION,
  podsOf,
  servicesOfChange,
} from '../shared/service-pods.ts';
import { TriggerTimes, withTriggerTime } from '../shared/trigger-time.ts';
import { subsetsOf, truncate } from './subsets.ts';

const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';
const MANAGED_BY = 'endpoints.kubernetes.io/managed-by';

interface Needed {
  readonly pods: ReadableStore<Pod>;
  readonly services: ReadableStore<Service>;
  readonly endpoints: ReadableStore<Endpoints>;
}

/** What is to be written, but for the time; undefined: it is so already. Pure. */
export function plannedEndpoints(
  service: Service,
  pods: readonly Pod[],
  current: Endpoints | undefined,
): Pick<CoreEndpoints, 'metadata' | 'subsets'> | undefined {
  const { subsets, truncated } = truncate(subsetsOf(service, pods));
  const labels = {
    ...service.metadata.labels,
    [MANAGED_BY]: 'endpoint-controller',
    ...(isHeadless(service) ? { [HEADLESS_LABEL]: '' } : {}),
  };
  const { [OVER_CAPACITY]: capacity, ...others } = current?.metadata.annotations ?? {};
  const same =
    current !== undefined &&
    sameJson(current.subsets ?? [], subsets) &&
    sameJson(current.metadata.labels ?? {}, labels) &&
    (capacity !== undefined) === truncated;
  if (same) return undefined;
  const { namespace, name } = service.metadata;
  const base = current?.metadata ?? { name, ...(namespace === undefined ? {} : { namespace }) };
  const annotations = truncated ? { ...others, [OVER_CAPACITY]: 'truncated' } : others;
  return { metadata: { ...base, labels, annotations }, subsets: [...subsets] };
}

/** Keys are those of services, and of Endpoints, which have the same. */
export class EndpointsController implements Controller {
  readonly name = 'endpoints';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #written: PendingWrites<Endpoints>;
  readonly #triggers = new TriggerTimes();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#written = new PendingWrites(informers.endpoints, context.clock);
    informers.services.onChange((changes) => {
      for (const { object } of changes) this.queue.add(objectKey(object));
    });
    informers.pods.onChange((changes) => {
      const services = changes.length === 0 ? [] : informers.services.list();
      for (const change of changes) for (const key of servicesOfChange(change, services)) this.queue.add(key);
    });
    let first = true;
    informers.endpoints.onChange((changes) => {
      for (const { object } of changes) {
        // Those without a service are someone's own, but for what the start finds: their service has gone meanwhile.
        const key = objectKey(object);
        if (first || informers.services.get(key) !== undefined) this.queue.add(key);
      }
      first = false;
    });
  }

  async sync(key: string): Promise<void> {
    const service = this.#informers.services.get(key);
    if (service === undefined) return await this.#remove(key);
    if (!hasOwnEndpoints(service) || !this.#written.settled(key)) return;
    const pods = podsOf(service, this.#informers.pods.list());
    const trigger = this.#triggers.next(key, service, pods);
    const current = this.#informers.endpoints.get(key);
    const planned = plannedEndpoints(service, pods, current);
    if (planned !== undefined) await this.#write(key, planned, current, trigger);
  }

  async #remove(key: string): Promise<void> {
    this.#triggers.forget(key);
    this.#written.forget(key);
    const stored = this.#informers.endpoints.get(key);
    if (stored === undefined || stored.metadata.annotations?.[LEADER_ANNOTATION] !== undefined) return;
    await this.#context.client
      .delete(pathOf(ENDPOINTS, stored), { preconditions: { uid: stored.metadata.uid } })
      .catch((error: unknown) => {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      });
  }

  async #write(
    key: string,
    { metadata, subsets }: Pick<CoreEndpoints, 'metadata' | 'subsets'>,
    current: Endpoints | undefined,
    trigger: EpochMs | undefined,
  ): Promise<void> {
    const { client, recorder } = this.#context;
    const { apiVersion, kind, plural } = ENDPOINTS;
    const annotations = withTriggerTime(metadata?.annotations, trigger);
    const body = { apiVersion, kind, metadata: { ...metadata, annotations }, subsets };
    const [namespace = '', name = ''] = key.split('/');
    try {
      const answer =
        current === undefined
          ? await client.create<Endpoints>(resourcePath(apiVersion, plural, { namespace }), body)
          : await client.replace<Endpoints>(pathOf(ENDPOINTS, current), body);
      this.#written.written(key, answer);
    } catch (error) {
      if (isNamespaceTerminating(error)) return;
      if (isConflict(error)) throw error;
      const [reason, message] =
        current === undefined
          ? ['FailedToCreateEndpoint', `Failed to create endpoint for service ${key}: ${errorMessage(error)}`]
          : ['FailedToUpdateEndpoint', `Failed to update endpoint ${key}: ${errorMessage(error)}`];
      recorder.event({ kind, apiVersion, metadata: { namespace, name, uid: '' } }, 'Warning', reason, message);
      throw error;
    }
  }
}
