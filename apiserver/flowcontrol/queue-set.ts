// The queues of one priority level: which request is executed next, and which are refused. Fair queuing as
// kube-apiserver's queueset does it, but for the rate of virtual time: there it is the number of seats that are in use,
// here it is the start of the request that was dispatched last (start-time fair queuing), as one event loop does not
// work on many seats at once. Knows neither requests nor time: both come with each call.

import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';

/** How long a request is expected to take while it is not known; set right when it is over. ms. */
const EXPECTED_MS = 3;

export type Rejection = 'queue-full' | 'concurrency-limit' | 'time-out' | 'cancelled';

export interface QueueSetConfig {
  /** 0: what has no seat is refused. 'exempt': everything has a seat. */
  readonly queues: number | 'exempt';
  readonly queueLengthLimit: number;
}

interface Queue<Item> {
  readonly index: number;
  /** In virtual time, when the first of `waiting` starts. Seats times ms. */
  nextStart: number;
  readonly waiting: Entry<Item>[];
  waitingSeats: number;
  executing: number;
  seatsInUse: number;
}

/** One request that waits or is executed. */
export interface Entry<Item> {
  readonly item: Item;
  readonly seats: number;
  readonly arrivedAt: MonotonicMs;
  /** When it was dispatched; undefined while it waits. */
  startedAt: MonotonicMs | undefined;
  readonly arrivedAtVirtual: number;
  /** Undefined where there are no queues. */
  readonly queue: Queue<Item> | undefined;
}

export interface QueueState<Item> {
  readonly index: number;
  readonly nextStart: number;
  readonly seatsInUse: number;
  readonly waitingSeats: number;
  readonly waiting: readonly Entry<Item>[];
  readonly executing: number;
}

export class QueueSet<Item> {
  #config: QueueSetConfig;
  /** Seats. */
  #limit: number;
  #virtualNow = 0;
  /** Those with a request, by index. */
  readonly #queues = new Map<number, Queue<Item>>();
  readonly #executing = new Set<Entry<Item>>();
  #waiting = 0;
  #waitingSeats = 0;
  #seatsInUse = 0;
  #arrivals = 0;
  #lastIndex = 0;

  constructor(config: QueueSetConfig, limit: number) {
    this.#config = config;
    this.#limit = limit;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get waitingSeats(): number {
    return this.#waitingSeats;
  }

  get executing(): ReadonlySet<Entry<Item>> {
    return this.#executing;
  }

  get seatsInUse(): number {
    return this.#seatsInUse;
  }

  get isIdle(): boolean {
    return this.#waiting === 0 && this.#executing.size === 0;
  }

  /** Queues that have requests. */
  get queues(): readonly QueueState<Item>[] {
    return [...this.#queues.values()].sort((a, b) => a.index - b.index);
  }

  /** Requests that wait in queues which are no more stay where they are. */
  configure(config: QueueSetConfig, limit: number): void {
    this.#config = config;
    this.#limit = limit;
  }

  /**
   * A request of a flow that may use the queues `hand`. It waits, or where there are no queues is executed at once;
   * else the reason why it is refused.
   */
  arrive(now: MonotonicMs, hand: readonly number[], seats: number, item: Item): Entry<Item> | Rejection {
    const { queues } = this.#config;
    const arrival = { item, seats, arrivedAt: now, arrivedAtVirtual: this.#virtualNow };
    if (queues === 'exempt' || queues === 0) {
      if (queues === 0 && !this.#hasRoomFor(seats)) return 'concurrency-limit';
      const entry: Entry<Item> = { ...arrival, queue: undefined, startedAt: now };
      this.#start(entry);
      return entry;
    }
    const index = this.#shortest(hand);
    const queue = this.#queues.get(index) ?? this.#open(index);
    // Requests for which there are seats wait, too, until it is their turn: they do not count as a queue.
    const seated = Math.ceil(Math.max(0, this.#limit - this.#seatsInUse) / Math.max(1, hand.length));
    if (queue.waiting.length >= this.#config.queueLengthLimit + seated) return 'queue-full';
    const entry: Entry<Item> = { ...arrival, queue, startedAt: undefined };
    queue.waiting.push(entry);
    queue.waitingSeats += seats;
    this.#waiting++;
    this.#waitingSeats += seats;
    this.#bound(queue);
    return entry;
  }

  /** Whether `dispatch` would dispatch a request. */
  canDispatch(): boolean {
    const queue = this.#next();
    return queue !== undefined && this.#hasRoomFor(queue.waiting[0]?.seats ?? 0);
  }

  /** The request that is next, if there are seats for it; it is executed from now on. */
  dispatch(now: MonotonicMs): Entry<Item> | undefined {
    const queue = this.#next();
    const entry = queue?.waiting[0];
    if (queue === undefined || entry === undefined || !this.#hasRoomFor(entry.seats)) return undefined;
    this.#removeWaiting(queue, entry);
    this.#lastIndex = queue.index;
    this.#virtualNow = Math.max(this.#virtualNow, queue.nextStart);
    queue.nextStart += workOf(entry);
    queue.executing++;
    queue.seatsInUse += entry.seats;
    entry.startedAt = now;
    this.#start(entry);
    this.#bound(queue);
    return entry;
  }

  /** A request that was executed is over. */
  finish(now: MonotonicMs, entry: Entry<Item>): void {
    if (!this.#executing.delete(entry)) return;
    this.#seatsInUse -= entry.seats;
    const { queue, seats, startedAt } = entry;
    if (queue === undefined || startedAt === undefined) return;
    queue.executing--;
    queue.seatsInUse -= seats;
    queue.nextStart += (elapsedMs(startedAt, now) - EXPECTED_MS) * seats;
    this.#bound(queue);
    this.#closeIfEmpty(queue);
  }

  /** A request that waits is taken out. False for one that does not wait. */
  cancel(entry: Entry<Item>): boolean {
    const { queue } = entry;
    if (queue === undefined || !queue.waiting.includes(entry)) return false;
    this.#removeWaiting(queue, entry);
    this.#bound(queue);
    this.#closeIfEmpty(queue);
    return true;
  }

  #open(index: number): Queue<Item> {
    const queue: Queue<Item> = {
      index,
      nextStart: this.#virtualNow,
      waiting: [],
      waitingSeats: 0,
      executing: 0,
      seatsInUse: 0,
    };
    this.#queues.set(index, queue);
    return queue;
  }

  #start(entry: Entry<Item>): void {
    this.#executing.add(entry);
    this.#seatsInUse += entry.seats;
  }

  /** More seats than there are is for a request that is alone. */
  #hasRoomFor(seats: number): boolean {
    if (seats > this.#limit) return this.#executing.size === 0;
    return this.#seatsInUse + seats <= this.#limit;
  }

  /** Of the hand, the queue in which the least seats are waited for. */
  #shortest(hand: readonly number[]): number {
    const offset = this.#arrivals++;
    let best = hand[offset % hand.length] ?? 0;
    if (this.#waiting === 0) return best;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < hand.length; i++) {
      const index = hand[(offset + i) % hand.length] ?? 0;
      const seats = this.#queues.get(index)?.waitingSeats ?? 0;
      if (seats >= least) continue;
      least = seats;
      best = index;
    }
    return best;
  }

  /** The queue whose first request would be over first in virtual time; among equals the shortest, then the next one round. */
  #next(): Queue<Item> | undefined {
    if (this.#waiting === 0) return undefined;
    const count = typeof this.#config.queues === 'number' ? Math.max(1, this.#config.queues) : 1;
    let best: Queue<Item> | undefined;
    let bestEnd = Number.POSITIVE_INFINITY;
    let bestRank = Number.POSITIVE_INFINITY;
    for (const queue of this.#queues.values()) {
      const [first] = queue.waiting;
      if (first === undefined) continue;
      const end = queue.nextStart + workOf(first);
      if (end > bestEnd) continue;
      const distance = (queue.index - this.#lastIndex - 1 + 2 * count) % count;
      const rank = queue.waitingSeats * count + distance;
      if (end === bestEnd && rank >= bestRank) continue;
      best = queue;
      bestEnd = end;
      bestRank = rank;
    }
    return best;
  }

  #removeWaiting(queue: Queue<Item>, entry: Entry<Item>): void {
    queue.waiting.splice(queue.waiting.indexOf(entry), 1);
    queue.waitingSeats -= entry.seats;
    this.#waiting--;
    this.#waitingSeats -= entry.seats;
  }

  /** A queue that could not use its share gains nothing by that: its first request does not start before it arrived. */
  #bound(queue: Queue<Item>): void {
    const [first] = queue.waiting;
    if (first !== undefined && queue.nextStart < first.arrivedAtVirtual) queue.nextStart = first.arrivedAtVirtual;
  }

  #closeIfEmpty(queue: Queue<Item>): void {
    if (queue.waiting.length === 0 && queue.executing === 0) this.#queues.delete(queue.index);
  }
}

function workOf({ seats }: { readonly seats: number }): number {
  return seats * EXPECTED_MS;
}
