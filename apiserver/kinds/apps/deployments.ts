// Deployments: the row, its defaults and rules. Rolling out is the deployment controller's.

import type { Deployment } from 'kubernetes-types/apps/v1';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { forbidden, invalid, nonNegative, notSupported, required } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf, validateBounds, validateCounts, validateImmutable, validateNotDecremented } from '../shared/counts.ts';
import { bareValue, validateAtMostAll, validateIntOrPercent } from '../shared/int-or-percent.ts';
import {
  defaultTemplate,
  nameWarnings,
  templateCells,
  templateColumns,
  templateWarnings,
} from '../shared/pod-template.ts';
import { isUnusable, selectorText } from '../shared/selectors.ts';
import { APPS, validateReplicated } from './shared.ts';

const of = (object: KubeObject): Of<Deployment> => as<Deployment>(object, 'Deployment');
type Spec = NonNullable<Of<Deployment>['spec']>;
const LIMIT = 'cannot be greater than status.replicas';
const COUNTS = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'terminatingReplicas',
  'collisionCount',
];

function applyDefaults(object: KubeObject): void {
  const deployment = of(object);
  deployment.spec ??= {};
  const { spec } = deployment;
  spec.replicas ??= 1;
  spec.strategy ??= {};
  spec.strategy.type ??= 'RollingUpdate';
  if (spec.strategy.type === 'RollingUpdate') {
    spec.strategy.rollingUpdate ??= {};
    spec.strategy.rollingUpdate.maxUnavailable ??= '25%';
    spec.strategy.rollingUpdate.maxSurge ??= '25%';
  }
  spec.revisionHistoryLimit ??= 10;
  spec.progressDeadlineSeconds ??= 600;
  defaultTemplate(spec);
}

function validateStrategy(field: string, strategy: Spec['strategy'] = {}): FieldError[] {
  const { type = '', rollingUpdate } = strategy;
  if (type === 'Recreate') {
    if (rollingUpdate === undefined) return [];
    return [forbidden(`${field}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")];
  }
  if (type !== 'RollingUpdate') return [notSupported(field, strategy, ['Recreate', 'RollingUpdate'])];
  if (rollingUpdate === undefined) {
    return [required(`${field}.rollingUpdate`, 'this should be defaulted and never be nil')];
  }
  const { maxUnavailable, maxSurge } = rollingUpdate;
  const at = `${field}.rollingUpdate.maxUnavailable`;
  const stuck = bareValue(maxUnavailable) === 0 && bareValue(maxSurge) === 0;
  return allOf(
    validateIntOrPercent(at, maxUnavailable),
    validateIntOrPercent(`${field}.rollingUpdate.maxSurge`, maxSurge),
    stuck ? [invalid(at, maxUnavailable, 'may not be 0 when `maxSurge` is 0')] : [],
    validateAtMostAll(at, maxUnavailable),
  );
}

function validateSpec(spec: Spec = {}): FieldError[] {
  const { minReadySeconds = 0, progressDeadlineSeconds } = spec;
  const tooShort = progressDeadlineSeconds !== undefined && progressDeadlineSeconds <= minReadySeconds;
  const at = 'spec.progressDeadlineSeconds';
  return allOf(
    nonNegative('spec.replicas', spec.replicas),
    validateReplicated(spec),
    validateStrategy('spec.strategy', spec.strategy),
    nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    nonNegative(at, progressDeadlineSeconds),
    tooShort ? [invalid(at, progressDeadlineSeconds, 'must be greater than minReadySeconds')] : [],
  );
}

export const deployments = defineKind({
  ...APPS,
  kind: 'Deployment',
  plural: 'deployments',
  singular: 'deployment',
  shortNames: ['deploy'],
  subresources: ['scale', 'status'],
  schema: 'io.k8s.api.apps.v1.Deployment',
  strategy: {
    resetFields: { '': [['status']], status: [['spec'], ['metadata', 'labels']] },
    applyDefaults,
    prepareForCreate: (object) => {
      of(object).status = {};
    },
    // Annotations are copied to replica sets, so that a change of them counts as one of the spec.
    prepareForUpdate: (object, old) => {
      of(object).status = of(old).status;
      if (!sameJson(object.metadata.annotations ?? {}, old.metadata.annotations ?? {})) {
        object.metadata.generation = (old.metadata.generation ?? 0) + 1;
      }
    },
    prepareForStatusUpdate: (object, old) => {
      if (old.metadata.labels === undefined) delete object.metadata.labels;
      else object.metadata.labels = old.metadata.labels;
    },
    warnings: (object, old) => [
      ...nameWarnings(object, old),
      ...templateWarnings(object, old, 'spec.template.', of(object).spec?.template),
    ],
    validateCreate: (object) => validateSpec(of(object).spec),
    validateUpdate: (object, old) =>
      allOf(
        validateSpec(of(object).spec),
        validateImmutable('spec.selector', of(object).spec?.selector, of(old).spec?.selector),
      ),
    validateStatusUpdate: (object, old) => {
      const { status = {} } = of(object);
      return allOf(
        validateCounts('status', status, COUNTS),
        validateBounds('status', status, [
          ['updatedReplicas', 'replicas', LIMIT],
          ['readyReplicas', 'replicas', LIMIT],
          ['availableReplicas', 'replicas', LIMIT],
          ['availableReplicas', 'readyReplicas', 'cannot be greater than readyReplicas'],
        ]),
        validateNotDecremented('status.collisionCount', status.collisionCount, of(old).status?.collisionCount),
      );
    },
    table: namedTable(
      [
        text('Ready', 'Number of the pod with ready state'),
        text('Up-to-date', 'Pods that have the current template.'),
        text('Available', 'Pods that have been ready for minReadySeconds.'),
      ],
      (object) => {
        const { spec, status = {} } = of(object);
        const ready = `${status.readyReplicas ?? 0}/${spec?.replicas ?? 0}`;
        return [ready, status.updatedReplicas ?? 0, status.availableReplicas ?? 0];
      },
      {
        columns: [...templateColumns(), text('Selector', 'The label selector of the pods.', 1)],
        cells: (object) => {
          const { selector, template } = of(object).spec ?? {};
          return [...templateCells(template), isUnusable(selector) ? '<invalid>' : selectorText(selector)];
        },
      },
    ),
  },
});
