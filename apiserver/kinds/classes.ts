// RuntimeClasses and PriorityClasses: what pods refer to by name.

import type { RuntimeClass } from 'kubernetes-types/node/v1';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1';
import { getOwn } from '../../lib/own-property.ts';
import { namedTable, text } from './columns.ts';
import { forbidden, IMMUTABLE, invalid, oneOf, syntax } from './field-errors.ts';
import { defineKind, validateLabels } from './metadata.ts';
import { dns1123Label } from './names.ts';
import { validateOverhead } from './pods/validate-resources.ts';
import { validateTolerations } from './pods/validate-scheduling.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';
import { NODE_LABELS } from './shared/node-label-warnings.ts';
import { systemPriorityError } from './shared/system-priorities.ts';

const runtimeOf = (object: KubeObject) => as<RuntimeClass>(object, 'RuntimeClass');
const priorityOf = (object: KubeObject) => as<PriorityClass>(object, 'PriorityClass');
const HIGHEST_USER_PRIORITY = 1_000_000_000;

function validateRuntimeClass(object: KubeObject): FieldError[] {
  const { handler = '', overhead, scheduling } = runtimeOf(object);
  return [
    ...syntax('handler', handler, dns1123Label(handler)),
    ...validateOverhead('overhead', overhead?.podFixed),
    ...validateLabels('scheduling.nodeSelector', scheduling?.nodeSelector),
    ...validateTolerations('scheduling.tolerations.tolerations', scheduling?.tolerations ?? []),
  ];
}

export const runtimeclasses = defineKind({
  group: 'node.k8s.io',
  version: 'v1',
  kind: 'RuntimeClass',
  plural: 'runtimeclasses',
  singular: 'runtimeclass',
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.node.v1.RuntimeClass',
  updateMeta: ['rules', 'create', 'update', 'own'],
  strategy: {
    validateCreate: validateRuntimeClass,
    warnings: (object) =>
      Object.keys(runtimeOf(object).scheduling?.nodeSelector ?? {}).flatMap((label) => {
        const message = getOwn(NODE_LABELS, label);
        return message === undefined ? [] : [`scheduling.nodeSelector: ${message}`];
      }),
    validateUpdate: (object, old) =>
      runtimeOf(object).handler === runtimeOf(old).handler
        ? []
        : [invalid('handler', runtimeOf(object).handler, IMMUTABLE)],
    table: namedTable([text('Handler', 'The runtime configuration that the node uses.')], (object) => [
      runtimeOf(object).handler ?? '',
    ]),
  },
});

function validatePriorityClass(object: KubeObject): FieldError[] {
  const { value = 0, preemptionPolicy, globalDefault = false } = priorityOf(object);
  const errors = oneOf('preemptionPolicy', preemptionPolicy, ['Never', 'PreemptLowerPriority']);
  const { name = '' } = object.metadata;
  if (name.startsWith('system-')) {
    const error = systemPriorityError(name, value, globalDefault);
    if (error === undefined) return errors;
    const reserved = "priority class names with 'system-' prefix are reserved for system use only";
    errors.push(forbidden('metadata.name', `${reserved}. error: ${error}`));
  } else if (value > HIGHEST_USER_PRIORITY) {
    errors.push(forbidden('value', `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`));
  }
  return errors;
}

export const priorityclasses = defineKind({
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  singular: 'priorityclass',
  shortNames: ['pc'],
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.scheduling.v1.PriorityClass',
  strategy: {
    applyDefaults: (object) => {
      priorityOf(object).preemptionPolicy ??= 'PreemptLowerPriority';
    },
    prepareForCreate: (object) => {
      object.metadata.generation = 1;
    },
    validateCreate: validatePriorityClass,
    validateUpdate: (object, old) => {
      const [now, before] = [priorityOf(object), priorityOf(old)];
      const errors: FieldError[] = [];
      if (now.value !== before.value) errors.push(forbidden('value', 'may not be changed in an update.'));
      if (now.preemptionPolicy !== before.preemptionPolicy) {
        errors.push(invalid('preemptionPolicy', now.preemptionPolicy, IMMUTABLE));
      }
      return errors;
    },
    table: namedTable(
      [
        { name: 'Value', type: 'integer', description: 'The integer value of this priority class.' },
        { name: 'Global-Default', type: 'boolean', description: 'Whether pods without a class get this one.' },
      ],
      (object) => [priorityOf(object).value ?? 0, priorityOf(object).globalDefault ?? false],
      {
        columns: [text('PreemptionPolicy', 'Whether pods of this class may push out others.')],
        cells: (object) => [priorityOf(object).preemptionPolicy ?? ''],
      },
    ),
  },
});
