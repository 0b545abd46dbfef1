// Renews the node's Lease in kube-node-lease: the sign of life that the control plane watches. A quarter of the lease's
// duration passes between renewals (KEP-589); failures are retried sooner, for ever.

import type { ApiClient } from '../../client/api.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Lease } from '../../client/types.ts';
import type { BackoffPolicy } from '../../lib/backoff.ts';
import type { Clock, EpochMs } from '../../lib/clock.ts';
import { repeat, retryUntilAborted } from '../../lib/retry.ts';
import { rfc3339Micro } from '../../lib/rfc3339.ts';

const NAMESPACE = 'kube-node-lease';
const API = 'coordination.k8s.io/v1';
const RENEW_FRACTION = 0.25;
const JITTER = 0.04;
/** The kubelet's figures for a lease that cannot be written. */
const RETRY: BackoffPolicy = { initialMs: 200, maxMs: 7000, factor: 2, resetMs: 60_000 };

export interface LeaseOptions {
  readonly nodeName: string;
  readonly durationSeconds: number;
  readonly client: Pick<ApiClient, 'get' | 'create' | 'replace'>;
  readonly clock: Clock;
  readonly random: () => number;
  /** uid of the Node; undefined while there is none, and then no lease is made: nothing would ever remove it. */
  readonly nodeUid: () => string | undefined;
  readonly onFailure: (error: unknown) => void;
  readonly onRenewed: () => void;
}

/** The lease as it should be now. `renewedAt` in epoch ms; the API keeps microseconds. */
export function leaseFor(
  nodeName: string,
  nodeUid: string,
  durationSeconds: number,
  renewedAt: EpochMs,
  known?: Lease,
): object {
  return {
    apiVersion: API,
    kind: 'Lease',
    metadata: {
      ...known?.metadata,
      name: nodeName,
      namespace: NAMESPACE,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeUid }],
    },
    spec: {
      ...known?.spec,
      holderIdentity: nodeName,
      leaseDurationSeconds: durationSeconds,
      renewTime: rfc3339Micro(renewedAt),
    },
  };
}

export class LeaseKeeper {
  readonly #options: LeaseOptions;
  readonly #path: string;
  #lease: Lease | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#path = resourcePath(API, 'leases', { namespace: NAMESPACE, name: options.nodeName });
  }

  /** Renews until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, durationSeconds, random, onFailure, onRenewed } = this.#options;
    const intervalMs = durationSeconds * 1000 * RENEW_FRACTION;
    const policy = {
      ...RETRY,
      initialMs: Math.min(RETRY.initialMs, intervalMs),
      maxMs: Math.min(RETRY.maxMs, intervalMs),
    };
    const onFailedTry = (error: unknown): void => {
      // The stored lease may have been replaced.
      this.#lease = undefined;
      onFailure(error);
    };
    const renewed = async (): Promise<number> => {
      const options = { clock, policy, signal, onFailure: onFailedTry };
      if ((await retryUntilAborted(() => this.renew(signal), options)) === true) onRenewed();
      return intervalMs * (1 + JITTER * random());
    };
    await repeat(renewed, { clock, everyMs: intervalMs, signal });
  }

  /** One renewal. False when there is no Node yet to hang the lease on. */
  async renew(signal?: AbortSignal): Promise<boolean> {
    const { client, clock, durationSeconds, nodeName } = this.#options;
    const uid = this.#options.nodeUid();
    if (uid === undefined) return false;
    const request = { timeoutMs: durationSeconds * 1000 * RENEW_FRACTION, ...(signal === undefined ? {} : { signal }) };
    this.#lease ??= await this.#get(request);
    const lease = leaseFor(nodeName, uid, durationSeconds, clock.now(), this.#lease);
    try {
      this.#lease =
        this.#lease === undefined
          ? await client.create<Lease>(resourcePath(API, 'leases', { namespace: NAMESPACE }), lease, request)
          : await client.replace<Lease>(this.#path, lease, request);
      return true;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error) && !isAlreadyExists(error)) throw error;
      // Changed, deleted or made by someone else: once more from what is there.
      this.#lease = await this.#get(request);
      const again = leaseFor(nodeName, uid, durationSeconds, clock.now(), this.#lease);
      this.#lease =
        this.#lease === undefined
          ? await client.create<Lease>(resourcePath(API, 'leases', { namespace: NAMESPACE }), again, request)
          : await client.replace<Lease>(this.#path, again, request);
      return true;
    }
  }

  async #get(request: { readonly timeoutMs: number; readonly signal?: AbortSignal }): Promise<Lease | undefined> {
    try {
      return await this.#options.client.get<Lease>(this.#path, undefined, request);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}
