// What a PodDisruptionBudget's status says: how many pods there should be, how many have to be healthy, how many are, and how many
// may go. Pure.

import type { Condition, LabelSelector } from 'kubernetes-types/meta/v1';
import type { Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { parseRfc3339, rfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '../shared/objects.ts';
import { isReady } from '../shared/pods.ts';
import { scaledValue } from '../shared/scaled-value.ts';

/** So long after an eviction a pod is expected to be seen on its way out. */
const DELETION_TIMEOUT_MS = 120_000;
const CONDITION = 'DisruptionAllowed';

/** Whether the number of pods comes from the scale of their controllers: for parts, and for what may be missing. */
export function countsByScale({ spec }: PodDisruptionBudget): boolean {
  return spec.maxUnavailable !== undefined || typeof spec.minAvailable === 'string';
}

export interface Expected {
  readonly pods: number;
  readonly healthy: number;
}

/** `count`: how many pods there should be, by their controllers' scale or as they are, as countsByScale says. */
export function expectedPods({ spec }: PodDisruptionBudget, count: number): Expected {
  const { maxUnavailable, minAvailable } = spec;
  if (maxUnavailable !== undefined) {
    return { pods: count, healthy: Math.max(0, count - scaledValue(maxUnavailable, count, Math.ceil)) };
  }
  return minAvailable === undefined
    ? { pods: 0, healthy: 0 }
    : { pods: count, healthy: scaledValue(minAvailable, count, Math.ceil) };
}

export interface Disrupted {
  /** Evicted, and not seen on their way out yet. */
  readonly pods: Record<string, string>;
  /** Evicted, and still there after the time in which they should have gone. */
  readonly notDeleted: readonly Pod[];
  /** Ms until the next one is overdue. */
  readonly recheckMs: number | undefined;
}

export function disruptedPods({ status }: PodDisruptionBudget, pods: readonly Pod[], now: EpochMs): Disrupted {
  const left: [string, string][] = [];
  const notDeleted: Pod[] = [];
  let recheckMs: number | undefined;
  for (const pod of pods) {
    const { name, deletionTimestamp } = pod.metadata;
    const evicted = getOwn(status?.disruptedPods, name);
    const at = parseRfc3339(evicted);
    if (deletionTimestamp !== undefined || evicted === undefined || at === undefined) continue;
    const wait = DELETION_TIMEOUT_MS - elapsedMs(at, now);
    if (wait < 0) {
      notDeleted.push(pod);
      continue;
    }
    left.push([name, evicted]);
    recheckMs = Math.min(recheckMs ?? wait + 1, wait + 1);
  }
  return { pods: Object.fromEntries(left), notDeleted, recheckMs };
}

/** Ready, and not about to go. */
export function countHealthy(pods: readonly Pod[], disrupted: Readonly<Record<string, string>>): number {
  return pods.filter((pod) => {
    const { name, deletionTimestamp } = pod.metadata;
    return deletionTimestamp === undefined && getOwn(disrupted, name) === undefined && isReady(pod);
  }).length;
}

/** Without a pod that should be there nothing may go: the first ones may be there before this controller sees them. */
export function budgetStatus(
  { metadata, status }: PodDisruptionBudget,
  expected: Expected,
  currentHealthy: number,
  disrupted: Readonly<Record<string, string>>,
  now: EpochMs,
): PodDisruptionBudgetStatus {
  const disruptionsAllowed = expected.pods > 0 ? Math.max(0, currentHealthy - expected.healthy) : 0;
  const observedGeneration = metadata.generation ?? 0;
  const [value, reason] =
    disruptionsAllowed > 0 ? (['True', 'SufficientPods'] as const) : (['False', 'InsufficientPods'] as const);
  return {
    currentHealthy,
    desiredHealthy: expected.healthy,
    expectedPods: expected.pods,
    disruptionsAllowed,
    ...(Object.keys(disrupted).length === 0 ? {} : { disruptedPods: { ...disrupted } }),
    observedGeneration,
    conditions: withCondition(status?.conditions, { value, reason, message: '', observedGeneration }, now),
  };
}

/** Nothing may be evicted while the numbers are not known. */
export function failedStatus(
  { status }: PodDisruptionBudget,
  message: string,
  now: EpochMs,
): PodDisruptionBudgetStatus {
  const { currentHealthy = 0, desiredHealthy = 0, expectedPods: pods = 0, observedGeneration = 0 } = status ?? {};
  const next = { value: 'False', reason: 'SyncFailed', message, observedGeneration } as const;
  return {
    ...status,
    currentHealthy,
    desiredHealthy,
    expectedPods: pods,
    disruptionsAllowed: 0,
    conditions: withCondition(status?.conditions, next, now),
  };
}

interface Allowed {
  readonly value: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

function withCondition(known: readonly Condition[] = [], next: Allowed, now: EpochMs): Condition[] {
  const before = known.find(({ type }) => type === CONDITION);
  const { value, ...rest } = next;
  const lastTransitionTime = before?.status === value ? before.lastTransitionTime : rfc3339(now);
  const condition: Condition = { type: CONDITION, status: value, lastTransitionTime, ...rest };
  return before === undefined ? [...known, condition] : known.map((each) => (each === before ? condition : each));
}

export function sameBudgetStatus(a: PodDisruptionBudgetStatus | undefined, b: PodDisruptionBudgetStatus): boolean {
  const whole = (status: PodDisruptionBudgetStatus | undefined): object => ({
    disruptedPods: {},
    observedGeneration: 0,
    conditions: [],
    ...status,
  });
  return sameJson(whole(a), whole(b));
}

/** A selector as Go prints it, for the event that names it. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${value},`);
  const expressions = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  );
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join('')}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`;
}
