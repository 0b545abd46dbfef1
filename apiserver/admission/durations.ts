// How long admission takes, by plugin, by phase and by webhook, with kube-apiserver's names and labels.

import type { Registry as PromRegistry } from 'prom-client';
import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { CountedHistogram, type CountedPlace } from '../counted-histogram.ts';

export type Phase = 'admit' | 'validate';
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];

export class AdmissionDurations {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #plugins: CountedHistogram<'name' | 'type' | 'operation' | 'rejected'>;
  readonly #steps: CountedHistogram<'type' | 'operation' | 'rejected'>;
  readonly #places = new Map<string, CountedPlace>();

  constructor(registers: PromRegistry[], clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#plugins = new CountedHistogram({
      name: 'apiserver_admission_controller_admission_duration_seconds',
      help: 'Seconds of each admission plugin, by name, operation and type (validate or admit).',
      labelNames: ['name', 'type', 'operation', 'rejected'],
      buckets: BUCKETS,
      registers,
    });
    this.#steps = new CountedHistogram({
      name: 'apiserver_admission_step_admission_duration_seconds',
      help: 'Seconds of all admission plugins of a request together, by operation and type (validate or admit).',
      labelNames: ['type', 'operation', 'rejected'],
      buckets: BUCKETS,
      registers,
    });
  }

  now(): MonotonicMs {
    return this.#clock.monotonic();
  }

  /** One plugin has had its turn, that began at `since`; '' for all of them. */
  observe(name: string, type: Phase, operation: string, isRejected: boolean, since: MonotonicMs): void {
    const key = `${name} ${type} ${operation} ${isRejected}`;
    let place = this.#places.get(key);
    if (place === undefined) {
      const labels = { type, operation, rejected: String(isRejected) };
      place = name === '' ? this.#steps.place(labels) : this.#plugins.place({ name, ...labels });
      this.#places.set(key, place);
    }
    place.observe(elapsedMs(since, this.now()) / 1000);
  }
}
