// The status of a deployment: its counts, whether enough pods are available, and whether the rollout gets on. Pure.

import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339, rfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import {
  type Deployment,
  type DeploymentCondition,
  type DeploymentStatus,
  type ReplicaSet,
  replicasOf,
} from '../shared/objects.ts';
import { actualReplicas, availableReplicas, maxUnavailable, readyReplicas, specReplicas } from './counts.ts';
import type { Split } from './sets.ts';

const NO_DEADLINE = 2 ** 31 - 1;
const TIMED_OUT = 'ProgressDeadlineExceeded';
const AVAILABLE = 'NewReplicaSetAvailable';

type Conditions = readonly DeploymentCondition[];
export interface NewCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** Seconds; undefined where the deployment has no deadline. */
function deadline({ spec }: Deployment): number | undefined {
  const { progressDeadlineSeconds: seconds } = spec;
  return seconds === NO_DEADLINE ? undefined : seconds;
}

const find = (conditions: Conditions, type: string): DeploymentCondition | undefined =>
  conditions.find((condition) => condition.type === type);
const without = (conditions: Conditions, type: string): Conditions =>
  conditions.filter((condition) => condition.type !== type);

/** Nothing changes where status and reason stay; the transition is younger only where the status changes. */
export function withCondition(conditions: Conditions, next: NewCondition, now: EpochMs, renew = false): Conditions {
  const known = find(conditions, next.type);
  if (!renew && known?.status === next.status && known.reason === next.reason) return conditions;
  const at = rfc3339(now);
  const since = known?.status === next.status ? known.lastTransitionTime : undefined;
  return [...without(conditions, next.type), { ...next, lastUpdateTime: at, lastTransitionTime: since ?? at }];
}

/** The condition Progressing, where the deployment has a deadline. */
export function withProgress(
  deployment: Deployment,
  conditions: Conditions,
  progress: Omit<NewCondition, 'type'>,
  now: EpochMs,
): Conditions {
  if (deadline(deployment) === undefined) return conditions;
  return withCondition(conditions, { ...progress, type: 'Progressing' }, now);
}

/** A found replica set counts as progress where none has been recorded. */
export function withFoundSet(deployment: Deployment, conditions: Conditions, name: string, now: EpochMs): Conditions {
  if (find(conditions, 'Progressing') !== undefined) return conditions;
  const message = `Found new replica set "${name}"`;
  return withProgress(deployment, conditions, { status: 'True', reason: 'FoundNewReplicaSet', message }, now);
}

/** While it is paused time does not count: a deadline begins anew when it is resumed. */
export function withPause(deployment: Deployment, conditions: Conditions, now: EpochMs): Conditions {
  const reason = find(conditions, 'Progressing')?.reason;
  if (reason === TIMED_OUT) return conditions;
  const paused = deployment.spec.paused === true;
  if (paused === (reason === 'DeploymentPaused')) return conditions;
  const progress = paused
    ? { reason: 'DeploymentPaused', message: 'Deployment is paused' }
    : { reason: 'DeploymentResumed', message: 'Deployment is resumed' };
  return withProgress(deployment, conditions, { status: 'Unknown', ...progress }, now);
}

/** The counts, and the condition Available. */
export function deploymentStatus(
  deployment: Deployment,
  { current, old }: Split,
  conditions: Conditions,
  now: EpochMs,
): DeploymentStatus {
  const all = current === undefined ? old : [...old, current];
  const available = availableReplicas(all);
  const enough = available >= replicasOf(deployment) - maxUnavailable(deployment);
  const condition: NewCondition = enough
    ? {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
      }
    : {
        type: 'Available',
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      };
  const { collisionCount } = deployment.status ?? {};
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: actualReplicas(all),
    updatedReplicas: actualReplicas(current === undefined ? [] : [current]),
    readyReplicas: readyReplicas(all),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, specReplicas(all) - available),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    conditions: [...withCondition(conditions, condition, now)],
  };
}

/** All pods are of the current template and available, and no others are there. */
export function isComplete(deployment: Deployment, status: DeploymentStatus | undefined): boolean {
  const wanted = replicasOf(deployment);
  const { replicas = 0, updatedReplicas = 0, availableReplicas: available = 0, observedGeneration = 0 } = status ?? {};
  return (
    updatedReplicas === wanted &&
    replicas === wanted &&
    available === wanted &&
    observedGeneration >= (deployment.metadata.generation ?? 0)
  );
}

/** More of the new, fewer of the old, or more that are ready or available, than the last status says. */
function hasProgressed(before: DeploymentStatus = {}, after: DeploymentStatus): boolean {
  const old = ({ replicas = 0, updatedReplicas = 0 }: DeploymentStatus): number => replicas - updatedReplicas;
  const grew = (a = 0, b = 0): boolean => b > a;
  return (
    grew(before.updatedReplicas, after.updatedReplicas) ||
    old(after) < old(before) ||
    grew(before.readyReplicas, after.readyReplicas) ||
    grew(before.availableReplicas, after.availableReplicas)
  );
}

function isTimedOut(deployment: Deployment, conditions: Conditions, now: EpochMs): boolean {
  const condition = find(conditions, 'Progressing');
  if (condition === undefined || condition.reason === AVAILABLE) return false;
  if (condition.reason === TIMED_OUT) return true;
  const from = parseRfc3339(condition.lastUpdateTime);
  const seconds = deadline(deployment);
  return from !== undefined && seconds !== undefined && elapsedMs(from, now) > seconds * 1000;
}

/** The current set's refusals before those of an old one. */
function withFailure(conditions: Conditions, { current, old }: Split, now: EpochMs): Conditions {
  const all = current === undefined ? old : [current, ...old];
  const failures = all.flatMap((set: ReplicaSet) => set.status?.conditions ?? []);
  const failure = failures.find(({ type }) => type === 'ReplicaFailure');
  if (failure === undefined) return without(conditions, 'ReplicaFailure');
  const { type, status, reason = '', message = '' } = failure;
  if (status !== 'True' && status !== 'False') return conditions;
  return withCondition(conditions, { type, status, reason, message }, now);
}

/** The status during a rollout: the counts, and what they say of its progress. */
export function rolloutStatus(deployment: Deployment, split: Split, known: Conditions, now: EpochMs): DeploymentStatus {
  const status = deploymentStatus(deployment, split, known, now);
  const conditions = progress(deployment, split.current, status, find(known, 'Progressing'), now);
  return { ...status, conditions: [...withFailure(conditions, split, now)] };
}

function progress(
  deployment: Deployment,
  current: ReplicaSet | undefined,
  status: DeploymentStatus,
  before: DeploymentCondition | undefined,
  now: EpochMs,
): Conditions {
  const conditions = status.conditions ?? [];
  if (deadline(deployment) === undefined) return without(conditions, 'Progressing');
  const done = status.replicas === status.updatedReplicas && before?.reason === AVAILABLE;
  if (done) return conditions;
  const { name } = deployment.metadata;
  const what = current === undefined ? `Deployment "${name}"` : `ReplicaSet "${current.metadata.name}"`;
  const type = 'Progressing';
  if (isComplete(deployment, status)) {
    const message = `${what} has successfully progressed.`;
    return withCondition(conditions, { type, status: 'True', reason: AVAILABLE, message }, now);
  }
  if (hasProgressed(deployment.status, status)) {
    const next: NewCondition = {
      type,
      status: 'True',
      reason: 'ReplicaSetUpdated',
      message: `${what} is progressing.`,
    };
    // Each step is written down, also where the reason is the same: the deadline is counted from the last one.
    return withCondition(conditions, next, now, true);
  }
  if (!isTimedOut(deployment, conditions, now)) return conditions;
  const message = `${what} has timed out progressing.`;
  return withCondition(conditions, { type, status: 'False', reason: TIMED_OUT, message }, now);
}

/** When to look at the progress again, in ms from now: a rollout that is stuck causes no event. */
export function nextCheckMs(deployment: Deployment, status: DeploymentStatus, now: EpochMs): number | undefined {
  const condition = find(status.conditions ?? [], 'Progressing');
  const seconds = deadline(deployment);
  if (seconds === undefined || condition === undefined || deployment.spec.paused === true) return undefined;
  if (isComplete(deployment, status) || condition.reason === TIMED_OUT) return undefined;
  const from = parseRfc3339(condition.lastUpdateTime);
  // A second more: what is written is cut to whole ones.
  return from === undefined ? undefined : Math.max(0, seconds * 1000 - elapsedMs(from, now)) + 1000;
}

/** A count that the server leaves out when it is 0 counts as 0. */
export function sameStatus(a: DeploymentStatus | undefined, b: DeploymentStatus): boolean {
  const whole = (status: DeploymentStatus = {}) => ({
    replicas: 0,
    updatedReplicas: 0,
    readyReplicas: 0,
    availableReplicas: 0,
    unavailableReplicas: 0,
    observedGeneration: 0,
    conditions: [],
    ...status,
  });
  return sameJson(whole(a), whole(b));
}
