// CronJobs: the row, its defaults and rules. When a job is due is the controller's.

import type { CronJob } from 'kubernetes-types/batch/v1';
import { isTimeZone, scheduleError } from '../../../lib/cron-schedule.ts';
import { age, namedTable, text } from '../columns.ts';
import { addErrors, invalid, nonNegative, notSupported, oneOf, required } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';
import {
  defaultTemplate,
  nameWarnings,
  templateCells,
  templateColumns,
  templateWarnings,
} from '../shared/pod-template.ts';
import { selectorCell } from '../shared/selectors.ts';
import { defaultFailurePolicy } from './jobs.ts';
import { validateJobSpec } from './validate-job.ts';

const of = (object: KubeObject): Of<CronJob> => as<CronJob>(object, 'CronJob');
type Spec = NonNullable<Of<CronJob>['spec']>;
/** A label's 63 characters, less the eleven that the controller appends. */
const MAX_NAME = 52;
const TZ_WARNING =
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details';

function applyDefaults(object: KubeObject): void {
  const cronJob = of(object);
  cronJob.spec ??= {};
  const { spec } = cronJob;
  spec.concurrencyPolicy ??= 'Allow';
  spec.suspend ??= false;
  spec.successfulJobsHistoryLimit ??= 3;
  spec.failedJobsHistoryLimit ??= 1;
  spec.jobTemplate ??= {};
  spec.jobTemplate.spec ??= {};
  defaultFailurePolicy(spec.jobTemplate.spec);
  defaultTemplate(spec.jobTemplate.spec);
}

function validateSchedule(spec: Spec, before: Spec | undefined): FieldError[] {
  const { schedule = '', timeZone } = spec;
  const field = 'spec.schedule';
  if (schedule === '') return [required(field)];
  const errors: FieldError[] = [];
  const wrong = scheduleError(schedule);
  if (wrong !== undefined) errors.push(invalid(field, schedule, wrong));
  if (!schedule.includes('TZ')) return errors;
  if (!(before?.schedule ?? '').includes('TZ')) {
    errors.push(invalid(field, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'));
  } else if (timeZone !== undefined) {
    errors.push(invalid(field, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'));
  }
  return errors;
}

function validateTimeZone(timeZone: string): FieldError[] {
  const wrong = (why: string): FieldError[] => [invalid('spec.timeZone', timeZone, why)];
  if (timeZone === '') return wrong('timeZone must be nil or non-empty string');
  const named = timeZone
    .split('/')
    .every((part) => /^[A-Za-z._0-9+-]{1,14}$/.test(part) && !part.startsWith('-') && part !== '.' && part !== '..');
  if (!named) return wrong(`unknown time zone ${timeZone}`);
  if (timeZone.toLowerCase() === 'local') {
    return wrong('timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones');
  }
  return isTimeZone(timeZone) ? [] : wrong(`unknown time zone ${timeZone}`);
}

function validateJobTemplate(spec: Spec): FieldError[] {
  const job = spec.jobTemplate?.spec ?? {};
  const field = 'spec.jobTemplate.spec';
  const errors = validateJobSpec(field, job);
  if (job.selector !== undefined) {
    errors.push(invalid(`${field}.selector`, job.selector, '`selector` will be auto-generated'));
  }
  if (job.manualSelector === true) errors.push(notSupported(`${field}.manualSelector`, true, ['nil', 'false']));
  return errors;
}

function validateSpec(spec: Spec = {}, before?: Spec): FieldError[] {
  const { timeZone } = spec;
  return allOf(
    validateSchedule(spec, before),
    nonNegative('spec.startingDeadlineSeconds', spec.startingDeadlineSeconds),
    timeZone === undefined || timeZone === before?.timeZone ? [] : validateTimeZone(timeZone),
    oneOf('spec.concurrencyPolicy', spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace']),
    validateJobTemplate(spec),
    nonNegative('spec.successfulJobsHistoryLimit', spec.successfulJobsHistoryLimit),
    nonNegative('spec.failedJobsHistoryLimit', spec.failedJobsHistoryLimit),
  );
}

function validateCreate(object: KubeObject): FieldError[] {
  const { name = '' } = object.metadata;
  const errors = validateSpec(of(object).spec);
  const long = name.length > MAX_NAME;
  if (long) addErrors(errors, [invalid('metadata.name', name, `must be no more than ${MAX_NAME} characters`)]);
  return errors;
}

export const cronjobs = defineKind({
  group: 'batch',
  version: 'v1',
  kind: 'CronJob',
  plural: 'cronjobs',
  singular: 'cronjob',
  shortNames: ['cj'],
  categories: ['all'],
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.batch.v1.CronJob',
  strategy: {
    applyDefaults,
    prepareForCreate: (object) => {
      of(object).status = {};
    },
    warnings: (object, old) => [
      ...nameWarnings(object, old),
      ...templateWarnings(object, old, 'spec.jobTemplate.spec.template.', of(object).spec?.jobTemplate?.spec?.template),
      ...(old !== undefined && (of(object).spec?.schedule ?? '').includes('TZ') ? [TZ_WARNING] : []),
    ],
    validateCreate,
    validateUpdate: (object, old) => validateSpec(of(object).spec, of(old).spec),
    table: namedTable(
      [
        text('Schedule', 'When jobs are due, in cron syntax.'),
        text('Timezone', 'The time zone of the schedule.'),
        { name: 'Suspend', type: 'boolean', description: 'Whether no further jobs are started.' },
        { name: 'Active', type: 'integer', description: 'Jobs that are running.' },
        text('Last Schedule', 'Since when the last job was due.'),
      ],
      (object, now) => {
        const { spec = {}, status = {} } = of(object);
        const suspend = spec.suspend === undefined ? '<unset>' : spec.suspend ? 'True' : 'False';
        const last = status.lastScheduleTime;
        return [
          spec.schedule ?? '',
          spec.timeZone ?? '<none>',
          suspend,
          (status.active ?? []).length,
          last === undefined ? '<none>' : age(last, now),
        ];
      },
      {
        columns: [...templateColumns(), text('Selector', 'The label selector of the pods.', 1)],
        cells: (object) => {
          const { selector, template } = of(object).spec?.jobTemplate?.spec ?? {};
          return [...templateCells(template), selectorCell(selector)];
        },
      },
    ),
  },
});
