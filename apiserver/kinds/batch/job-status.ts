// Rules for the status of a job: which conditions go together, and what may not go back. Most hold only where the update
// changes what they are about, so that an old fault does not block other reports.

import type { Job } from 'kubernetes-types/batch/v1';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { duplicate, IMMUTABLE, invalid, required } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';
import type { Of } from '../shapes.ts';
import { validateCounts } from '../shared/counts.ts';
import { overlap, parseIndexes } from './indexes.ts';
import { inconsistent } from './validate-job.ts';

type Status = NonNullable<Of<Job>['status']>;
type Condition = 'Complete' | 'Failed' | 'FailureTarget' | 'SuccessCriteriaMet' | 'Suspended';

function has(status: Status, type: Condition, value = 'True'): boolean {
  return (status.conditions ?? []).some((condition) => condition.type === type && condition.status === value);
}

const finished = (status: Status): boolean => has(status, 'Complete') || has(status, 'Failed');

/** One update of a status, with questions about what it changes. */
class Change {
  readonly job: Of<Job>;
  readonly status: Status;
  readonly before: Status;
  constructor(job: Of<Job>, old: Of<Job>) {
    this.job = job;
    this.status = job.status ?? {};
    this.before = old.status ?? {};
  }
  condition(...types: readonly Condition[]): boolean {
    return types.some((type) => has(this.status, type) !== has(this.before, type));
  }
  field(...fields: readonly (keyof Status)[]): boolean {
    return fields.some((field) => !sameJson(this.status[field] ?? null, this.before[field] ?? null));
  }
  get finished(): boolean {
    return finished(this.status) !== finished(this.before);
  }
}

export function validateJobStatus(job: Of<Job>, old: Of<Job>): FieldError[] {
  const change = new Change(job, old);
  return [
    ...validateCounts('status', change.status, ['active', 'succeeded', 'failed', 'ready', 'terminating']),
    ...validateUncounted(change.status),
    ...validateConditions(change),
    ...validateTimes(change),
    ...validateFinished(change),
    ...validateIndexes(change),
    ...validateSuccess(change),
    ...validateTransition(change),
  ];
}

function validateUncounted({ uncountedTerminatedPods }: Status): FieldError[] {
  const seen = new Set<string>();
  return (['succeeded', 'failed'] as const).flatMap((list) =>
    (uncountedTerminatedPods?.[list] ?? []).flatMap((uid, index) => {
      const field = `status.uncountedTerminatedPods.${list}[${index}]`;
      if (uid === '') return [invalid(field, uid, 'must not be empty')];
      if (seen.has(uid)) return [duplicate(field, uid)];
      seen.add(uid);
      return [];
    }),
  );
}

function validateConditions(change: Change): FieldError[] {
  const { status } = change;
  const errors: FieldError[] = [];
  const wrong = (why: string): void => {
    errors.push(inconsistent('status.conditions', why));
  };
  if (change.condition('Complete', 'Failed') && has(status, 'Complete') && has(status, 'Failed')) {
    wrong('cannot set Complete=True and Failed=true conditions');
  }
  if (change.condition('Complete', 'FailureTarget') && has(status, 'Complete') && has(status, 'FailureTarget')) {
    wrong('cannot set Complete=True and FailureTarget=true conditions');
  }
  const failing = change.condition('Failed') || change.field('failedIndexes');
  if (failing && has(status, 'Failed') && !has(status, 'FailureTarget')) {
    wrong('cannot set Failed=True condition without the FailureTarget=true condition');
  }
  const completing = change.condition('Complete', 'SuccessCriteriaMet');
  if (completing && has(status, 'Complete') && !has(status, 'SuccessCriteriaMet')) {
    wrong('cannot set Complete=True condition without the SuccessCriteriaMet=true condition');
  }
  return errors;
}

function validateTimes(change: Change): FieldError[] {
  const { status } = change;
  const { startTime, completionTime } = status;
  const field = 'status.completionTime';
  const errors: FieldError[] = [];
  if (change.condition('Complete') || change.field('completionTime')) {
    if (completionTime !== undefined && !has(status, 'Complete')) {
      errors.push(invalid(field, completionTime, 'cannot set completionTime when there is no Complete=True condition'));
    }
    if (completionTime === undefined && has(status, 'Complete')) {
      errors.push(required(field, 'completionTime is required for Complete jobs'));
    }
  }
  const [start, end] = [parseRfc3339(startTime), parseRfc3339(completionTime)];
  if (change.field('startTime', 'completionTime') && start !== undefined && end !== undefined && end < start) {
    errors.push(invalid(field, completionTime, 'must be equal to or after `startTime`'));
  }
  return errors;
}

function validateFinished(change: Change): FieldError[] {
  const { status, job } = change;
  const { active = 0, terminating = 0, ready, uncountedTerminatedPods: pods } = status;
  const errors: FieldError[] = [];
  const done = finished(status);
  if (done && active > 0 && (change.finished || change.field('active'))) {
    errors.push(invalid('status.active', active, 'active>0 is invalid for finished job'));
  }
  const suspendedEmpty = job.spec?.suspend === true && job.spec.completions === 0;
  if (done && status.startTime === undefined && !suspendedEmpty && (change.finished || change.field('startTime'))) {
    errors.push(required('status.startTime', 'startTime is required for finished job'));
  }
  const uncounted = (pods?.failed ?? []).length + (pods?.succeeded ?? []).length;
  if (done && uncounted > 0 && (change.finished || change.field('uncountedTerminatedPods'))) {
    errors.push(invalid('status.uncountedTerminatedPods', pods, 'must be empty for finished job'));
  }
  if (done && terminating > 0 && (change.finished || change.field('terminating'))) {
    errors.push(invalid('status.terminating', terminating, 'terminating>0 is invalid for finished job'));
  }
  if (ready !== undefined && ready > active && change.field('ready', 'active')) {
    errors.push(invalid('status.ready', ready, 'cannot set more ready pods than active'));
  }
  return errors;
}

function validateIndexes(change: Change): FieldError[] {
  const { status, job } = change;
  const { completedIndexes = '', failedIndexes } = status;
  const { completions, completionMode, backoffLimitPerIndex } = job.spec ?? {};
  const errors: FieldError[] = [];
  const parse = (field: 'completedIndexes' | 'failedIndexes', text: string): void => {
    const parsed = parseIndexes(text, completions ?? 0);
    if ('wrong' in parsed) errors.push(invalid(`status.${field}`, text, `error parsing ${field}: ${parsed.wrong}`));
  };
  if (change.field('completedIndexes')) {
    if (completions !== undefined) parse('completedIndexes', completedIndexes);
    if (completedIndexes !== '' && completionMode !== 'Indexed') {
      const why = 'cannot set non-empty completedIndexes when non-indexed completion mode';
      errors.push(invalid('status.completedIndexes', completedIndexes, why));
    }
  }
  if (failedIndexes === undefined) return errors;
  if (change.field('failedIndexes')) {
    if (completions !== undefined && backoffLimitPerIndex !== undefined) parse('failedIndexes', failedIndexes);
    if (backoffLimitPerIndex === undefined) {
      const why = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
      errors.push(invalid('status.failedIndexes', failedIndexes, why));
    }
  }
  if (completions !== undefined && change.field('failedIndexes', 'completedIndexes')) {
    const both = overlap(completedIndexes, failedIndexes, completions);
    if (both !== undefined) {
      const why = `failedIndexes and completedIndexes overlap at index: ${both}`;
      errors.push(invalid('status.failedIndexes', failedIndexes, why));
    }
  }
  return errors;
}

function validateSuccess({ status, job }: Change): FieldError[] {
  const met = has(status, 'SuccessCriteriaMet');
  const wrong: string[] = [];
  if (met && has(status, 'Failed')) wrong.push('cannot set SuccessCriteriaMet=True and Failed=true conditions');
  if (met && has(status, 'FailureTarget')) {
    wrong.push('cannot set SuccessCriteriaMet=True and FailureTarget=true conditions');
  }
  if (job.spec?.successPolicy !== undefined && !met && has(status, 'Complete')) {
    wrong.push('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True');
  }
  return wrong.map((why) => inconsistent('status.conditions', why));
}

function validateTransition(change: Change): FieldError[] {
  const { status, before, job } = change;
  const { completions, parallelism, completionMode, suspend } = job.spec ?? {};
  const errors: FieldError[] = [];
  const wrong = (why: string): void => {
    errors.push(inconsistent('status.conditions', why));
  };
  for (const type of ['Failed', 'Complete', 'FailureTarget'] as const) {
    if (has(before, type) && !has(status, type)) wrong(`cannot disable the terminal ${type}=True condition`);
  }
  if ((status.failed ?? 0) < (before.failed ?? 0)) {
    errors.push(invalid('status.failed', status.failed ?? 0, 'cannot decrease the failed counter'));
  }
  // A job of indexes can be scaled down.
  const fixed = completionMode !== 'Indexed' || completions !== parallelism;
  if (fixed && (status.succeeded ?? 0) < (before.succeeded ?? 0)) {
    errors.push(invalid('status.succeeded', status.succeeded ?? 0, 'cannot decrease the succeeded counter'));
  }
  if (status.completionTime !== undefined && before.completionTime !== undefined && change.field('completionTime')) {
    errors.push(invalid('status.completionTime', status.completionTime, IMMUTABLE));
  }
  const resuming = has(before, 'Suspended') && has(status, 'Suspended', 'False');
  if (before.startTime !== undefined && change.field('startTime') && suspend !== true && !resuming) {
    errors.push(required('status.startTime', 'startTime cannot be removed for unsuspended job'));
  }
  const [met, was] = [has(status, 'SuccessCriteriaMet'), has(before, 'SuccessCriteriaMet')];
  if (was && !met) wrong('cannot disable the SuccessCriteriaMet=True condition');
  if (has(before, 'Complete') && !was && met) {
    wrong('cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions');
  }
  return errors;
}
