// Jobs: the row, its defaults, the selector and labels that the server makes, and what an update may change.

import type { Job } from 'kubernetes-types/batch/v1';
import { elapsedMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { humanDuration, namedTable, text } from '../columns.ts';
import { invalid, required } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Label } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of, type PodTemplate } from '../shapes.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';
import {
  defaultTemplate,
  nameWarnings,
  templateCells,
  templateColumns,
  templateWarnings,
} from '../shared/pod-template.ts';
import { isUnusable, matchesSelector, selectorCell, validateLabelSelector } from '../shared/selectors.ts';
import { validateJobStatus } from './job-status.ts';
import { type Spec, validateJobSpec } from './validate-job.ts';

const of = (object: KubeObject): Of<Job> => as<Job>(object, 'Job');
const NAME_LABELS = ['job-name', 'batch.kubernetes.io/job-name'] as const;
const UID_LABELS = ['controller-uid', 'batch.kubernetes.io/controller-uid'] as const;
const MAX_INT32 = 2 ** 31 - 1;

/** Of a job's spec and of a job template's. */
export function defaultFailurePolicy(spec: Spec): void {
  for (const rule of spec.podFailurePolicy?.rules ?? []) {
    for (const pattern of rule.onPodConditions ?? []) if ((pattern.status ?? '') === '') pattern.status = 'True';
  }
}

function applyDefaults(object: KubeObject): void {
  const job = of(object);
  job.spec ??= {};
  const { spec } = job;
  if (spec.parallelism === undefined) spec.completions ??= 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : MAX_INT32;
  spec.completionMode ??= 'NonIndexed';
  spec.suspend ??= false;
  spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed';
  spec.manualSelector ??= false;
  defaultFailurePolicy(spec);
  defaultTemplate(spec);
  copyLabels(object, spec.template);
}

/** What has no labels gets its template's. */
export function copyLabels(object: KubeObject, template: PodTemplate | undefined): void {
  const labels = template?.metadata?.labels;
  if (labels === undefined || Object.keys(object.metadata.labels ?? {}).length > 0) return;
  object.metadata.labels = Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, value ?? '']));
}

/** Labels and a selector that no other job's pods have. */
function generateSelector(job: Of<Job>): void {
  const { spec } = job;
  if (spec === undefined || spec.manualSelector === true) return;
  const { name = '', uid = '' } = job.metadata;
  spec.template = { ...spec.template, metadata: { ...spec.template?.metadata } };
  const { metadata } = spec.template;
  const own = Object.fromEntries([...NAME_LABELS.map((key) => [key, name]), ...UID_LABELS.map((key) => [key, uid])]);
  if (metadata !== undefined) metadata.labels = { ...own, ...metadata.labels };
  spec.selector = {
    ...spec.selector,
    matchLabels: { [UID_LABELS[1]]: uid, ...spec.selector?.matchLabels },
  };
}

function validateGenerated(job: Of<Job>, prefixed: boolean): FieldError[] {
  const { spec = {}, metadata } = job;
  if (spec.manualSelector === true || spec.selector === undefined) return [];
  const { name = '', uid = '' } = metadata;
  const labels = spec.template?.metadata?.labels;
  const wanted = [
    [UID_LABELS[0], uid],
    [NAME_LABELS[0], name],
    ...(prefixed ? [[UID_LABELS[1], uid] as const, [NAME_LABELS[1], name] as const] : []),
  ] as const;
  const errors = wanted.flatMap(([key, value]): FieldError[] => {
    const field = 'spec.template.metadata.labels';
    const actual = getOwn(labels, key);
    if (actual === undefined) return [required(`${field}[${key}]`, `must be '${value}'`)];
    return actual === value ? [] : [invalid(`${field}[${key}]`, labels ?? null, `must be '${value}'`)];
  });
  const selected = isUnusable(spec.selector) || matchesSelector(spec.selector, Object.fromEntries(wanted));
  return selected ? errors : [...errors, invalid('spec.selector', spec.selector, '`selector` not auto-generated')];
}

function validateJob(job: Of<Job>, prefixed = true): FieldError[] {
  const { spec = {}, metadata } = job;
  const { selector, completions = 0, completionMode } = spec;
  const labels = spec.template?.metadata?.labels;
  const unmatched = !isUnusable(selector) && !matchesSelector(selector, labels);
  const host = `${metadata.name}-${completions - 1}`;
  const badHost = completionMode === 'Indexed' && completions > 0 && dns1123Label(host).length > 0;
  return allOf(
    validateGenerated(job, prefixed),
    validateJobSpec('spec', spec),
    selector === undefined ? [required('spec.selector')] : validateLabelSelector('spec.selector', selector),
    unmatched
      ? [invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`')]
      : [],
    badHost
      ? [invalid('metadata.name', metadata.name, `will not able to create pod with invalid DNS label: ${host}`)]
      : [],
  );
}

function validateUpdate(job: Of<Job>, old: Of<Job>): FieldError[] {
  const [spec, before] = [job.spec ?? {}, old.spec ?? {}];
  const oldLabels = before.template?.metadata?.labels;
  const prefixed = [NAME_LABELS[1], UID_LABELS[1]].every((key) => getOwn(oldLabels, key) !== undefined);
  const fixed = (
    ['selector', 'completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const
  ).flatMap((field) => validateImmutable(`spec.${field}`, spec[field], before[field]));
  // A suspended job that has never run may still be placed elsewhere.
  const movable = before.suspend === true && old.status?.startTime === undefined;
  const template = movable ? withSchedulingOf(before.template, spec.template) : before.template;
  return allOf(
    validateJob(job, prefixed),
    validateCompletions(spec, before),
    validateImmutable('spec.template', spec.template, template),
    fixed,
  );
}

function validateCompletions(spec: Spec, before: Spec): FieldError[] {
  const { completions, parallelism } = spec;
  if (spec.completionMode !== 'Indexed') {
    return validateImmutable('spec.completions', completions, before.completions);
  }
  if (completions === before.completions || completions === undefined || completions === parallelism) return [];
  return [invalid('spec.completions', completions, 'can only be modified in tandem with spec.parallelism')];
}

type Template = Spec['template'];

/** `template` with the node affinity, node selector, tolerations, gates, labels and annotations of the other. */
function withSchedulingOf(template: Template, other: Template): Template {
  const { affinity = {}, ...spec } = template?.spec ?? {};
  const { nodeAffinity: _old, ...rest } = affinity;
  const from = other?.spec ?? {};
  const nodeAffinity = from.affinity?.nodeAffinity;
  const merged = { ...rest, ...(nodeAffinity === undefined ? {} : { nodeAffinity }) };
  const metadata = { ...template?.metadata };
  const taken = { ...spec };
  for (const field of ['nodeSelector', 'tolerations', 'schedulingGates'] as const) delete taken[field];
  return {
    ...template,
    metadata: { ...metadata, labels: other?.metadata?.labels, annotations: other?.metadata?.annotations },
    spec: {
      ...taken,
      ...(Object.keys(merged).length === 0 && from.affinity === undefined ? {} : { affinity: merged }),
      nodeSelector: from.nodeSelector,
      tolerations: from.tolerations,
      schedulingGates: from.schedulingGates,
    },
  };
}

const STATUS_WORDS = [
  ['Complete', 'Complete'],
  ['Failed', 'Failed'],
  ['', 'Terminating'],
  ['Suspended', 'Suspended'],
  ['FailureTarget', 'FailureTarget'],
  ['SuccessCriteriaMet', 'SuccessCriteriaMet'],
] as const;

function statusCell({ metadata, status }: Of<Job>): string {
  const conditions = status?.conditions ?? [];
  const found = STATUS_WORDS.find(([type]) =>
    type === ''
      ? metadata.deletionTimestamp !== undefined
      : conditions.some((condition) => condition.type === type && condition.status === 'True'),
  );
  return found?.[1] ?? 'Running';
}

function completionsCell({ spec = {}, status }: Of<Job>): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const { parallelism = 0 } = spec;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

export const jobs = defineKind({
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  singular: 'job',
  categories: ['all'],
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.batch.v1.Job',
  strategy: {
    dependents: 'orphan',
    applyDefaults,
    prepareForCreate: (object) => {
      generateSelector(of(object));
      of(object).status = {};
    },
    warnings: (object, old) => [
      ...nameWarnings(object, old),
      ...templateWarnings(object, old, 'spec.template.', of(object).spec?.template),
    ],
    validateCreate: (object) => validateJob(of(object)),
    validateUpdate: (object, old) => validateUpdate(of(object), of(old)),
    validateStatusUpdate: (object, old) => validateJobStatus(of(object), of(old)),
    selectableFields: { 'status.successful': (object) => String(of(object).status?.succeeded ?? 0) },
    table: namedTable(
      [
        text('Status', 'Status of the job.'),
        text('Completions', 'Pods that have succeeded, and how many should.'),
        text('Duration', 'Time required to complete the job.'),
      ],
      (object, now) => {
        const { startTime, completionTime } = of(object).status ?? {};
        const start = parseRfc3339(startTime);
        const duration =
          start === undefined ? '' : humanDuration(elapsedMs(start, parseRfc3339(completionTime) ?? now));
        return [statusCell(of(object)), completionsCell(of(object)), duration];
      },
      {
        columns: [...templateColumns(), text('Selector', 'The label selector of the pods.', 1)],
        cells: (object) => {
          const { selector, template } = of(object).spec ?? {};
          return [...templateCells(template), selectorCell(selector)];
        },
      },
    ),
  },
});
