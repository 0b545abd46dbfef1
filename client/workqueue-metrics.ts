// What work queues do, as metrics with client-go's names: one series for each queue. Figures only.

import { type Clock, elapsedMs, type MonotonicMs } from '../lib/clock.ts';
import { Counter, exponentialBuckets, Histogram, labelText, type Metric, type MetricsText } from '../lib/metrics.ts';
import type { QueueObserver, WorkQueue } from './workqueue.ts';

/** client-go's: 1 µs, tenfold, ten times. Seconds. */
const BUCKETS = exponentialBuckets(1e-6, 10, 10);

interface Followed {
  /** Keys that wait, and since when. */
  readonly waiting: Map<unknown, MonotonicMs>;
  /** Keys that are worked on, and since when. */
  readonly working: Map<unknown, MonotonicMs>;
}

export class WorkQueueMetrics implements Metric {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Followed>();
  readonly #adds = new Counter('workqueue_adds_total', '[BETA] Total number of adds handled by workqueue');
  readonly #retries = new Counter('workqueue_retries_total', '[BETA] Total number of retries handled by workqueue');
  readonly #waitSeconds = new Histogram(
    'workqueue_queue_duration_seconds',
    '[BETA] How long in seconds an item stays in workqueue before being requested.',
    BUCKETS,
  );
  readonly #workSeconds = new Histogram(
    'workqueue_work_duration_seconds',
    '[BETA] How long in seconds processing an item from workqueue takes.',
    BUCKETS,
  );

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts what the queue does from now on. `name` is one queue's alone. */
  follow(name: string, queue: Pick<WorkQueue, 'observe'>): void {
    queue.observe(this.observer(name));
  }

  observer(name: string): QueueObserver {
    const labels = { name };
    const followed: Followed = { waiting: new Map(), working: new Map() };
    this.#queues.set(name, followed);
    // Shown as 0 from the beginning, as client-go's are.
    this.#adds.inc(labels, 0);
    this.#retries.inc(labels, 0);
    return {
      added: (key) => {
        this.#adds.inc(labels);
        if (!followed.waiting.has(key)) followed.waiting.set(key, this.#clock.monotonic());
      },
      taken: (key) => {
        const now = this.#clock.monotonic();
        const since = followed.waiting.get(key);
        followed.waiting.delete(key);
        followed.working.set(key, now);
        if (since !== undefined) this.#waitSeconds.observe(elapsedMs(since, now) / 1000, labels);
      },
      done: (key) => {
        const since = followed.working.get(key);
        followed.working.delete(key);
        if (since !== undefined) this.#workSeconds.observe(elapsedMs(since, this.#clock.monotonic()) / 1000, labels);
      },
      delayed: () => this.#retries.inc(labels),
    };
  }

  show(page: MetricsText): void {
    const now = this.#clock.monotonic();
    const gauge = (name: string, help: string, value: (followed: Followed) => number): void => {
      page.family(name, 'gauge', help);
      for (const [queue, followed] of this.#queues) page.sample(value(followed), labelText({ name: queue }));
    };
    const seconds = ({ working }: Followed): readonly number[] =>
      [...working.values()].map((since) => elapsedMs(since, now) / 1000);
    gauge('workqueue_depth', '[BETA] Current depth of workqueue', ({ waiting }) => waiting.size);
    gauge(
      'workqueue_unfinished_work_seconds',
      "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
      (followed) => seconds(followed).reduce((sum, each) => sum + each, 0),
    );
    gauge(
      'workqueue_longest_running_processor_seconds',
      '[BETA] How many seconds has the longest running processor for workqueue been running.',
      (followed) => Math.max(0, ...seconds(followed)),
    );
    for (const metric of [this.#adds, this.#retries, this.#waitSeconds, this.#workSeconds]) metric.show(page);
  }
}
