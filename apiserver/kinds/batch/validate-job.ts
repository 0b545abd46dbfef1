// Rules for the spec of a job, also inside a CronJob: numbers, completion mode, what failed pods mean, when it has succeeded.

import type { JobSpec } from 'kubernetes-types/batch/v1';
import {
  addErrors,
  duplicate,
  invalid,
  nonNegative,
  notSupported,
  required,
  syntax,
  tooLong,
  tooMany,
} from '../field-errors.ts';
import { domainPrefixedPath, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';
import { validateTemplate } from '../shared/pod-template.ts';
import { parseIndexes } from './indexes.ts';

export type Spec = Loose<JobSpec>;
type Rule = NonNullable<NonNullable<Spec['podFailurePolicy']>['rules']>[number];
type SuccessRule = NonNullable<NonNullable<Spec['successPolicy']>['rules']>[number];

const MANY = 100_000;
const LIMIT_OF_MANY = 10_000;
const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;
const MAX_INDEXES_BYTES = 64 * 1024;
const MAX_MANAGED_BY = 63;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];
const OPERATORS = ['In', 'NotIn'];
const STATUSES = ['False', 'True', 'Unknown'];

/** As Go prints a list of strings. */
const listed = (values: readonly string[]): string =>
  `valid values: [${values.map((value) => JSON.stringify(value)).join(' ')}]`;

/** An invalid field whose value is not shown. */
export function inconsistent(field: string, why: string): FieldError {
  return { type: 'FieldValueInvalid', field, detail: `Invalid value: ${why}` };
}

/** Without the selector, which a job has and a job template has not. */
export function validateJobSpec(at: string, spec: Spec): FieldError[] {
  const { maxFailedIndexes, backoffLimitPerIndex, managedBy, completionMode } = spec;
  const errors = allOf(
    ...(
      [
        'parallelism',
        'completions',
        'activeDeadlineSeconds',
        'backoffLimit',
        'ttlSecondsAfterFinished',
        'backoffLimitPerIndex',
        'maxFailedIndexes',
      ] as const
    ).map((field) => nonNegative(`${at}.${field}`, spec[field])),
  );
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    errors.push(required(`${at}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified'));
  }
  if (managedBy !== undefined) addErrors(errors, validateManagedBy(`${at}.managedBy`, managedBy));
  if (completionMode !== undefined && !['NonIndexed', 'Indexed'].includes(completionMode)) {
    errors.push(notSupported(`${at}.completionMode`, completionMode, ['NonIndexed', 'Indexed']));
  }
  if (completionMode === 'Indexed') addErrors(errors, validateIndexed(at, spec));
  if ((completionMode ?? 'NonIndexed') === 'NonIndexed') {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes'] as const) {
      if (spec[field] === undefined) continue;
      errors.push(invalid(`${at}.${field}`, spec[field], 'requires indexed completion mode'));
    }
  }
  if (spec.podFailurePolicy !== undefined) addErrors(errors, validateFailurePolicy(`${at}.podFailurePolicy`, spec));
  if (spec.successPolicy !== undefined) addErrors(errors, validateSuccessPolicy(`${at}.successPolicy`, spec));
  addErrors(errors, validateReplacement(`${at}.podReplacementPolicy`, spec));
  addErrors(errors, validateTemplate(`${at}.template`, spec.template));
  return errors.concat(validateRestartPolicy(`${at}.template.spec.restartPolicy`, spec));
}

function validateManagedBy(field: string, managedBy: string): FieldError[] {
  if (managedBy === '') return [required(field)];
  const errors = syntax(field, managedBy, domainPrefixedPath(managedBy));
  if (managedBy.length > MAX_MANAGED_BY) errors.push(tooLong(field, MAX_MANAGED_BY));
  return errors;
}

function validateIndexed(at: string, spec: Spec): FieldError[] {
  const { completions, parallelism, maxFailedIndexes, backoffLimitPerIndex } = spec;
  const errors: FieldError[] = [];
  const atMost = (field: 'parallelism' | 'maxFailedIndexes', limit: number, why: string): void => {
    const value = spec[field];
    if (value !== undefined && value > limit) errors.push(invalid(`${at}.${field}`, value, why));
  };
  if (completions === undefined) errors.push(required(`${at}.completions`, 'when completion mode is Indexed'));
  atMost('parallelism', MANY, `must be less than or equal to ${MANY} when completion mode is Indexed`);
  if (completions !== undefined && maxFailedIndexes !== undefined) {
    atMost('maxFailedIndexes', completions, 'must be less than or equal to completions');
  }
  atMost('maxFailedIndexes', MANY, `must be less than or equal to ${MANY}`);
  if (completions === undefined || completions <= MANY || backoffLimitPerIndex === undefined) return errors;
  if (maxFailedIndexes === undefined) {
    errors.push(required(`${at}.maxFailedIndexes`, `must be specified when completions is above ${MANY}`));
  }
  const why = `must be less than or equal to ${LIMIT_OF_MANY} when completions are above ${MANY} and used with backoff limit per index`;
  if (parallelism !== undefined) atMost('parallelism', LIMIT_OF_MANY, why);
  atMost('maxFailedIndexes', LIMIT_OF_MANY, why);
  return errors;
}

function validateRestartPolicy(field: string, spec: Spec): FieldError[] {
  const policy = spec.template?.spec?.restartPolicy ?? '';
  if (policy === 'Always' || policy === '') return [required(field, 'valid values: "OnFailure", "Never"')];
  if (policy !== 'OnFailure' && policy !== 'Never') return [notSupported(field, policy, ['OnFailure', 'Never'])];
  if (spec.podFailurePolicy === undefined || policy === 'Never') return [];
  return [invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

function validateReplacement(field: string, { podReplacementPolicy, podFailurePolicy }: Spec): FieldError[] {
  if (podReplacementPolicy === undefined) return [];
  const supported = podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed'];
  return supported.includes(podReplacementPolicy) ? [] : [notSupported(field, podReplacementPolicy, supported)];
}

function validateFailurePolicy(field: string, spec: Spec): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const { containers = [], initContainers = [] } = spec.template?.spec ?? {};
  const names = new Set([...containers, ...initContainers].map(({ name = '' }) => name));
  return allOf(
    rules.length > MAX_RULES ? [tooMany(`${field}.rules`, rules.length, MAX_RULES)] : [],
    ...rules.map((rule, index) => validateFailureRule(`${field}.rules[${index}]`, rule, spec, names)),
  );
}

function validateFailureRule(at: string, rule: Rule, spec: Spec, names: ReadonlySet<string>): FieldError[] {
  const { action = '', onExitCodes, onPodConditions = [] } = rule;
  const errors: FieldError[] = [];
  if (action === '') errors.push(required(`${at}.action`, listed(ACTIONS)));
  else if (!ACTIONS.includes(action)) errors.push(notSupported(`${at}.action`, action, ACTIONS));
  else if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined) {
    errors.push(invalid(`${at}.action`, action, 'requires the backoffLimitPerIndex to be set'));
  }
  if (onExitCodes !== undefined) addErrors(errors, validateExitCodes(`${at}.onExitCodes`, onExitCodes, names));
  if (onPodConditions.length > 0) addErrors(errors, validateConditions(`${at}.onPodConditions`, onPodConditions));
  if (onExitCodes !== undefined && onPodConditions.length > 0) {
    errors.push(inconsistent(at, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  }
  if (onExitCodes === undefined && onPodConditions.length === 0) {
    errors.push(inconsistent(at, 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
  return errors;
}

function validateConditions(at: string, patterns: NonNullable<Rule['onPodConditions']>): FieldError[] {
  const errors = patterns.length > MAX_RULES ? [tooMany(at, patterns.length, MAX_RULES)] : [];
  for (const [index, { type = '', status = '' }] of patterns.entries()) {
    const field = `${at}[${index}]`;
    addErrors(errors, syntax(`${field}.type`, type, qualifiedName(type)));
    if (status === '') errors.push(required(`${field}.status`, listed(STATUSES)));
    else if (!STATUSES.includes(status)) errors.push(notSupported(`${field}.status`, status, STATUSES));
  }
  return errors;
}

function validateExitCodes(
  at: string,
  requirement: NonNullable<Rule['onExitCodes']>,
  names: ReadonlySet<string>,
): FieldError[] {
  const { operator = '', containerName, values = [] } = requirement;
  const errors: FieldError[] = [];
  if (operator === '') errors.push(required(`${at}.operator`, listed(OPERATORS)));
  else if (!OPERATORS.includes(operator)) errors.push(notSupported(`${at}.operator`, operator, OPERATORS));
  if (containerName !== undefined && !names.has(containerName)) {
    errors.push(
      invalid(
        `${at}.containerName`,
        containerName,
        'must be one of the container or initContainer names in the pod template',
      ),
    );
  }
  if (values.length === 0) errors.push(invalid(`${at}.values`, null, 'at least one value is required'));
  else if (values.length > MAX_EXIT_CODES) errors.push(tooMany(`${at}.values`, values.length, MAX_EXIT_CODES));
  const seen = new Set<number>();
  for (const [index, value] of values.entries()) {
    const field = `${at}.values[${index}]`;
    if (operator === 'In' && value === 0) errors.push(invalid(field, value, 'must not be 0 for the In operator'));
    if (seen.has(value)) errors.push(duplicate(field, value));
    seen.add(value);
  }
  if (values.some((value, index) => value < (values[index - 1] ?? value))) {
    errors.push(invalid(`${at}.values`, values, 'must be ordered'));
  }
  return errors;
}

function validateSuccessPolicy(field: string, spec: Spec): FieldError[] {
  if (spec.completionMode !== 'Indexed') {
    return [invalid(field, spec.successPolicy, 'requires indexed completion mode')];
  }
  const rules = spec.successPolicy?.rules ?? [];
  const at = `${field}.rules`;
  return allOf(
    rules.length === 0
      ? [required(at, 'at least one rules must be specified when the successPolicy is specified')]
      : [],
    rules.length > MAX_RULES ? [tooMany(at, rules.length, MAX_RULES)] : [],
    ...rules.map((rule, index) => validateSuccessRule(`${at}[${index}]`, rule, spec.completions ?? 0)),
  );
}

function validateSuccessRule(at: string, rule: SuccessRule, completions: number): FieldError[] {
  const { succeededCount, succeededIndexes } = rule;
  const errors: FieldError[] = [];
  if (succeededCount === undefined && succeededIndexes === undefined) {
    errors.push(required(at, 'at least one of succeededCount or succeededIndexes must be specified'));
  }
  let named: number | undefined;
  if (succeededIndexes !== undefined) {
    const field = `${at}.succeededIndexes`;
    if (succeededIndexes.length > MAX_INDEXES_BYTES) errors.push(tooLong(field, MAX_INDEXES_BYTES));
    const parsed = parseIndexes(succeededIndexes, completions);
    if ('wrong' in parsed) {
      errors.push(invalid(field, succeededIndexes, `error parsing succeededIndexes: ${parsed.wrong}`));
    }
    named = 'wrong' in parsed ? 0 : parsed.count;
  }
  if (succeededCount === undefined) return errors;
  const field = `${at}.succeededCount`;
  addErrors(errors, nonNegative(field, succeededCount));
  const atMost = (limit: number, what: string): void => {
    if (succeededCount <= limit) return;
    errors.push(invalid(field, succeededCount, `must be less than or equal to ${limit} (the number of ${what})`));
  };
  atMost(completions, 'specified completions');
  if (named !== undefined) atMost(named, 'indexes in the specified succeededIndexes field');
  return errors;
}
