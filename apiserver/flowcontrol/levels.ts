// The state of each priority level while the server runs: its queues, its seats, and what they were needed for. Follows
// the configuration, and every ten seconds divides the seats anew by the demand there was.

import type { MonotonicMs } from '../../lib/clock.ts';
import {
  adjust,
  type Demand,
  type LevelLimits,
  type LevelSpec,
  limitsOf,
  NO_DEMAND,
  nextDemand,
} from './concurrency.ts';
import type { FlowConfig, Level } from './config.ts';
import { DemandIntegral } from './demand.ts';
import { QueueSet, type QueueSetConfig } from './queue-set.ts';
import { RetryAfter } from './retry-after.ts';

export interface LevelState<Item> {
  level: Level;
  readonly queues: QueueSet<Item>;
  queuing: QueueSetConfig;
  handSize: number;
  limits: LevelLimits;
  /** Seats now, with what is lent and borrowed. */
  current: number;
  target: number;
  demand: Demand;
  readonly integral: DemandIntegral;
  readonly retryAfter: RetryAfter;
  /** It is no longer configured, and goes when its requests are over. */
  isQuiescing: boolean;
  /** How much of the event loop's time it has had, by its share. */
  pass: number;
  dispatched: number;
  rejected: number;
  timedOut: number;
  cancelled: number;
}

/** The most seats of one request. */
const MOST_SEATS = 10;

export function isExempt({ spec }: Level): boolean {
  return spec.type === 'Exempt';
}

function queuingOf({ type, limited }: LevelSpec): { queuing: QueueSetConfig; handSize: number } {
  if (type === 'Exempt') return { queuing: { queues: 'exempt', queueLengthLimit: 0 }, handSize: 0 };
  const queuing = limited?.limitResponse?.queuing;
  if (queuing === undefined) return { queuing: { queues: 0, queueLengthLimit: 0 }, handSize: 0 };
  const { queues = 64, queueLengthLimit = 50, handSize = 8 } = queuing;
  return { queuing: { queues, queueLengthLimit }, handSize };
}

/** The most seats that a request of the level may have. */
export function mostSeats({ limits: { nominal }, handSize }: Pick<LevelState<unknown>, 'limits' | 'handSize'>): number {
  const byHand = handSize === 0 ? MOST_SEATS : Math.floor(nominal / handSize);
  return Math.min(MOST_SEATS, Math.max(1, Math.min(Math.ceil(nominal * 0.15), byHand)));
}

export class Levels<Item> {
  /** By name. */
  readonly states = new Map<string, LevelState<Item>>();
  readonly #total: number;
  fairFraction = 0;

  /** `total`: the requests that the server executes at a time. */
  constructor(total: number) {
    this.#total = total;
  }

  configure({ levels }: Pick<FlowConfig, 'levels'>, now: MonotonicMs): void {
    for (const [name, state] of this.states) {
      state.isQuiescing = !levels.has(name);
      if (state.isQuiescing && state.queues.isIdle) this.states.delete(name);
    }
    const specs = new Map([...this.states].map(([name, { level }]) => [name, level.spec]));
    for (const [name, { spec }] of levels) specs.set(name, spec);
    const limits = limitsOf(specs, this.#total);
    for (const [name, level] of levels) {
      const { queuing, handSize } = queuingOf(level.spec);
      const own = limits.get(name) ?? { nominal: 0, lower: 0, upper: 0 };
      const state = this.states.get(name);
      if (state === undefined) this.states.set(name, newState(level, queuing, handSize, own, now));
      else Object.assign(state, { level, queuing, handSize });
    }
    for (const [name, own] of limits) {
      const state = this.states.get(name);
      if (state !== undefined) state.limits = own;
    }
    this.#divide();
  }

  /** Ends a period of observation and divides the seats by it. */
  adjust(now: MonotonicMs): void {
    for (const [name, state] of this.states) {
      state.demand = nextDemand(state.demand, state.integral.reset(now));
      if (state.isQuiescing && state.queues.isIdle) this.states.delete(name);
    }
    this.#divide();
  }

  #divide(): void {
    const levels = [...this.states].map(([name, { level, limits, demand }]) => {
      return [name, { exempt: isExempt(level), limits, demand }] as const;
    });
    const { current, targets, fairFraction } = adjust(new Map(levels));
    this.fairFraction = fairFraction;
    for (const [name, state] of this.states) {
      state.current = current.get(name) ?? state.limits.nominal;
      state.target = targets.get(name) ?? 0;
      state.queues.configure(state.queuing, state.current);
    }
  }
}

function newState<Item>(
  level: Level,
  queuing: QueueSetConfig,
  handSize: number,
  limits: LevelLimits,
  now: MonotonicMs,
): LevelState<Item> {
  return {
    level,
    queues: new QueueSet(queuing, limits.nominal),
    queuing,
    handSize,
    limits,
    current: limits.nominal,
    target: 0,
    demand: NO_DEMAND,
    integral: new DemandIntegral(now),
    retryAfter: new RetryAfter(),
    isQuiescing: false,
    pass: 0,
    dispatched: 0,
    rejected: 0,
    timedOut: 0,
    cancelled: 0,
  };
}
