// ReplicaSets: the row, its defaults and rules.

import type { ReplicaSet } from 'kubernetes-types/apps/v1';
import { namedTable, text } from '../columns.ts';
import { nonNegative } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';
import {
  defaultTemplate,
  nameWarnings,
  templateCells,
  templateColumns,
  templateWarnings,
} from '../shared/pod-template.ts';
import { replicaColumns, validateReplicaStatus } from '../shared/replicas.ts';
import { selectorCell } from '../shared/selectors.ts';
import { APPS, validateReplicated } from './shared.ts';

const of = (object: KubeObject): Of<ReplicaSet> => as<ReplicaSet>(object, 'ReplicaSet');

function validateSpec(spec: Of<ReplicaSet>['spec'] = {}): FieldError[] {
  return allOf(
    nonNegative('spec.replicas', spec.replicas),
    nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    validateReplicated(spec),
  );
}

export const replicasets = defineKind({
  ...APPS,
  kind: 'ReplicaSet',
  plural: 'replicasets',
  singular: 'replicaset',
  shortNames: ['rs'],
  subresources: ['scale', 'status'],
  schema: 'io.k8s.api.apps.v1.ReplicaSet',
  strategy: {
    applyDefaults: (object) => {
      const set = of(object);
      set.spec ??= {};
      set.spec.replicas ??= 1;
      defaultTemplate(set.spec);
    },
    prepareForCreate: (object) => {
      of(object).status = { replicas: 0 };
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
    validateStatusUpdate: (object) => validateReplicaStatus(of(object).status),
    selectableFields: { 'status.replicas': (object) => String(of(object).status?.replicas ?? 0) },
    table: namedTable(
      replicaColumns,
      (object) => {
        const { spec, status } = of(object);
        return [spec?.replicas ?? 0, status?.replicas ?? 0, status?.readyReplicas ?? 0];
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
