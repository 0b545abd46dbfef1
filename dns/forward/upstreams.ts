// The upstreams of one `forward`: which is tried next, and which are down. The order is pure; a failed question leads to health
// checks, and only these count: one answer, whatever it says, and the upstream is well.

import type { Clock } from '../../lib/clock.ts';
import { retryUntilAborted, steadyPauses } from '../../lib/retry.ts';
import type { ForwardSettings, Upstream } from '../corefile/settings.ts';
import type { Transport } from '../wire/finish.ts';
import { Type } from '../wire/message.ts';
import { makeQuery } from '../wire/records.ts';
import { ConnectionPool, type PoolCounts } from './connections.ts';

const CHECK_TIMEOUT_MS = 1000;
const MAX_ID = 65_536;

/** The order in which upstreams are tried. `turn`: how many questions came before. */
export function upstreamOrder<T>(
  all: readonly T[],
  policy: ForwardSettings['policy'],
  turn: number,
  random: () => number,
): readonly T[] {
  if (policy === 'sequential') return all;
  const first = policy === 'round_robin' ? turn % all.length : Math.floor(random() * all.length);
  const chosen = [...all.slice(first), ...all.slice(0, first)];
  if (policy === 'round_robin') return chosen;
  const [head, ...rest] = chosen;
  const mixed = rest
    .map((each) => ({ each, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ each }) => each);
  return head === undefined ? [] : [head, ...mixed];
}

export interface UpstreamCounts {
  readonly pool: PoolCounts;
  checkFailed(): void;
}

export interface UpstreamParts {
  readonly clock: Clock;
  /** 0 ≤ x < 1; unpredictable, as ids come from it. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly counts: (upstream: string) => UpstreamCounts;
}

export class UpstreamServer {
  /** "address:port". */
  readonly name: string;
  readonly #settings: ForwardSettings;
  readonly #parts: UpstreamParts;
  readonly #counts: UpstreamCounts;
  readonly #pool: ConnectionPool;
  #fails = 0;
  #isChecking = false;

  constructor(upstream: Upstream, settings: ForwardSettings, parts: UpstreamParts) {
    const { address, port } = upstream;
    this.name = `${address.includes(':') ? `[${address}]` : address}:${port}`;
    this.#settings = settings;
    this.#parts = parts;
    this.#counts = parts.counts(this.name);
    this.#pool = new ConnectionPool(upstream, {
      clock: parts.clock,
      expireMs: settings.expireMs,
      maxIdle: settings.maxIdleConns,
      counts: this.#counts.pool,
    });
  }

  get isDown(): boolean {
    return this.#settings.maxFails > 0 && this.#fails > this.#settings.maxFails;
  }

  /** The query gets an id of its own. Rejects as ConnectionPool does. */
  exchange(query: Buffer, transport: Transport, timeoutMs = this.#settings.readTimeoutMs): Promise<Buffer> {
    const own = Buffer.from(query);
    own.writeUInt16BE(Math.floor(this.#parts.random() * MAX_ID), 0);
    return this.#pool.exchange(own, transport, timeoutMs);
  }

  /** Checks until there is an answer. Does nothing while it does so. */
  check(): void {
    const { maxFails, healthCheckMs } = this.#settings;
    const { clock, signal } = this.#parts;
    if (maxFails === 0 || this.#isChecking) return;
    this.#isChecking = true;
    const policy = steadyPauses(Math.max(1, healthCheckMs));
    const checking = retryUntilAborted(() => this.#checkOnce(), { clock, policy, signal });
    void checking.finally(() => {
      this.#isChecking = false;
    });
  }

  async #checkOnce(): Promise<void> {
    const { healthCheckDomain, healthCheckRecursion, forceTcp } = this.#settings;
    const query = makeQuery(0, healthCheckDomain === '' ? '.' : healthCheckDomain, Type.NS, healthCheckRecursion);
    try {
      await this.exchange(query, forceTcp ? 'tcp' : 'udp', CHECK_TIMEOUT_MS);
    } catch (error) {
      this.#fails++;
      this.#counts.checkFailed();
      throw error;
    }
    this.#fails = 0;
  }

  close(): void {
    this.#pool.close();
  }
}
