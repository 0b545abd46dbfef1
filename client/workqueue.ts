// client-go's work queue: a key is queued once however often it is added, is never worked on twice at a time, and comes
// back later, ever later, when its work fails. Keys only; what is to do is read from the stores when the key comes up.

import { type Clock, type MonotonicMs, plusMs, type Timer } from '../lib/clock.ts';

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Delay after the first failure of a key, in ms; doubles with each one. Default 5 ms. */
  readonly initialDelayMs?: number;
  /** Default 1000 s. */
  readonly maxDelayMs?: number;
}

/** Notified of what a queue does: workqueue-metrics.ts has one. */
export interface QueueObserver {
  /** The key waits, or will when what is under way is done. */
  added(key: unknown): void;
  taken(key: unknown): void;
  done(key: unknown): void;
  /** A key was added for later. */
  delayed(): void;
}

export class WorkQueue<K = string> {
  readonly #clock: Clock;
  readonly #initialDelayMs: number;
  readonly #maxDelayMs: number;
  /** Waiting to be taken, in order. */
  readonly #queue = new Set<K>();
  /** Taken and not done. */
  readonly #processing = new Set<K>();
  /** Added again while being processed: queued when done. */
  readonly #dirty = new Set<K>();
  readonly #failures = new Map<K, number>();
  readonly #delayed = new Map<K, { readonly dueAt: MonotonicMs; readonly timer: Timer }>();
  readonly #takers: ((key: K | undefined) => void)[] = [];
  #closed = false;
  #observer: QueueObserver | undefined;

  constructor(options: WorkQueueOptions) {
    this.#clock = options.clock;
    this.#initialDelayMs = options.initialDelayMs ?? 5;
    this.#maxDelayMs = options.maxDelayMs ?? 1_000_000;
  }

  /** One observer, of what comes after; what waits already counts as added now. */
  observe(observer: QueueObserver): void {
    this.#observer = observer;
    for (const key of [...this.#queue, ...this.#dirty]) observer.added(key);
  }

  /** Keys waiting to be taken, without those that wait for their time. */
  get length(): number {
    return this.#queue.size;
  }

  add(key: K): void {
    if (this.#closed) return;
    if (this.#queue.has(key) || this.#dirty.has(key)) return;
    this.#observer?.added(key);
    if (this.#processing.has(key)) this.#dirty.add(key);
    else this.#push(key);
  }

  #push(key: K): void {
    // Someone waits only while the queue is empty.
    const taker = this.#takers.shift();
    if (taker === undefined) {
      this.#queue.add(key);
      return;
    }
    this.#processing.add(key);
    this.#observer?.taken(key);
    taker(key);
  }

  /** Adds the key after `ms`; an earlier pending time is kept, a later one is brought forward. */
  addAfter(key: K, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    this.#observer?.delayed();
    const dueAt = plusMs(this.#clock.monotonic(), ms);
    const pending = this.#delayed.get(key);
    if (pending !== undefined) {
      if (pending.dueAt <= dueAt) return;
      pending.timer.cancel();
    }
    const timer = this.#clock.after(ms, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { dueAt, timer });
  }

  /** Adds the key after its back-off, which grows with every call until `forget`. Returns the delay in ms. */
  addRateLimited(key: K): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const delay = Math.min(this.#initialDelayMs * 2 ** failures, this.#maxDelayMs);
    this.addAfter(key, delay);
    return delay;
  }

  /** Ends the key's back-off: its work succeeded, or is given up. */
  forget(key: K): void {
    this.#failures.delete(key);
  }

  /** The next key, which `done` must be called for; undefined once the queue is shut down and empty. */
  take(): Promise<K | undefined> {
    for (const key of this.#queue) {
      this.#queue.delete(key);
      this.#processing.add(key);
      this.#observer?.taken(key);
      return Promise.resolve(key);
    }
    if (this.#closed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  done(key: K): void {
    this.#processing.delete(key);
    this.#observer?.done(key);
    if (this.#dirty.delete(key) && !this.#closed) this.#push(key);
  }

  /** Takes no more keys; what is queued can still be taken, what waits for its time is dropped. */
  shutDown(): void {
    this.#closed = true;
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  /**
   * Works keys off with `workers` at a time until the queue is shut down. A key whose work throws is reported and
   * comes back after its back-off.
   */
  async run(
    workers: number,
    work: (key: K) => Promise<void>,
    onFailure: (key: K, error: unknown, retryInMs: number) => void,
  ): Promise<void> {
    const worker = async (): Promise<void> => {
      for (let key = await this.take(); key !== undefined; key = await this.take()) {
        try {
          await work(key);
          this.forget(key);
        } catch (error) {
          onFailure(key, error, this.addRateLimited(key));
        } finally {
          this.done(key);
        }
      }
    };
    await Promise.all(Array.from({ length: workers }, worker));
  }
}
