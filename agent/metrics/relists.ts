// The relist of the runtime's pods as the kubelet's PLEG metrics: how long it takes, how often it is, and when it last was.

import { type Clock, type EpochMs, elapsedMs, type MonotonicMs, plusMs } from '../../lib/clock.ts';
import { DEFAULT_BUCKETS, Histogram, type Metric } from '../../lib/metrics.ts';

export class Relists {
  readonly #clock: Clock;
  #beganAt: MonotonicMs | undefined;
  #lastAt: EpochMs | undefined;
  readonly #seconds = new Histogram(
    'kubelet_pleg_relist_duration_seconds',
    '[ALPHA] Duration in seconds for relisting pods in PLEG.',
    DEFAULT_BUCKETS,
  );
  readonly #interval = new Histogram(
    'kubelet_pleg_relist_interval_seconds',
    '[ALPHA] Interval in seconds between relisting in PLEG.',
    DEFAULT_BUCKETS,
  );

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get metrics(): readonly Metric[] {
    return [this.#seconds, this.#interval];
  }

  /** Epoch ms; undefined before the first. */
  get lastAt(): EpochMs | undefined {
    return this.#lastAt;
  }

  /** One has ended now, with success. */
  relisted(durationMs: number): void {
    const now = this.#clock.monotonic();
    this.#seconds.observe(durationMs / 1000);
    if (this.#beganAt !== undefined) this.#interval.observe((elapsedMs(this.#beganAt, now) - durationMs) / 1000);
    this.#beganAt = plusMs(now, -durationMs);
    this.#lastAt = this.#clock.now();
  }
}
