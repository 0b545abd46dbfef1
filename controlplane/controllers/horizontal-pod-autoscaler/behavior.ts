// How fast a target may follow its metrics: stabilization windows, limits by policies, and the bounds of the autoscaler. Pure: what
// happened before comes in as a history, and the next one is returned.

import type { HorizontalPodAutoscalerBehavior, HPAScalingRules } from 'kubernetes-types/autoscaling/v2';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';

/** A number of replicas at a moment: one recommended, or by how many the target was scaled. The wall clock may jump meanwhile. */
export interface Sample {
  readonly replicas: number;
  readonly at: MonotonicMs;
}

export interface ScaleHistory {
  readonly recommendations: readonly Sample[];
  readonly ups: readonly Sample[];
  readonly downs: readonly Sample[];
}

export const NO_HISTORY: ScaleHistory = { recommendations: [], ups: [], downs: [] };

export interface Limits {
  readonly min: number;
  readonly max: number;
  readonly current: number;
}

export interface Reason {
  readonly reason: string;
  readonly message: string;
}

export interface Normalized {
  readonly replicas: number;
  readonly history: ScaleHistory;
  readonly ableToScale: Reason;
  /** Status of ScalingLimited. */
  readonly isLimited: boolean;
  readonly limit: Reason;
}

const READY: Reason = { reason: 'ReadyForNewScale', message: 'recommended size matches current size' };
const UP_STABILIZED: Reason = {
  reason: 'ScaleUpStabilized',
  message: 'recent recommendations were lower than current one, applying the lowest recent recommendation',
};
const DOWN_STABILIZED: Reason = {
  reason: 'ScaleDownStabilized',
  message: 'recent recommendations were higher than current one, applying the highest recent recommendation',
};
const IN_RANGE: Reason = { reason: 'DesiredWithinRange', message: 'the desired count is within the acceptable range' };
const UP_LIMIT: Reason = {
  reason: 'ScaleUpLimit',
  message: 'the desired replica count is increasing faster than the maximum scale rate',
};
const DOWN_LIMIT: Reason = {
  reason: 'ScaleDownLimit',
  message: 'the desired replica count is decreasing faster than the maximum scale rate',
};
const TOO_MANY: Reason = {
  reason: 'TooManyReplicas',
  message: 'the desired replica count is more than the maximum replica count',
};
const TOO_FEW: Reason = {
  reason: 'TooFewReplicas',
  message: 'the desired replica count is less than the minimum replica count',
};

const within = (samples: readonly Sample[], ms: number, now: MonotonicMs): readonly Sample[] =>
  samples.filter(({ at }) => elapsedMs(at, now) < ms);

/** Without spec.behavior: down only after a while, up to twice as many or 4. */
export function normalizePlainly(
  desired: number,
  { min, max, current }: Limits,
  history: ScaleHistory,
  stabilizationMs: number,
  now: MonotonicMs,
): Normalized {
  const recent = within(history.recommendations, stabilizationMs, now);
  const stabilized = Math.max(desired, ...recent.map(({ replicas }) => replicas));
  const upLimit = Math.max(2 * current, 4);
  const [most, why] = max > upLimit ? [upLimit, UP_LIMIT] : [max, TOO_MANY];
  const [replicas, limit] =
    stabilized < min ? [min, TOO_FEW] : stabilized > most ? [most, why] : [stabilized, IN_RANGE];
  return {
    replicas,
    history: { ...history, recommendations: [...recent, { replicas: desired, at: now }] },
    ableToScale: stabilized === desired ? READY : DOWN_STABILIZED,
    isLimited: replicas !== stabilized,
    limit,
  };
}

/** With spec.behavior, as the server defaults it. `defaultDownMs`: the window for scaling down where it names none. */
export function normalizeByBehavior(
  desired: number,
  limits: Limits,
  behavior: HorizontalPodAutoscalerBehavior,
  history: ScaleHistory,
  defaultDownMs: number,
  now: MonotonicMs,
): Normalized {
  const { current } = limits;
  const upMs = (behavior.scaleUp?.stabilizationWindowSeconds ?? 0) * 1000;
  const downSeconds = behavior.scaleDown?.stabilizationWindowSeconds;
  const downMs = downSeconds === undefined ? defaultDownMs : downSeconds * 1000;
  const counts = (ms: number): number[] => within(history.recommendations, ms, now).map(({ replicas }) => replicas);
  const lowest = Math.min(desired, ...counts(upMs));
  const highest = Math.max(desired, ...counts(downMs));
  const stabilized = Math.min(Math.max(current, lowest), highest);
  const stabilizedWhy = desired >= current ? UP_STABILIZED : DOWN_STABILIZED;
  const [replicas, limit] = limitByRate(stabilized, limits, behavior, history, now);
  const kept = within(history.recommendations, Math.max(upMs, downMs), now);
  return {
    replicas,
    history: { ...history, recommendations: [...kept, { replicas: desired, at: now }] },
    ableToScale: stabilized === desired ? READY : stabilizedWhy,
    isLimited: replicas !== stabilized,
    limit,
  };
}

function limitByRate(
  desired: number,
  { min, max, current }: Limits,
  { scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior,
  history: ScaleHistory,
  now: MonotonicMs,
): readonly [number, Reason] {
  if (desired > current) {
    const rate = Math.max(upRate(current, scaleUp, history, now), current);
    const [most, why] = max > rate ? [rate, UP_LIMIT] : [max, TOO_MANY];
    if (desired > most) return [most, why];
  } else if (desired < current) {
    const rate = Math.min(downRate(current, scaleDown, history, now), current);
    const [least, why] = min < rate ? [rate, DOWN_LIMIT] : [min, TOO_FEW];
    if (desired < least) return [least, why];
  }
  return [desired, IN_RANGE];
}

/** How many there were when the policy's period began. */
function before(current: number, seconds: number, { ups, downs }: ScaleHistory, now: MonotonicMs): number {
  const sum = (samples: readonly Sample[]): number =>
    within(samples, seconds * 1000, now).reduce((total, { replicas }) => total + replicas, 0);
  return current - sum(ups) + sum(downs);
}

function upRate(current: number, rules: HPAScalingRules | undefined, history: ScaleHistory, now: MonotonicMs): number {
  if (rules?.selectPolicy === 'Disabled') return current;
  const proposed = (rules?.policies ?? []).map(({ type, value, periodSeconds }) => {
    const start = before(current, periodSeconds, history, now);
    return type === 'Pods' ? start + value : Math.ceil(start * (1 + value / 100));
  });
  return rules?.selectPolicy === 'Min' ? Math.min(...proposed) : Math.max(0, ...proposed);
}

function downRate(
  current: number,
  rules: HPAScalingRules | undefined,
  history: ScaleHistory,
  now: MonotonicMs,
): number {
  if (rules?.selectPolicy === 'Disabled') return current;
  const proposed = (rules?.policies ?? []).map(({ type, value, periodSeconds }) => {
    const start = before(current, periodSeconds, history, now);
    return type === 'Pods' ? start - value : Math.trunc(start * (1 - value / 100));
  });
  return rules?.selectPolicy === 'Min' ? Math.max(...proposed) : Math.min(Number.MAX_SAFE_INTEGER, ...proposed);
}

/** After the target was scaled; what no policy looks back at any more is dropped. */
export function withScale(
  history: ScaleHistory,
  behavior: HorizontalPodAutoscalerBehavior | undefined,
  from: number,
  to: number,
  now: MonotonicMs,
): ScaleHistory {
  if (behavior === undefined || from === to) return history;
  const periods = [...(behavior.scaleUp?.policies ?? []), ...(behavior.scaleDown?.policies ?? [])];
  const longestMs = Math.max(0, ...periods.map(({ periodSeconds }) => periodSeconds)) * 1000;
  const change = { replicas: Math.abs(to - from), at: now };
  return {
    ...history,
    ups: [...within(history.ups, longestMs, now), ...(to > from ? [change] : [])],
    downs: [...within(history.downs, longestMs, now), ...(to < from ? [change] : [])],
  };
}
