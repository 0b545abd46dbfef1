// Leader election by a Lease, as client-go does it: of the processes that share a lease's name, the holder works and the others
// wait until it has not been renewed for as long as it says. `decideElection` decides; the rest reads, writes and waits.

import type { Lease as CoreLease } from 'kubernetes-types/coordination/v1';
import { type Clock, type EpochMs, elapsedMs, type MonotonicMs } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { repeat, retry, retryUntilAborted, steadyPauses } from '../lib/retry.ts';
import { rfc3339Micro } from '../lib/rfc3339.ts';
import type { ApiClient } from './api.ts';
import { isConflict, isNotFound } from './errors.ts';
import { resourcePath } from './paths.ts';
import type { EventSubject } from './recorder.ts';
import type { Lease } from './types.ts';

const API = 'coordination.k8s.io/v1';

/** The figures of kube-controller-manager's and kube-scheduler's flags. */
export const LEADER_ELECTION_DEFAULTS = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

/** Tries to give a lease up, and the time between two, ms. */
const RELEASE_TRIES = 3;
const RELEASE_AGAIN_MS = 100;

/** Tries of those who wait are stretched by up to this factor, so that they do not come together. */
const JITTER = 1.2;

export interface LeaderElectionOptions {
  readonly client: Pick<ApiClient, 'get' | 'create' | 'replace'>;
  readonly clock: Clock;
  /** 0 ≤ x < 1. */
  readonly random: () => number;
  readonly namespace: string;
  readonly name: string;
  /** Of this process alone, among all that may hold the lease at the same time. */
  readonly identity: string;
  /** A lease that has not changed for as long as it says may be taken. ms. */
  readonly leaseDurationMs: number;
  /** The holder stops working when it could not renew for this long; less than the lease's duration. ms. */
  readonly renewDeadlineMs: number;
  /** Between two tries. ms. */
  readonly retryPeriodMs: number;
  readonly log: (message: string) => void;
  /** The Lease has a new holder: this process. */
  readonly onLeading?: (lease: EventSubject) => void;
}

/** A lease as this process last read it, and since when it has been the same. */
export interface ObservedLease {
  readonly lease: Lease;
  readonly since: MonotonicMs;
}

export type Election =
  /** Another process holds it. */
  | { readonly kind: 'wait'; readonly holder: string }
  | { readonly kind: 'write'; readonly spec: NonNullable<CoreLease['spec']> };

/** What to do about a lease; undefined where there is none yet. Times of other machines are never compared with this one's. */
export function decideElection(
  observed: ObservedLease | undefined,
  identity: string,
  leaseDurationMs: number,
  now: EpochMs,
  monotonic: MonotonicMs,
): Election {
  const time = rfc3339Micro(now);
  const held = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000), renewTime: time };
  const { spec } = observed?.lease ?? {};
  const holder = spec?.holderIdentity ?? '';
  const transitions = spec?.leaseTransitions ?? 0;
  if (observed === undefined) return { kind: 'write', spec: { ...held, acquireTime: time, leaseTransitions: 0 } };
  if (holder === identity) {
    return { kind: 'write', spec: { ...spec, ...held, acquireTime: spec?.acquireTime ?? time } };
  }
  const validMs = (spec?.leaseDurationSeconds ?? 0) * 1000;
  if (holder !== '' && elapsedMs(observed.since, monotonic) < validMs) return { kind: 'wait', holder };
  return { kind: 'write', spec: { ...held, acquireTime: time, leaseTransitions: transitions + 1 } };
}

export class LeaderElector {
  readonly #options: LeaderElectionOptions;
  readonly #path: string;
  #observed: ObservedLease | undefined;
  #holder = '';
  /** The stored lease may be another one than the observed: it was written by others, or a write failed. */
  #mustRead = true;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#path = resourcePath(API, 'leases', { namespace: options.namespace, name: options.name });
  }

  /** Resolves once this process holds the lease, or once `signal` has aborted. */
  async acquire(signal: AbortSignal): Promise<void> {
    const { clock, random, retryPeriodMs, name, log, onLeading } = this.#options;
    const everyMs = retryPeriodMs * (1 + random() * JITTER);
    await retryUntilAborted(
      async () => {
        if (!(await this.#tryToHold(signal))) throw new Error(`${name} is held by "${this.#holder}"`);
      },
      { clock, policy: steadyPauses(everyMs), signal },
    );
    if (signal.aborted) return;
    const lease = this.#observed?.lease;
    if (lease !== undefined) onLeading?.({ apiVersion: API, kind: 'Lease', metadata: lease.metadata });
    log(`${name}: this process is the leader`);
  }

  /** Renews until `signal` aborts, then gives the lease up; throws when it could not be renewed in time, or has been taken. */
  async renew(signal: AbortSignal): Promise<void> {
    const { clock, identity, retryPeriodMs, renewDeadlineMs, name } = this.#options;
    let last = clock.monotonic();
    await repeat(
      async () => {
        if (await this.#tryToHold(signal)) last = clock.monotonic();
        else if (this.#holder !== identity || elapsedMs(last, clock.monotonic()) >= renewDeadlineMs) {
          if (signal.aborted) return undefined;
          throw new Error(`leader election lost: ${name} is held by "${this.#holder}"`);
        }
        return undefined;
      },
      { clock, everyMs: retryPeriodMs, firstMs: retryPeriodMs, signal },
    );
    await this.#release();
  }

  /** One try. A failed request is logged and is no success. */
  async #tryToHold(signal: AbortSignal): Promise<boolean> {
    const { client, clock, identity, leaseDurationMs, renewDeadlineMs, namespace, name, log } = this.#options;
    const request = { signal, timeoutMs: renewDeadlineMs };
    try {
      if (this.#mustRead) await this.#read(request);
      const election = decideElection(this.#observed, identity, leaseDurationMs, clock.now(), clock.monotonic());
      if (election.kind === 'wait') {
        if (election.holder !== this.#holder) log(`${name}: the leader is ${election.holder}`);
        this.#holder = election.holder;
        return false;
      }
      const { spec } = election;
      const metadata = this.#observed?.lease.metadata ?? { namespace, name };
      const body = { apiVersion: API, kind: 'Lease', metadata, spec };
      const lease =
        this.#observed === undefined
          ? await client.create<Lease>(resourcePath(API, 'leases', { namespace }), body, request)
          : await client.replace<Lease>(this.#path, body, request);
      this.#observed = { lease, since: clock.monotonic() };
      this.#holder = identity;
      this.#mustRead = false;
      return true;
    } catch (error) {
      this.#mustRead = true;
      if (!signal.aborted) log(`${name}: the lease is not renewed: ${errorMessage(error)}`);
      return false;
    }
  }

  async #read(request: { readonly signal?: AbortSignal; readonly timeoutMs: number }): Promise<void> {
    const { client, clock } = this.#options;
    try {
      const lease = await client.get<Lease>(this.#path, undefined, request);
      const isSame = lease.metadata.resourceVersion === this.#observed?.lease.metadata.resourceVersion;
      if (!isSame) this.#observed = { lease, since: clock.monotonic() };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#observed = undefined;
    }
  }

  /** So that the next leader need not wait. */
  async #release(): Promise<void> {
    const { clock, identity, retryPeriodMs, log, name } = this.#options;
    if (this.#holder !== identity) return;
    const request = { timeoutMs: retryPeriodMs };
    // A renewal that was under way when the signal aborted may have been written, or be written now.
    const policy = steadyPauses(RELEASE_AGAIN_MS);
    await retry(() => this.#giveUp(request), { clock, policy, maxTries: RELEASE_TRIES, mends: isConflict }).catch(
      (error: unknown) => log(`${name}: the lease is not given up: ${errorMessage(error)}`),
    );
  }

  async #giveUp(request: { readonly timeoutMs: number }): Promise<void> {
    const { client, clock, identity } = this.#options;
    if (this.#mustRead) await this.#read(request);
    this.#mustRead = true;
    const lease = this.#observed?.lease;
    if (lease?.spec?.holderIdentity !== identity) return;
    const { holderIdentity: _, ...rest } = lease.spec;
    const spec = { ...rest, leaseDurationSeconds: 1, renewTime: rfc3339Micro(clock.now()) };
    await client.replace(this.#path, { ...lease, apiVersion: API, kind: 'Lease', spec }, request);
  }
}
