// The service controller with the simplest of clouds: a pool of addresses. It gives each Service of type LoadBalancer one of them, and takes it
// back when the Service is gone or of another type; who answers for the address is not its concern. addresses.ts decides.

import { isNotFound } from '../../../client/errors.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Service } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { hasFinalizer } from '../../storage/write.ts';
import { pathOf, SERVICE, subjectOf } from '../shared/objects.ts';
import {
  type AddressPool,
  addressPool,
  changeEvent,
  chooseAddress,
  currentAddress,
  inPool,
  LB_FINALIZER,
  needsCleanup,
  wantsLoadBalancer,
} from './addresses.ts';
import { takesLoadBalancers } from './nodes.ts';

/** Pauses after a failure, as upstream's. ms */
const FIRST_RETRY_MS = 5_000;
const LAST_RETRY_MS = 300_000;
/** Keys are those of services. */
export class ServiceLbController implements Controller {
  readonly name = 'service-lb';
  /** One at a time: each choice sees the ones before. */
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Pick<Informers, 'services' | 'nodes'>;
  readonly #pool: AddressPool | undefined;
  /** Whose an address is; what the cache does not show yet is in it. */
  readonly #owners = new Map<string, string>();
  /** For which there was no address. */
  readonly #waiting = new Set<string>();
  /** Services with a change that concerns their load balancers: these are ensured again. */
  readonly #changed = new Set<string>();

  /** Without a range it does nothing: load balancers are another program's. */
  constructor(context: ControllerContext, informers: Pick<Informers, 'services' | 'nodes'>, range: string | undefined) {
    this.#context = context;
    this.#informers = informers;
    this.#pool = range === undefined ? undefined : addressPool(range);
    this.queue = new WorkQueue({ clock: context.clock, initialDelayMs: FIRST_RETRY_MS, maxDelayMs: LAST_RETRY_MS });
    const pool = this.#pool;
    if (pool === undefined) return;
    informers.services.onChange((changes) => {
      // Of two that have the same address the older one keeps it.
      const inOrder = [...changes].sort((a, b) => (madeAt(a.object) < madeAt(b.object) ? -1 : 1));
      for (const change of inOrder) this.#serviceChanged(pool, change);
    });
  }

  #serviceChanged(pool: AddressPool, change: Change<Service>): void {
    const { object } = change;
    const key = objectKey(object);
    if (change.type === 'removed') {
      this.#release(key);
      this.#changed.delete(key);
      return;
    }
    const address = currentAddress(object);
    if (address !== undefined && wantsLoadBalancer(object) && inPool(pool, address)) {
      if (!this.#owners.has(address)) this.#owners.set(address, key);
    }
    const event = change.type === 'modified' ? changeEvent(change.old, object) : undefined;
    if (event !== undefined) {
      this.#changed.add(key);
      if (event !== 'silent') this.#event(object, 'Normal', ...event);
    }
    if (event !== undefined || wantsLoadBalancer(object) || needsCleanup(object)) this.queue.add(key);
  }

  async sync(key: string): Promise<void> {
    const service = this.#informers.services.get(key);
    const pool = this.#pool;
    if (service === undefined || pool === undefined) return;
    try {
      if (needsCleanup(service)) await this.#remove(key, service);
      else if (wantsLoadBalancer(service) && service.metadata.deletionTimestamp === undefined) {
        await this.#ensure(pool, key, service);
      } else this.#release(key);
    } catch (error) {
      // It has gone meanwhile.
      if (isNotFound(error)) return;
      const message = `Error syncing load balancer: ${errorMessage(error)}`;
      this.#event(service, 'Warning', 'SyncLoadBalancerFailed', message);
      throw error;
    }
  }

  async #ensure(pool: AddressPool, key: string, service: Service): Promise<void> {
    const others = new Map([...this.#owners].filter(([, owner]) => owner !== key));
    const choice = chooseAddress(pool, service, others);
    const before = currentAddress(service);
    const address = 'address' in choice ? choice.address : undefined;
    const isDone = hasFinalizer(service, LB_FINALIZER) && address !== undefined && address === before;
    if (isDone && !this.#changed.has(key)) return;
    this.#event(service, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer');
    await failing('failed to add load balancer cleanup finalizer', this.#setFinalizer(service, true));
    if (!this.#informers.nodes.list().some(takesLoadBalancers)) {
      this.#event(service, 'Warning', 'UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer');
    }
    if ('problem' in choice) {
      this.#waiting.add(key);
      throw new Error(`failed to ensure load balancer: ${choice.problem}`);
    }
    if (this.#owners.get(choice.address) !== key) this.#release(key);
    this.#owners.set(choice.address, key);
    if (choice.address !== before) {
      const loadBalancer = { ingress: [{ ip: choice.address, ipMode: 'VIP' }] };
      const path = pathOf(SERVICE, service, 'status');
      const written = this.#context.client.patch(path, { status: { loadBalancer } }, 'merge');
      await failing('failed to update load balancer status', written);
    }
    this.#event(service, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer');
    this.#changed.delete(key);
    this.#waiting.delete(key);
  }

  async #remove(key: string, service: Service): Promise<void> {
    this.#event(service, 'Normal', 'DeletingLoadBalancer', 'Deleting load balancer');
    // Where the Service is of another type now, the server has emptied its status.
    await failing('failed to remove load balancer cleanup finalizer', this.#setFinalizer(service, false));
    this.#release(key);
    this.#changed.delete(key);
    this.#event(service, 'Normal', 'DeletedLoadBalancer', 'Deleted load balancer');
  }

  /** Names the finalizer alone, so that it does not matter what else has changed meanwhile. */
  async #setFinalizer(service: Service, isWanted: boolean): Promise<void> {
    if (hasFinalizer(service, LB_FINALIZER) === isWanted) return;
    const finalizers = isWanted ? 'finalizers' : '$deleteFromPrimitiveList/finalizers';
    const body = { metadata: { uid: service.metadata.uid, [finalizers]: [LB_FINALIZER] } };
    await this.#context.client.patch(pathOf(SERVICE, service), body, 'strategic');
  }

  #event(service: Service, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.recorder.event(subjectOf(SERVICE, service), type, reason, message);
  }

  /** Its addresses are free, and those that wait for one are tried again. */
  #release(key: string): void {
    this.#waiting.delete(key);
    let isFreed = false;
    for (const [address, owner] of this.#owners) {
      if (owner !== key) continue;
      this.#owners.delete(address);
      isFreed = true;
    }
    if (isFreed) for (const other of this.#waiting) if (other !== key) this.queue.add(other);
  }
}

const madeAt = ({ metadata }: Service): string => metadata.creationTimestamp ?? '';

/** Puts what failed in front of the error. */
async function failing(what: string, work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (isNotFound(error)) throw error;
    throw new Error(`${what}: ${errorMessage(error)}`, { cause: error });
  }
}
