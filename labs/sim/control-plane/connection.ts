// A control plane's connection to the simulated API server: every request and every event takes a time from the seed, and in
// bad weather requests are refused, executed without an answer, answered with a conflict that another writer caused, executed
// long after their sender has given up, and watches lag, break and find their history gone.

import type { DeleteOptions, ListOf, PatchType, RequestOptions, WatchEvent } from '../../../client/api.ts';
import { ApiError, UnreachableError } from '../../../client/errors.ts';
import { type Query, queryString } from '../../../client/paths.ts';
import type { ApiObject } from '../../../client/types.ts';
import { type Clock, elapsedMs, later, plusMs } from '../../../lib/clock.ts';
import { problem } from '../api-problem.ts';
import type { Dice } from '../dice.ts';
import type { SimControlPlaneServer, SimRequest } from './server.ts';

const TIMEOUT_MS = 30_000;
/** The longest that an event of a watch is late in bad weather, ms. */
export const LATEST_EVENT_MS = 15_000;

const PATCHES: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};
const PARTIAL = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
const PARTIALS = 'as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/** How bad it is, in events of a thousand. */
export interface Trouble {
  /** Requests that fail. */
  readonly requests: number;
  /** Events of watches that come late. */
  readonly events: number;
}

export const NO_TROUBLE: Trouble = { requests: 0, events: 0 };

export interface ConnectionParts {
  readonly server: SimControlPlaneServer;
  /** Of the world: the network goes on while a process stands still. */
  readonly world: Clock;
  /** Of the process, for its time limits. */
  readonly own: Clock;
  readonly dice: Dice;
  /** Changes what the process is shown: a fault that the rules have to find. */
  readonly shown?: (object: ApiObject) => ApiObject;
  /** Whose requests these are, for the rules. */
  readonly actor: string;
  readonly trouble: () => Trouble;
  /** A write whose sender will not know what became of it. */
  readonly onUncertain: (request: SimRequest) => void;
  readonly note: (what: string) => void;
}

type Fate = 'fine' | 'refused' | 'lost' | 'late' | 'conflict';

interface Follower {
  readonly path: string;
  readonly break: () => void;
  /** Events that come from now on are this late at least, ms. */
  lagMs: number;
}

export class SimConnection {
  readonly #parts: ConnectionParts;
  readonly #followers = new Set<Follower>();
  /** The process is gone: nothing is sent any more, and no answer is waited for. */
  #isDead = false;
  /** Every request takes this long beside its ordinary time, ms. */
  #slownessMs = 0;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  get<T>(path: string, query?: Query, options: RequestOptions = {}): Promise<T> {
    const accept = options.metadataOnly === true ? `application/json;${PARTIAL}` : 'application/json';
    return this.#send({ method: 'GET', target: path + queryString(query ?? options.query), accept }, options);
  }

  async list<T>(path: string, query?: Query, options: RequestOptions = {}): Promise<ListOf<T>> {
    const accept = options.metadataOnly === true ? `application/json;${PARTIALS}` : 'application/json';
    const target = path + queryString(query ?? options.query);
    const list = await this.#send<ListOf<ApiObject>>({ method: 'GET', target, accept }, options);
    const { shown } = this.#parts;
    const kind = list.kind.replace(/List$/, '');
    const items = shown === undefined ? list.items : list.items.map((item) => shown({ ...item, kind }));
    return asRequested<ListOf<T>>({ ...list, items });
  }

  create<T>(path: string, body: unknown, options: RequestOptions = {}): Promise<T> {
    return this.#send({ method: 'POST', target: path + queryString(options.query), body }, options);
  }

  replace<T>(path: string, body: unknown, options: RequestOptions = {}): Promise<T> {
    return this.#send({ method: 'PUT', target: path + queryString(options.query), body }, options);
  }

  patch<T>(path: string, body: unknown, type: PatchType, options: RequestOptions = {}): Promise<T> {
    const target = path + queryString(options.query);
    return this.#send({ method: 'PATCH', target, body, contentType: PATCHES[type] }, options);
  }

  delete<T = unknown>(path: string, options: DeleteOptions = {}): Promise<T> {
    const { gracePeriodSeconds, propagationPolicy, preconditions, query } = options;
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
      ...(preconditions === undefined ? {} : { preconditions }),
    };
    return this.#send({ method: 'DELETE', target: path + queryString(query), body }, options);
  }

  /** Events of one watch arrive in order. */
  async *watch<T>(
    path: string,
    query: Query,
    signal: AbortSignal,
    options: Pick<RequestOptions, 'metadataOnly'> = {},
  ): AsyncGenerator<WatchEvent<T>> {
    const { server, world, own, dice } = this.#parts;
    const { timeoutSeconds = 600, ...rest } = query;
    await this.#pass(dice.between(1, 5));
    const accept = options.metadataOnly === true ? `application/json;${PARTIAL}` : 'application/json';
    const arrived: WatchEvent<ApiObject>[] = [];
    let news = Promise.withResolvers<void>();
    let end: 'broken' | 'over' | undefined;
    let lastAt = world.monotonic();
    const stop = (how: 'broken' | 'over') => (): void => {
      end ??= how;
      news.resolve();
    };
    const follower: Follower = { path, break: stop('broken'), lagMs: 0 };
    const watch = server.watch(path + queryString({ ...rest, watch: true }), accept, (event) => {
      const isLate = dice.below(1000) < this.#parts.trouble().events;
      const lateMs = isLate ? dice.below(LATEST_EVENT_MS) : dice.between(1, 8);
      lastAt = later(lastAt, plusMs(world.monotonic(), Math.max(lateMs, follower.lagMs)));
      world.after(elapsedMs(world.monotonic(), lastAt), () => {
        arrived.push(event);
        news.resolve();
      });
    });
    this.#followers.add(follower);
    signal.addEventListener('abort', stop('over'), { once: true });
    const timer = own.after(Number(timeoutSeconds) * 1000, stop('over'));
    try {
      while (!signal.aborted) {
        for (const event of arrived.splice(0)) {
          if (this.#isDead) await new Promise(() => undefined);
          const { shown } = this.#parts;
          const isObject = event.type !== 'ERROR' && shown !== undefined;
          yield asRequested<WatchEvent<T>>(isObject ? { ...event, object: shown(event.object) } : event);
        }
        if (end === 'broken') throw new UnreachableError('the watch broke', 'ECONNRESET');
        if (end === 'over') return;
        await news.promise;
        await this.#awake();
        news = Promise.withResolvers<void>();
      }
    } finally {
      watch.stop();
      timer.cancel();
      this.#followers.delete(follower);
    }
  }

  /** All watches end; the next ones begin where these were. */
  breakWatches(): void {
    for (const follower of this.#followers) follower.break();
  }

  /** Watches of a collection that run now lag from now on. One that begins later does not. */
  lagWatches(path: string, ms: number): void {
    for (const follower of this.#followers) if (follower.path === path) follower.lagMs = ms;
  }

  /** Requests from now on take `ms` longer. */
  slowRequests(ms: number): void {
    this.#slownessMs = ms;
  }

  /** Kills the process: what it has sent may still arrive. */
  die(): void {
    this.#isDead = true;
    this.breakWatches();
  }

  close(): void {}

  /** Resolves when the process runs, which may be later: it stands still, or is dead. */
  async #awake(): Promise<void> {
    if (this.#isDead) await new Promise(() => undefined);
    await new Promise<void>((resolve) => this.#parts.own.after(0, resolve));
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.#parts.world.after(ms, resolve));
  }

  #fateOf({ method }: SimRequest): Fate {
    const { dice } = this.#parts;
    if (dice.below(1000) >= this.#parts.trouble().requests) return 'fine';
    return dice.weighted<Fate>({
      fine: 0,
      refused: 40,
      lost: method === 'GET' ? 0 : 30,
      late: method === 'GET' ? 0 : 10,
      conflict: method === 'PUT' || method === 'PATCH' ? 20 : 0,
    });
  }

  async #send<T>(request: SimRequest, { signal, timeoutMs = TIMEOUT_MS }: RequestOptions): Promise<T> {
    signal?.throwIfAborted();
    if (this.#isDead) await new Promise(() => undefined);
    const { own } = this.#parts;
    const limit = Promise.withResolvers<never>();
    const timer = own.after(timeoutMs, () => limit.reject(unanswered(request, 'ETIMEDOUT')));
    const onAbort = (): void => limit.reject(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const answer = await Promise.race([this.#carry(request), limit.promise]);
      return asRequested<T>(answer);
    } finally {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
      if (this.#isDead) await new Promise(() => undefined);
    }
  }

  async #carry(request: SimRequest): Promise<unknown> {
    const { server, dice, actor, note, onUncertain } = this.#parts;
    const fate = this.#fateOf(request);
    const text = `${request.method} ${request.target}`;
    if (fate !== 'fine') note(`${actor}: ${text}: ${fate}`);
    if (fate === 'lost' || fate === 'late') onUncertain(request);
    const takesMs = fate === 'late' ? dice.between(TIMEOUT_MS - 5000, TIMEOUT_MS + 20_000) : dice.between(1, 6);
    await this.#pass(takesMs + this.#slownessMs);
    if (fate === 'refused') {
      await this.#awake();
      throw problem(500, 'InternalError', `${text}: injected failure`);
    }
    if (fate === 'conflict') {
      await this.#awake();
      throw problem(409, 'Conflict', `${text}: the object has been modified; injected failure`);
    }
    let answer: unknown;
    let failure: unknown;
    try {
      answer = await server.execute(actor, request);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failure = error;
    }
    await this.#pass(dice.between(1, 4));
    await this.#awake();
    if (fate === 'lost') throw unanswered(request, 'ECONNRESET');
    if (failure !== undefined) throw failure;
    return answer;
  }
}

function unanswered({ method, target }: SimRequest, code: string): UnreachableError {
  return new UnreachableError(`cannot reach the API server: ${method} ${target}: injected failure`, code);
}

/** What a caller asked for by path is of the type that it says, as with JSON off the wire. */
function asRequested<T>(value: unknown): T {
  return value as T;
}
