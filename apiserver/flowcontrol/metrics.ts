// The figures of API Priority and Fairness, by kube-apiserver's names (apiserver_flowcontrol_…). Numbers and states are read
// when they are shown; only durations are recorded with each request.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { FlowControl, FlowCounts, FlowObserver, Ticket } from './flow-control.ts';
import type { LevelState } from './levels.ts';

const PREFIX = 'apiserver_flowcontrol_';
const FLOW = ['priority_level', 'flow_schema'] as const;
const SECONDS = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
const SEATS = [1, 2, 4, 8, 16, 32, 64, 100];

const PER_LEVEL: Readonly<Record<string, readonly [string, (state: LevelState<Ticket>) => number]>> = {
  nominal_limit_seats: ['Seats by the share of the level.', ({ limits }) => limits.nominal],
  lower_limit_seats: ['Seats with everything lent that may be.', ({ limits }) => limits.lower],
  upper_limit_seats: ['Seats with everything borrowed that may be.', ({ limits }) => limits.upper],
  current_limit_seats: ['Seats now.', ({ current }) => current],
  demand_seats_high_watermark: [
    'The most seats that were needed in the last period.',
    ({ demand }) => demand.highWatermark,
  ],
  demand_seats_average: ['The seats that were needed in the last period, on average.', ({ demand }) => demand.average],
  demand_seats_stdev: [
    'How much the seats that were needed varied in the last period.',
    ({ demand }) => demand.deviation,
  ],
  demand_seats_smoothed: ['The seats that are needed, smoothed.', ({ demand }) => demand.smoothed],
  target_seats: ['Seats to be given to the level where there are enough.', ({ target }) => target],
};

const PER_FLOW: Readonly<Record<string, readonly [string, (counts: FlowCounts) => number]>> = {
  current_inqueue_requests: ['Requests that wait in queues.', ({ waiting }) => waiting],
  current_inqueue_seats: ['Seats of the requests that wait in queues.', ({ waitingSeats }) => waitingSeats],
  current_executing_requests: ['Requests that are executed now.', ({ executing }) => executing],
  current_executing_seats: ['Seats of the requests that are executed now.', ({ executingSeats }) => executingSeats],
};

export class FlowMetrics implements FlowObserver {
  readonly #registers: Registry[];
  readonly #waited: Histogram;
  readonly #executed: Histogram;
  readonly #estimated: Histogram;

  constructor(registers: Registry[]) {
    this.#registers = registers;
    const histogram = (name: string, help: string, labels: readonly string[], buckets: number[]): Histogram =>
      new Histogram({ name: `${PREFIX}${name}`, help, labelNames: [...FLOW, ...labels], buckets, registers });
    this.#waited = histogram('request_wait_duration_seconds', 'Seconds in a queue.', ['execute'], SECONDS);
    this.#executed = histogram('request_execution_seconds', 'Seconds of execution.', ['type'], SECONDS);
    this.#estimated = histogram('work_estimated_seats', 'Seats of each request.', [], SEATS);
  }

  waited(priority_level: string, flow_schema: string, executed: boolean, seconds: number): void {
    this.#waited.observe({ priority_level, flow_schema, execute: String(executed) }, seconds);
  }

  executed(priority_level: string, flow_schema: string, isWatch: boolean, seconds: number): void {
    this.#executed.observe({ priority_level, flow_schema, type: isWatch ? 'watch' : 'regular' }, seconds);
  }

  estimated(priority_level: string, flow_schema: string, seats: number): void {
    this.#estimated.observe({ priority_level, flow_schema }, seats);
  }

  /** Shows the state of the flow control from now on. */
  show(flow: FlowControl): void {
    const registers = this.#registers;
    for (const [name, [help, value]] of Object.entries(PER_LEVEL)) {
      new Gauge({
        name: `${PREFIX}${name}`,
        help,
        labelNames: ['priority_level'],
        registers,
        collect() {
          this.reset();
          for (const [priority_level, state] of flow.levels) this.set({ priority_level }, value(state));
        },
      });
    }
    for (const [name, [help, value]] of Object.entries(PER_FLOW)) {
      new Gauge({
        name: `${PREFIX}${name}`,
        help,
        labelNames: FLOW,
        registers,
        collect() {
          for (const counts of flow.counts) this.set(labels(counts), value(counts));
        },
      });
    }
    totals(flow, registers);
  }
}

const labels = ({ level, schema }: FlowCounts) => ({ priority_level: level, flow_schema: schema });

function totals(flow: FlowControl, registers: Registry[]): void {
  new Counter({
    name: `${PREFIX}dispatched_requests_total`,
    help: 'Requests that were executed.',
    labelNames: FLOW,
    registers,
    collect() {
      this.reset();
      for (const counts of flow.counts) this.inc(labels(counts), counts.dispatched);
    },
  });
  new Counter({
    name: `${PREFIX}rejected_requests_total`,
    help: 'Requests that were refused.',
    labelNames: [...FLOW, 'reason'],
    registers,
    collect() {
      this.reset();
      for (const counts of flow.counts) {
        for (const [reason, count] of counts.rejected) this.inc({ ...labels(counts), reason }, count);
      }
    },
  });
  new Gauge({
    name: `${PREFIX}seat_fair_frac`,
    help: 'The part of its target that each level gets.',
    registers,
    collect() {
      this.set(flow.fairFraction);
    },
  });
}
