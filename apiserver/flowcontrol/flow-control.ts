// API Priority and Fairness in one event loop: classifies a request, and executes it at once or when it is its turn.
//
// A request is executed from when it leaves its queue until its response is over (a watch: until its first events are
// sent), and has its seats as long, whether the processor works on it or it waits for its body, a webhook or etcd.
// Synchronous requests would be over before the next one arrives, and seats would limit none of them. So the processor is
// shared too: once the requests of one turn of the event loop have taken TURN_MS, further ones of limited levels wait in
// their queues, and each turn executes one of them: of the level that has had the least time for its share, the one that
// fair queuing chooses. What a client sends meanwhile is read between two of them.

import { type Clock, elapsedMs, type MonotonicMs, type Timer } from '../../lib/clock.ts';
import { type FlowConfig, flowConfig, type Schema } from './config.ts';
import { isExempt, type LevelState, Levels, mostSeats } from './levels.ts';
import { distinguisherOf, type FlowRequest, matchesSchema } from './match.ts';
import { OverloadError } from './overload.ts';
import type { Entry, Rejection } from './queue-set.ts';
import { dealHand, flowHash } from './shuffle-shard.ts';

/** As long as one small write takes: more than this in a turn is contention. */
const TURN_MS = 1;
const ADJUST_MS = 10_000;
/** Flows of a schema whose hands are kept. */
const MAX_HANDS = 4096;

/** A request's place among those that are executed. */
export interface Place {
  /** Absent where it is executed at once. Rejects with OverloadError when it is refused meanwhile. */
  readonly ready?: Promise<void>;
  /** The request is over, or given up while it waits. Idempotent. */
  leave(): void;
}

/** One request, as the queues and the dumps know it. */
export interface Ticket {
  readonly request: FlowRequest;
  readonly schema: string;
  readonly distinguisher: string;
  readonly arrived: number;
  readonly isWatch: boolean;
}

export interface FlowOptions {
  /** How much work it is, in seats; at least 1. */
  readonly seats: number;
  readonly isWatch: boolean;
  /** How long it may wait, ms. */
  readonly waitMs: number;
  /** Called before anything else is decided, with the UIDs of the schema and the level. */
  readonly classified: (schemaUid: string, levelUid: string) => void;
}

/** Counts of one schema's requests in one level. */
export interface FlowCounts {
  readonly level: string;
  readonly schema: string;
  dispatched: number;
  waiting: number;
  waitingSeats: number;
  executing: number;
  executingSeats: number;
  readonly rejected: Map<Rejection, number>;
}

/** What is observed of each request, in seconds. */
export interface FlowObserver {
  waited(level: string, schema: string, executed: boolean, seconds: number): void;
  executed(level: string, schema: string, isWatch: boolean, seconds: number): void;
  estimated(level: string, schema: string, seats: number): void;
}

export interface FlowControlParts {
  readonly clock: Clock;
  /** Requests that are executed at a time. */
  readonly total: number;
  readonly observer: FlowObserver;
  /** Calls a function in a later turn of the event loop, after the I/O that is ready. Default: setImmediate. */
  readonly later?: (run: () => void) => void;
}

interface Waiter {
  readonly active: ActiveSchema;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly timer: Timer;
}

interface ActiveSchema {
  readonly schema: Schema;
  readonly state: LevelState<Ticket>;
  readonly hands: Map<string, readonly number[]>;
  readonly counts: FlowCounts;
}

export class FlowControl {
  readonly #parts: FlowControlParts;
  readonly #later: (run: () => void) => void;
  readonly #levels: Levels<Ticket>;
  #schemas: readonly ActiveSchema[] = [];
  readonly #counts = new Map<string, FlowCounts>();
  readonly #waiters = new Map<Entry<Ticket>, Waiter>();
  /** When the first request of this turn began. */
  #turnBegan: MonotonicMs | undefined;
  #isPumping = false;
  #charged: { readonly state: LevelState<Ticket>; readonly since: MonotonicMs } | undefined;
  /** The pass of the level that was served last. */
  #pass = 0;
  #timer: Timer;

  constructor(parts: FlowControlParts) {
    this.#parts = parts;
    this.#later = parts.later ?? setImmediate;
    this.#levels = new Levels(parts.total);
    this.configure(flowConfig([], []));
    const tick = (): void => {
      this.#levels.adjust(parts.clock.monotonic());
      this.#pumpLater();
      this.#timer = parts.clock.after(ADJUST_MS, tick);
    };
    this.#timer = parts.clock.after(ADJUST_MS, tick);
  }

  stop(): void {
    this.#timer.cancel();
  }

  get levels(): ReadonlyMap<string, LevelState<Ticket>> {
    return this.#levels.states;
  }

  get fairFraction(): number {
    return this.#levels.fairFraction;
  }

  get counts(): Iterable<FlowCounts> {
    return this.#counts.values();
  }

  /** Requests that wait or are executed stay with the level they were given. */
  configure(config: FlowConfig): void {
    this.#levels.configure(config, this.#parts.clock.monotonic());
    this.#schemas = config.schemas.flatMap((schema) => {
      const state = this.#levels.states.get(schema.level);
      if (state === undefined) return [];
      return [{ schema, state, hands: new Map(), counts: this.#countsOf(schema.level, schema.name) }];
    });
    this.#pumpLater();
  }

  /** Throws OverloadError when the request is refused at once. */
  enter(request: FlowRequest, options: FlowOptions): Place {
    const { clock, observer } = this.#parts;
    const now = clock.monotonic();
    const active = this.#classify(request);
    const { schema, state, counts } = active;
    options.classified(schema.uid, state.level.uid);
    const distinguisher = state.handSize === 0 ? '' : distinguisherOf(schema.spec, request);
    const seats = Math.max(1, Math.min(mostSeats(state), options.seats));
    observer.estimated(counts.level, counts.schema, seats);
    const { isWatch } = options;
    const ticket = { request, schema: schema.name, distinguisher, arrived: clock.now(), isWatch };
    if (state.queues.waiting === 0) state.pass = Math.max(state.pass, this.#pass);
    const entry = state.queues.arrive(now, handOf(active, distinguisher), seats, ticket);
    if (typeof entry === 'string') throw this.#refuse(active, entry);
    if (entry.startedAt === undefined) return this.#queue(active, entry, options.waitMs, now);
    this.#started(active, entry, now);
    return { leave: () => this.#finish(active, entry) };
  }

  #classify(request: FlowRequest): ActiveSchema {
    const found = this.#schemas.find(({ schema }) => matchesSchema(schema.spec, request)) ?? this.#schemas.at(-1);
    if (found === undefined) throw new Error('there is no FlowSchema for the request');
    return found;
  }

  /** A request that is in its queue: executed at once where that is its turn. */
  #queue(active: ActiveSchema, entry: Entry<Ticket>, waitMs: number, now: MonotonicMs): Place {
    const { state, counts } = active;
    counts.waiting++;
    counts.waitingSeats += entry.seats;
    const isSpent = this.#turnBegan !== undefined && elapsedMs(this.#turnBegan, now) >= TURN_MS;
    if (!this.#isPumping && !isSpent && state.queues.waiting === 1 && state.queues.dispatch(now) === entry) {
      counts.waiting--;
      counts.waitingSeats -= entry.seats;
      this.#parts.observer.waited(counts.level, counts.schema, true, 0);
      this.#started(active, entry, now);
      return { leave: () => this.#finish(active, entry) };
    }
    this.#noteDemand(state, now);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = this.#parts.clock.after(waitMs, () => this.#giveUp(active, entry, 'time-out'));
    this.#waiters.set(entry, { active, resolve, reject, timer });
    this.#pumpLater();
    const leave = (): void => {
      if (this.#waiters.has(entry)) this.#giveUp(active, entry, 'cancelled');
      else this.#finish(active, entry);
    };
    return { ready: promise, leave };
  }

  #started({ state, counts }: ActiveSchema, entry: Entry<Ticket>, now: MonotonicMs): void {
    state.dispatched++;
    counts.dispatched++;
    counts.executing++;
    counts.executingSeats += entry.seats;
    this.#noteDemand(state, now);
    if (this.#turnBegan !== undefined) return;
    this.#turnBegan = now;
    this.#later(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turnBegan = undefined;
  };

  #finish({ state, counts }: ActiveSchema, entry: Entry<Ticket>): void {
    if (!state.queues.executing.has(entry)) return;
    const now = this.#parts.clock.monotonic();
    state.queues.finish(now, entry);
    counts.executing--;
    counts.executingSeats -= entry.seats;
    const seconds = elapsedMs(entry.startedAt ?? now, now) / 1000;
    this.#parts.observer.executed(counts.level, counts.schema, entry.item.isWatch, seconds);
    this.#noteDemand(state, now);
    if (state.queues.waiting > 0) this.#pumpLater();
  }

  /** A request that waits is refused. */
  #giveUp(active: ActiveSchema, entry: Entry<Ticket>, reason: 'time-out' | 'cancelled'): void {
    const waiter = this.#waiters.get(entry);
    if (waiter === undefined || !active.state.queues.cancel(entry)) return;
    const now = this.#parts.clock.monotonic();
    this.#left(entry, waiter, false, now);
    this.#noteDemand(active.state, now);
    waiter.reject(this.#refuse(active, reason));
    if (active.state.queues.waiting > 0) this.#pumpLater();
  }

  /** It waits no more. */
  #left(entry: Entry<Ticket>, { active, timer }: Waiter, executed: boolean, now: MonotonicMs): void {
    const { counts } = active;
    timer.cancel();
    this.#waiters.delete(entry);
    counts.waiting--;
    counts.waitingSeats -= entry.seats;
    this.#parts.observer.waited(counts.level, counts.schema, executed, elapsedMs(entry.arrivedAt, now) / 1000);
  }

  #refuse({ state, counts }: ActiveSchema, reason: Rejection): OverloadError {
    state.rejected++;
    if (reason === 'time-out') state.timedOut++;
    if (reason === 'cancelled') state.cancelled++;
    // As upstream: a client that has gone counts as one whose time was over.
    const counted = reason === 'cancelled' ? 'time-out' : reason;
    counts.rejected.set(counted, (counts.rejected.get(counted) ?? 0) + 1);
    state.retryAfter.refused(Math.floor(this.#parts.clock.now() / 1000));
    return new OverloadError(state.retryAfter.seconds);
  }

  #pumpLater(): void {
    if (this.#isPumping || !this.#canPump()) return;
    this.#isPumping = true;
    this.#later(this.#pump);
  }

  #canPump(): boolean {
    for (const { queues } of this.#levels.states.values()) if (queues.canDispatch()) return true;
    return false;
  }

  /** One request of those that wait, in a turn of its own. */
  readonly #pump = (): void => {
    this.#isPumping = false;
    const now = this.#parts.clock.monotonic();
    if (this.#charged !== undefined) {
      const { state, since } = this.#charged;
      state.pass += elapsedMs(since, now) / Math.max(1, state.limits.nominal);
      this.#charged = undefined;
    }
    let next: LevelState<Ticket> | undefined;
    for (const state of this.#levels.states.values()) {
      if (state.queues.canDispatch() && (next === undefined || state.pass < next.pass)) next = state;
    }
    const entry = next?.queues.dispatch(now);
    const waiter = entry === undefined ? undefined : this.#waiters.get(entry);
    if (next === undefined || entry === undefined || waiter === undefined) return;
    this.#pass = next.pass;
    this.#left(entry, waiter, true, now);
    this.#started(waiter.active, entry, now);
    waiter.resolve();
    this.#pumpLater();
    if (this.#isPumping) this.#charged = { state: next, since: now };
  };

  #noteDemand({ queues, integral }: LevelState<Ticket>, now: MonotonicMs): void {
    integral.set(queues.seatsInUse + queues.waitingSeats, now);
  }

  #countsOf(level: string, schema: string): FlowCounts {
    const key = `${level}/${schema}`;
    let counts = this.#counts.get(key);
    if (counts === undefined) {
      const none = { dispatched: 0, waiting: 0, waitingSeats: 0, executing: 0, executingSeats: 0 };
      counts = { level, schema, ...none, rejected: new Map() };
      this.#counts.set(key, counts);
    }
    return counts;
  }
}

const NO_HAND: readonly number[] = [];

/** The queues that the flow may use. */
function handOf({ schema, state, hands }: ActiveSchema, distinguisher: string): readonly number[] {
  const { queues } = state.queuing;
  if (isExempt(state.level) || queues === 'exempt' || queues === 0) return NO_HAND;
  let hand = hands.get(distinguisher);
  if (hand === undefined) {
    const value = queues > 1 ? flowHash(schema.name, distinguisher) : 0n;
    hand = dealHand(value, queues, Math.min(state.handSize, queues));
    if (hands.size >= MAX_HANDS) hands.clear();
    hands.set(distinguisher, hand);
  }
  return hand;
}
