// The server's own Lease in kube-system, as upstream's APIServerIdentity has it: which API servers of the cluster live. Each one renews
// its own, and removes those that are no longer renewed. Nothing here decides by them.

import { createHash } from 'node:crypto';
import type { Lease } from 'kubernetes-types/coordination/v1';
import { base32 } from '../lib/base32.ts';
import { type Clock, type EpochMs, plusMs, type Timer } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { parseRfc3339, rfc3339Micro } from '../lib/rfc3339.ts';
import type { KubeObject, ResourceKind } from './kinds/resource.ts';
import { as } from './kinds/shapes.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';
import { parseObject } from './storage/change.ts';

/** kube-apiserver's. */
const RENEW_MS = 10_000;
const DURATION_S = 3600;
const COLLECT_MS = 3_600_000;

const GROUP = 'coordination.k8s.io';
const NAMESPACE = 'kube-system';
const COMPONENT = 'kube-apiserver';
const IDENTITY_LABEL = 'apiserver.kubernetes.io/identity';
const HOSTNAME_LABEL = 'kubernetes.io/hostname';

const OPTIONS: WriteOptions = {
  caller: { name: 'system:apiserver', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Ignore',
  fieldManager: COMPONENT,
  warn: () => undefined,
};

function withLength(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** The name of a server's Lease: the same at each start on a machine. Pure. */
export function identityOf(hostname: string): string {
  const hash = createHash('sha256').update(withLength(hostname)).update(withLength(COMPONENT)).digest();
  return `apiserver-${base32(hash.subarray(0, 16)).toLowerCase()}`;
}

/** A lease without a time or a duration identifies no server. Pure. */
export function isExpired(lease: KubeObject, now: EpochMs): boolean {
  const { renewTime, leaseDurationSeconds } = as<Lease>(lease, 'Lease').spec ?? {};
  const renewed = parseRfc3339(renewTime);
  if (renewed === undefined || leaseDurationSeconds === undefined) return true;
  return plusMs(renewed, leaseDurationSeconds * 1000) < now;
}

export interface IdentityLeaseParts {
  readonly registry: Registry;
  readonly hostname: string;
  /** Of this process: a new one at each start. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export class IdentityLease {
  readonly #parts: IdentityLeaseParts;
  readonly #name: string;
  #timers: readonly Timer[] = [];
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** What failed last; logged once. */
  #failure = '';

  constructor(parts: IdentityLeaseParts) {
    this.#parts = parts;
    this.#name = identityOf(parts.hostname);
  }

  /** Resolves when the Lease is there, or the log says why it is not. */
  async start(): Promise<void> {
    if (!this.#parts.registry.hasRow(GROUP, 'leases')) return;
    await this.#every(RENEW_MS, () => this.#renew());
    await this.#every(COLLECT_MS, () => this.#collect());
  }

  /** The Lease stays, as upstream's does: it expires. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) timer.cancel();
    await this.#running;
  }

  /** Now, and again and again; one thing after another. */
  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    const { clock } = this.#parts;
    let timer: Timer;
    const again = async (): Promise<void> => {
      await this.#attempt(work);
      if (this.#isStopped) return;
      const next = clock.after(ms, () => {
        this.#running = this.#running.then(again);
      });
      this.#timers = [...this.#timers.filter((each) => each !== timer), next];
      timer = next;
    };
    await again();
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failure = '';
    } catch (error) {
      const failure = errorMessage(error);
      if (failure !== this.#failure) this.#parts.log(`lease ${this.#name}: ${failure}`);
      this.#failure = failure;
    }
  }

  async #renew(): Promise<void> {
    const { registry, hostname, instance, clock } = this.#parts;
    const row = registry.rowOf(GROUP, 'leases');
    const labels = { [IDENTITY_LABEL]: COMPONENT, [HOSTNAME_LABEL]: hostname };
    const times = { leaseDurationSeconds: DURATION_S, renewTime: rfc3339Micro(clock.now()) };
    await registry.store.commit(() => {
      const stored = registry.find(row, NAMESPACE, this.#name);
      if (stored === undefined) {
        const spec = { holderIdentity: `${this.#name}_${instance}`, ...times };
        const lease = newObject(row, this.#name, { spec });
        lease.metadata.labels = labels;
        createObject(registry, row, NAMESPACE, lease, OPTIONS);
        return;
      }
      mutateStored(registry, row, stored, false, (lease) => {
        lease.metadata.labels = { ...lease.metadata.labels, ...labels };
        lease['spec'] = { ...as<Lease>(lease, 'Lease').spec, ...times };
      });
    });
  }

  async #collect(): Promise<void> {
    const { registry, clock } = this.#parts;
    const row = registry.rowOf(GROUP, 'leases');
    const expired = [...registry.store.scan(registry.resource(row), NAMESPACE)]
      .filter(({ text }) => this.#isRemovable(parseObject(text), clock.now()))
      .map(({ name }) => name);
    for (const name of expired) await registry.store.commit(() => this.#remove(row, name));
  }

  /** Read again before it is removed: another server may have renewed or removed it. */
  #remove(row: ResourceKind, name: string): void {
    const { registry, clock } = this.#parts;
    const stored = registry.find(row, NAMESPACE, name);
    if (stored === undefined) return;
    const lease = parseObject(stored.text);
    if (this.#isRemovable(lease, clock.now())) registry.remove(row, registry.key(row, NAMESPACE, name), lease, stored);
  }

  #isRemovable(lease: KubeObject, now: EpochMs): boolean {
    return lease.metadata.labels?.[IDENTITY_LABEL] === COMPONENT && isExpired(lease, now);
  }
}
