// The plugin `forward`: one upstream after the other until one answers, for as long as there is time, and for so many questions at a
// time only. Answers are passed on as they are.

import { type Clock, elapsedMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { isBelow } from '../cluster/query.ts';
import type { ForwardSettings, Upstream } from '../corefile/settings.ts';
import type { Handler, Request, Result } from '../plugins/plugin.ts';
import type { Transport } from '../wire/finish.ts';
import { Flag, type Message, MessageError, parseMessage, Rcode, sameQuestion } from '../wire/message.ts';
import { IdleClosedError } from './connections.ts';
import { type Query, type UpstreamParts, UpstreamServer, upstreamOrder } from './upstreams.ts';

const NAME = 'forward';
/** For one question, all its tries. */
const DEADLINE_MS = 5000;
const TRIES_EACH = 2;
/** Questions at a time, where the Corefile has no bound: each has a socket. */
const MOST_AT_ONCE = 4096;
/** Connections that the other side may have closed meanwhile. */
const MOST_IDLE_CLOSED = 16;

export interface ForwardCounts {
  answered(upstream: string, rcode: number, ms: number): void;
  refused(): void;
  allDown(): void;
}

export interface ForwardParts extends UpstreamParts {
  readonly clock: Clock;
  readonly forwardCounts: ForwardCounts;
}

/** Whether the plugin is responsible for this name. */
export function forwardMatches({ from, except }: ForwardSettings, name: string): boolean {
  if (!isBelow(name, from)) return false;
  return name === from || !except.some((zone) => isBelow(name, zone));
}

export class Forwarder {
  readonly #settings: ForwardSettings;
  readonly #parts: ForwardParts;
  readonly #servers: readonly UpstreamServer[];
  #turn = 0;
  #running = 0;

  constructor(settings: ForwardSettings, upstreams: readonly Upstream[], parts: ForwardParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#servers = upstreams.map((upstream) => new UpstreamServer(upstream, settings, parts));
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }

  plugin(next: Handler): Handler {
    return async (request) => {
      if (!forwardMatches(this.#settings, request.question.name)) return next(request);
      const most = this.#settings.maxConcurrent === 0 ? MOST_AT_ONCE : this.#settings.maxConcurrent;
      if (this.#running >= most) {
        this.#parts.forwardCounts.refused();
        const error = `concurrent queries exceeded maximum ${most}`;
        return { kind: 'failure', by: NAME, rcode: Rcode.REFUSED, error };
      }
      this.#running++;
      try {
        return await this.#resolve(request);
      } finally {
        this.#running--;
      }
    };
  }

  async #resolve(request: Request): Promise<Result> {
    const { clock, random, forwardCounts } = this.#parts;
    const { maxConnectAttempts = TRIES_EACH * this.#servers.length, failFast, failover } = this.#settings;
    const order = upstreamOrder(this.#servers, this.#settings.policy, this.#turn++, random);
    const begun = clock.monotonic();
    let [failures, down, others] = [0, 0, 0];
    let lastError: unknown = new Error('no healthy proxies');
    for (let turn = 0; elapsedMs(begun, clock.monotonic()) < DEADLINE_MS; turn++) {
      let server = order[turn % order.length];
      if (turn % order.length === 0) down = 0;
      if (server === undefined) break;
      if (server.isDown) {
        if (++down < order.length) continue;
        forwardCounts.allDown();
        if (failFast) break;
        // The checks themselves may be what fails: any of them is tried.
        server = order[Math.floor(random() * order.length)] ?? server;
      }
      const started = clock.monotonic();
      try {
        const message = await this.#ask(server, request);
        forwardCounts.answered(server.name, message.rcode, elapsedMs(started, clock.monotonic()));
        if (failover.includes(message.rcode) && ++others < order.length) continue;
        return answered(request, message);
      } catch (error) {
        lastError = error;
        server.check();
        if (maxConnectAttempts > 0 && ++failures >= maxConnectAttempts) break;
        if (down >= order.length) break;
      }
    }
    return { kind: 'failure', by: NAME, rcode: Rcode.SERVFAIL, error: errorMessage(lastError) };
  }

  /** Rejects where there is no answer, or none that can be read. */
  async #ask(server: UpstreamServer, request: Request): Promise<Message> {
    const { forceTcp, preferUdp } = this.#settings;
    const first: Transport = forceTcp ? 'tcp' : preferUdp ? 'udp' : request.transport;
    const {
      question,
      message: { bytes },
    } = request;
    const query = { purpose: 'forward', question, bytes } as const;
    const message = await exchange(server, { ...query, transport: first });
    const isCut = (message.flags & Flag.TC) !== 0;
    return isCut && preferUdp && first === 'udp' ? exchange(server, { ...query, transport: 'tcp' }) : message;
  }
}

/** Idle connections may have been closed by the other side: then there is another one, and in the end a new one. */
async function exchange(server: UpstreamServer, query: Query): Promise<Message> {
  for (let tries = 0; ; tries++) {
    try {
      return parseMessage(await server.exchange(query));
    } catch (error) {
      if (error instanceof MessageError) throw new Error(`${server.name}: ${error.message}`, { cause: error });
      if (!(error instanceof IdleClosedError) || tries >= MOST_IDLE_CLOSED) throw error;
    }
  }
}

/** An answer to something else is one that the client cannot use. */
function answered(request: Request, message: Message): Result {
  const isReply = (message.flags & Flag.QR) !== 0;
  const isMine = isReply && sameQuestion(message.question, request.question);
  if (isMine && message.questionEnd === request.message.questionEnd) return { kind: 'reply', by: NAME, message };
  return { kind: 'failure', by: NAME, rcode: Rcode.FORMERR };
}
