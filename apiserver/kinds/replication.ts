// ReplicationControllers, PodTemplates and ComponentStatuses: the older kinds of the core group.

import type { ComponentStatus, PodTemplate, ReplicationController } from 'kubernetes-types/core/v1';
import { copyLabels } from './batch/jobs.ts';
import { NAME_COLUMN, namedTable, text } from './columns.ts';
import { invalid, nonNegative, required } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as, type Of } from './shapes.ts';
import { allOf } from './shared/counts.ts';
import {
  defaultTemplate,
  nameWarnings,
  templateCells,
  templateColumns,
  templateWarnings,
  validateRunningTemplate,
  validateTemplate,
} from './shared/pod-template.ts';
import { replicaColumns, validateReplicaStatus } from './shared/replicas.ts';
import { labelsCell, matchesSelector } from './shared/selectors.ts';

const controllerOf = (object: KubeObject): Of<ReplicationController> =>
  as<ReplicationController>(object, 'ReplicationController');
const templateOf = (object: KubeObject): Of<PodTemplate> => as<PodTemplate>(object, 'PodTemplate');
const componentOf = (object: KubeObject): Of<ComponentStatus> => as<ComponentStatus>(object, 'ComponentStatus');

function defaultController(object: KubeObject): void {
  const controller = controllerOf(object);
  controller.spec ??= {};
  const { spec } = controller;
  spec.replicas ??= 1;
  if (spec.template === undefined) return;
  const { labels } = spec.template.metadata ?? {};
  if (labels !== undefined && Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
  copyLabels(object, spec.template);
  defaultTemplate(spec);
}

function validateController(object: KubeObject): FieldError[] {
  const { spec = {} } = controllerOf(object);
  const { selector = {}, template } = spec;
  const labels = template?.metadata?.labels;
  const unselective = Object.keys(selector).length === 0;
  const unmatched = !unselective && !matchesSelector({ matchLabels: selector }, labels);
  const field = 'spec.template';
  return allOf(
    nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    unselective ? [required('spec.selector')] : [],
    nonNegative('spec.replicas', spec.replicas),
    template === undefined
      ? [required(field)]
      : allOf(
          unmatched
            ? [invalid(`${field}.metadata.labels`, labels ?? null, '`selector` does not match template `labels`')]
            : [],
          validateTemplate(field, template),
          validateRunningTemplate(field, template, 'ReplicationController'),
        ),
  );
}

export const replicationcontrollers = defineKind({
  group: '',
  version: 'v1',
  kind: 'ReplicationController',
  plural: 'replicationcontrollers',
  singular: 'replicationcontroller',
  shortNames: ['rc'],
  categories: ['all'],
  namespaced: true,
  subresources: ['scale', 'status'],
  schema: 'io.k8s.api.core.v1.ReplicationController',
  strategy: {
    dependents: 'orphan',
    applyDefaults: defaultController,
    prepareForCreate: (object) => {
      controllerOf(object).status = { replicas: 0 };
    },
    warnings: (object, old) => [
      ...nameWarnings(object, old),
      ...templateWarnings(object, old, 'spec.template.', controllerOf(object).spec?.template),
    ],
    validateCreate: validateController,
    validateUpdate: validateController,
    validateStatusUpdate: (object) => validateReplicaStatus(controllerOf(object).status),
    selectableFields: { 'status.replicas': (object) => String(controllerOf(object).status?.replicas ?? 0) },
    table: namedTable(
      replicaColumns,
      (object) => {
        const { spec, status } = controllerOf(object);
        return [spec?.replicas ?? 0, status?.replicas ?? 0, status?.readyReplicas ?? 0];
      },
      {
        columns: [...templateColumns(), text('Selector', 'The labels of the pods.', 1)],
        cells: (object) => {
          const { selector, template } = controllerOf(object).spec ?? {};
          return [...templateCells(template), labelsCell(selector)];
        },
      },
    ),
  },
});

export const podtemplates = defineKind({
  group: '',
  version: 'v1',
  kind: 'PodTemplate',
  plural: 'podtemplates',
  singular: 'podtemplate',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.core.v1.PodTemplate',
  strategy: {
    countsGenerations: true,
    applyDefaults: (object) => defaultTemplate(templateOf(object)),
    warnings: (object, old) => templateWarnings(object, old, 'template.', templateOf(object).template),
    validateCreate: (object) => validateTemplate('template', templateOf(object).template),
    validateUpdate: (object) => validateTemplate('template', templateOf(object).template),
    table: {
      columns: [NAME_COLUMN, ...templateColumns(0), text('Pod Labels', 'The labels for the pod template.')],
      row: (object) => {
        const { template, metadata } = templateOf(object);
        return [metadata.name ?? '', ...templateCells(template), labelsCell(template?.metadata?.labels)];
      },
    },
  },
});

/** Made when it is read (apiserver/component-status.ts), of the components that the server knows. */
export const componentstatuses = defineKind({
  group: '',
  version: 'v1',
  kind: 'ComponentStatus',
  plural: 'componentstatuses',
  singular: 'componentstatus',
  warning: 'v1 ComponentStatus is deprecated in v1.19+',
  shortNames: ['cs'],
  namespaced: false,
  subresources: [],
  verbs: ['get', 'list'],
  computed: true,
  schema: 'io.k8s.api.core.v1.ComponentStatus',
  strategy: {
    table: {
      columns: [
        NAME_COLUMN,
        text('Status', 'Status of the component conditions'),
        text('Message', 'Message of the component conditions'),
        text('Error', 'Error of the component conditions'),
      ],
      row: (object) => {
        const healthy = (componentOf(object).conditions ?? []).find(({ type }) => type === 'Healthy');
        const status = healthy === undefined ? 'Unknown' : healthy.status === 'True' ? 'Healthy' : 'Unhealthy';
        return [object.metadata.name ?? '', status, healthy?.message ?? '', healthy?.error ?? ''];
      },
    },
  },
});
