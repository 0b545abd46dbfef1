// The upstreams of one `forward`: which is tried next, and which are down. The order is pure; a failed question leads to health
// checks, and only these count: one answer, whatever it says, and the upstream is well.

import type { Clock } from '../../lib/clock.ts';
import { retryUntilAborted, steadyPauses } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { ForwardSettings, Upstream } from '../corefile/settings.ts';
import type { Transport } from '../wire/finish.ts';
import { type Question, Type } from '../wire/message.ts';
import { typeText } from '../wire/names.ts';
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
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** 0 ≤ x < 1; unpredictable, as ids come from it. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly counts: (upstream: string) => UpstreamCounts;
}

/** One exchange with an upstream: a span of the name `purpose`. */
export interface Query {
  readonly purpose: 'forward' | 'health check';
  readonly question: Pick<Question, 'name' | 'type'>;
  readonly bytes: Buffer;
  readonly transport: Transport;
  readonly timeoutMs?: number;
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
  exchange({ purpose, question, bytes, transport, timeoutMs }: Query): Promise<Buffer> {
    const own = Buffer.from(bytes);
    own.writeUInt16BE(Math.floor(this.#parts.random() * MAX_ID), 0);
    const attributes = { upstream: this.name, transport, question: question.name, type: typeText(question.type) };
    return this.#parts.tracer.span('dns', purpose, attributes, () =>
      this.#pool.exchange(own, transport, timeoutMs ?? this.#settings.readTimeoutMs),
    );
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
    const question = { name: healthCheckDomain === '' ? '.' : healthCheckDomain, type: Type.NS };
    try {
      await this.exchange({
        purpose: 'health check',
        question,
        bytes: makeQuery(0, question.name, question.type, healthCheckRecursion),
        transport: forceTcp ? 'tcp' : 'udp',
        timeoutMs: CHECK_TIMEOUT_MS,
      });
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
