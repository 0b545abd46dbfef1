// DaemonSets: the row, its defaults and rules.

import type { DaemonSet } from 'kubernetes-types/apps/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { invalid, nonNegative, notSupported, required } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject, TableColumn } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf, validateCounts, validateImmutable, validateNotDecremented } from '../shared/counts.ts';
import { bareValue, validateAtMostAll, validateIntOrPercent } from '../shared/int-or-percent.ts';
import {
  defaultTemplate,
  templateCells,
  templateColumns,
  templateWarnings,
  validateRunningTemplate,
  validateTemplate,
} from '../shared/pod-template.ts';
import {
  isEmptySelector,
  isUnusable,
  labelsCell,
  matchesSelector,
  selectorCell,
  validateLabelSelector,
} from '../shared/selectors.ts';
import { APPS } from './shared.ts';

const of = (object: KubeObject): Of<DaemonSet> => as<DaemonSet>(object, 'DaemonSet');
type Spec = NonNullable<Of<DaemonSet>['spec']>;
/** How apps/v1 shows the template generation of older versions: it grows with each new template. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';
const COUNTS = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
];

function applyDefaults(object: KubeObject): void {
  const set = of(object);
  set.spec ??= {};
  const { spec } = set;
  spec.updateStrategy ??= {};
  spec.updateStrategy.type ??= 'RollingUpdate';
  if (spec.updateStrategy.type === 'RollingUpdate') {
    spec.updateStrategy.rollingUpdate ??= {};
    spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
    spec.updateStrategy.rollingUpdate.maxSurge ??= 0;
  }
  spec.revisionHistoryLimit ??= 10;
  defaultTemplate(spec);
}

function templateGeneration(object: KubeObject): number {
  const text = getOwn(object.metadata.annotations, TEMPLATE_GENERATION) ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

function setTemplateGeneration(object: KubeObject, generation: number): void {
  object.metadata.annotations = { ...object.metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
}

function validateStrategy(strategy: Spec['updateStrategy'] = {}): FieldError[] {
  const { type = '', rollingUpdate } = strategy;
  const field = 'spec.updateStrategy';
  if (type === 'OnDelete') return [];
  if (type !== 'RollingUpdate') return [notSupported(field, strategy, ['RollingUpdate', 'OnDelete'])];
  if (rollingUpdate === undefined) return [required(`${field}.rollingUpdate`)];
  const { maxUnavailable, maxSurge } = rollingUpdate;
  const [unavailableField, surgeField] = [`${field}.rollingUpdate.maxUnavailable`, `${field}.rollingUpdate.maxSurge`];
  const [unavailable, surge] = [bareValue(maxUnavailable) !== 0, bareValue(maxSurge) !== 0];
  return allOf(
    validateIntOrPercent(unavailableField, maxUnavailable),
    validateIntOrPercent(surgeField, maxSurge),
    validateAtMostAll(unavailableField, maxUnavailable),
    validateAtMostAll(surgeField, maxSurge),
    unavailable && surge ? [invalid(surgeField, maxSurge, 'may not be set when maxUnavailable is non-zero')] : [],
    unavailable || surge ? [] : [required(unavailableField, 'cannot be 0 when maxSurge is 0')],
  );
}

function validateSpec(spec: Spec = {}): FieldError[] {
  const { selector, template } = spec;
  const labels = template?.metadata?.labels;
  const unmatched = !isUnusable(selector) && !matchesSelector(selector, labels);
  return allOf(
    validateLabelSelector('spec.selector', selector),
    unmatched
      ? [invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`')]
      : [],
    selector !== undefined && isEmptySelector(selector)
      ? [invalid('spec.selector', selector, 'empty selector is invalid for daemonset')]
      : [],
    validateTemplate('spec.template', template),
    validateRunningTemplate('spec.template', template, 'DaemonSet'),
    nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    validateStrategy(spec.updateStrategy),
    nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
  );
}

function integer(name: string, description: string): TableColumn {
  return { name, type: 'integer', description };
}

export const daemonsets = defineKind({
  ...APPS,
  kind: 'DaemonSet',
  plural: 'daemonsets',
  singular: 'daemonset',
  shortNames: ['ds'],
  subresources: ['status'],
  schema: 'io.k8s.api.apps.v1.DaemonSet',
  strategy: {
    applyDefaults,
    prepareForCreate: (object) => {
      setTemplateGeneration(object, Math.max(1, templateGeneration(object)));
      of(object).status = {
        currentNumberScheduled: 0,
        desiredNumberScheduled: 0,
        numberMisscheduled: 0,
        numberReady: 0,
      };
    },
    prepareForUpdate: (object, old) => {
      of(object).status = of(old).status;
      const same = sameJson(of(object).spec?.template, of(old).spec?.template);
      setTemplateGeneration(object, templateGeneration(old) + (same ? 0 : 1));
    },
    warnings: (object, old) => templateWarnings(object, old, 'spec.template.', of(object).spec?.template),
    validateCreate: (object) => validateSpec(of(object).spec),
    validateUpdate: (object, old) =>
      allOf(
        validateImmutable('spec.selector', of(object).spec?.selector, of(old).spec?.selector),
        validateSpec(of(object).spec),
      ),
    validateStatusUpdate: (object, old) => {
      const { status = {} } = of(object);
      return allOf(
        validateCounts('status', status, COUNTS),
        validateNotDecremented('status.collisionCount', status.collisionCount, of(old).status?.collisionCount),
      );
    },
    table: namedTable(
      [
        integer('Desired', 'Nodes that should have the pod.'),
        integer('Current', 'Nodes that have the pod and should.'),
        integer('Ready', 'Nodes on which the pod is ready.'),
        integer('Up-to-date', 'Nodes with a pod of the current template.'),
        integer('Available', 'Nodes on which the pod has been ready for minReadySeconds.'),
        text('Node Selector', 'Labels of the nodes that should have the pod.'),
      ],
      (object) => {
        const { spec, status = {} } = of(object);
        return [
          status.desiredNumberScheduled ?? 0,
          status.currentNumberScheduled ?? 0,
          status.numberReady ?? 0,
          status.updatedNumberScheduled ?? 0,
          status.numberAvailable ?? 0,
          labelsCell(spec?.template?.spec?.nodeSelector),
        ];
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
