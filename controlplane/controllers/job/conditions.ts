// The conditions of a job: how each is worded, found, and set. Pure.

import type { EpochMs } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Job, JobCondition } from '../shared/objects.ts';

/** Two of them announce the two that end a job: its pods are counted in between. */
export type ConditionType = 'SuccessCriteriaMet' | 'FailureTarget' | 'Complete' | 'Failed' | 'Suspended';

export function newCondition(
  type: ConditionType,
  reason: string,
  message: string,
  now: EpochMs,
  status: 'True' | 'False' = 'True',
): JobCondition {
  const at = rfc3339(now);
  return { type, status, lastProbeTime: at, lastTransitionTime: at, reason, message };
}

type Conditions = readonly JobCondition[];

/** The condition where it holds. */
export function findTrue(conditions: Conditions | undefined, type: ConditionType): JobCondition | undefined {
  return conditions?.find((each) => each.type === type && each.status === 'True');
}

/** The condition that ended the job. */
export function finishedBy({ status }: Job): JobCondition | undefined {
  return findTrue(status?.conditions, 'Complete') ?? findTrue(status?.conditions, 'Failed');
}

/**
 * The conditions with this one; the same list where they have it, reason and message included, and where it is False and they
 * do not have it.
 */
export function setCondition(conditions: Conditions, next: JobCondition): Conditions {
  const known = conditions.find(({ type }) => type === next.type);
  if (known === undefined) return next.status === 'False' ? conditions : [...conditions, next];
  const same = known.status === next.status && known.reason === next.reason && known.message === next.message;
  return same ? conditions : conditions.map((each) => (each === known ? next : each));
}
