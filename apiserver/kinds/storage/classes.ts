// StorageClasses and CSIStorageCapacities: which volumes can be provisioned, and the capacity that is left per topology.

import type { CSIStorageCapacity, StorageClass } from 'kubernetes-types/storage/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { parseQuantity } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { NAME_COLUMN, namedTable, text } from '../columns.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, optionalOneOf, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Subdomain, qualifiedName } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as } from '../shapes.ts';
import { NODE_LABELS, selectorWarnings } from '../shared/node-label-warnings.ts';
import { validateLabelSelector } from '../shared/selectors.ts';
import { isDefaultClass, orUnset, validateParameters, validateTopologies } from './shared.ts';

const classOf = (object: KubeObject) => as<StorageClass>(object, 'StorageClass');
const capacityOf = (object: KubeObject) => as<CSIStorageCapacity>(object, 'CSIStorageCapacity');

function validateClass(object: KubeObject): FieldError[] {
  const { provisioner = '', parameters, reclaimPolicy, volumeBindingMode, allowedTopologies } = classOf(object);
  return [
    ...(provisioner === ''
      ? [required('provisioner')]
      : syntax('provisioner', provisioner, qualifiedName(provisioner.toLowerCase()))),
    ...validateParameters('parameters', parameters),
    ...optionalOneOf('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']),
    ...optionalOneOf('volumeBindingMode', volumeBindingMode, ['Immediate', 'WaitForFirstConsumer']),
    ...validateTopologies('allowedTopologies', allowedTopologies),
  ];
}

function validateClassUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [now, before] = [classOf(object), classOf(old)];
  const errors: FieldError[] = [];
  if (!sameJson(now.parameters ?? {}, before.parameters ?? {})) {
    errors.push(forbidden('parameters', 'updates to parameters are forbidden.'));
  }
  if (now.provisioner !== before.provisioner) {
    errors.push(forbidden('provisioner', 'updates to provisioner are forbidden.'));
  }
  if (now.reclaimPolicy !== before.reclaimPolicy) {
    errors.push(forbidden('reclaimPolicy', 'updates to reclaimPolicy are forbidden.'));
  }
  if (now.volumeBindingMode !== before.volumeBindingMode) {
    errors.push(invalid('volumeBindingMode', now.volumeBindingMode, IMMUTABLE));
  }
  return errors;
}

function classWarnings(object: KubeObject): string[] {
  return (classOf(object).allowedTopologies ?? []).flatMap(({ matchLabelExpressions = [] }, index) =>
    matchLabelExpressions.flatMap(({ key = '' }, place) => {
      const message = getOwn(NODE_LABELS, key);
      const field = `allowedTopologies[${index}].matchLabelExpressions[${place}].key`;
      return message === undefined ? [] : [`${field}: ${message}`];
    }),
  );
}

const classTable = namedTable(
  [
    text('Provisioner', 'provisioner indicates the type of the provisioner.'),
    text('ReclaimPolicy', 'What becomes of a volume whose claim is deleted.'),
    text('VolumeBindingMode', 'When claims of this class are bound.'),
    { name: 'AllowVolumeExpansion', type: 'boolean', description: 'Whether a bound claim may ask for more.' },
  ],
  (object) => {
    const { provisioner = '', reclaimPolicy, volumeBindingMode, allowVolumeExpansion } = classOf(object);
    return [provisioner, orUnset(reclaimPolicy), orUnset(volumeBindingMode), allowVolumeExpansion ?? false];
  },
);

export const storageclasses = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  singular: 'storageclass',
  shortNames: ['sc'],
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.storage.v1.StorageClass',
  updateMeta: ['rules', 'create', 'update', 'own'],
  strategy: {
    applyDefaults: (object) => {
      const storageClass = classOf(object);
      storageClass.reclaimPolicy ??= 'Delete';
      storageClass.volumeBindingMode ??= 'Immediate';
    },
    validateCreate: validateClass,
    warnings: classWarnings,
    validateUpdate: validateClassUpdate,
    table: {
      columns: classTable.columns,
      row: (object, now) => {
        const [name = '', ...cells] = classTable.row(object, now);
        return [isDefaultClass(object) ? `${name} (default)` : name, ...cells];
      },
    },
  },
});

function validateCapacity(object: KubeObject): FieldError[] {
  const { capacity, maximumVolumeSize, nodeTopology, storageClassName = '' } = capacityOf(object);
  const errors: FieldError[] = [];
  for (const [field, quantity] of [
    ['capacity', capacity],
    ['maximumVolumeSize', maximumVolumeSize],
  ] as const) {
    if ((parseQuantity(quantity ?? '0') ?? 0n) < 0n) {
      errors.push(invalid(field, quantity, 'must be greater than or equal to 0'));
    }
  }
  if (nodeTopology !== undefined) addErrors(errors, validateLabelSelector('nodeTopology', nodeTopology));
  addErrors(errors, syntax('storageClassName', storageClassName, dns1123Subdomain(storageClassName)));
  return errors;
}

export const csistoragecapacities = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIStorageCapacity',
  plural: 'csistoragecapacities',
  singular: 'csistoragecapacity',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.storage.v1.CSIStorageCapacity',
  updateMeta: ['rules', 'create', 'update', 'own'],
  strategy: {
    validateCreate: validateCapacity,
    warnings: (object) => selectorWarnings('nodeTopology', capacityOf(object).nodeTopology),
    validateUpdate: (object, old) => {
      const [now, before] = [capacityOf(object), capacityOf(old)];
      const errors: FieldError[] = [];
      if (!sameJson(now.nodeTopology, before.nodeTopology)) {
        errors.push(invalid('nodeTopology', now.nodeTopology, IMMUTABLE));
      }
      if (now.storageClassName !== before.storageClassName) {
        errors.push(invalid('storageClassName', now.storageClassName, IMMUTABLE));
      }
      return errors;
    },
    table: {
      columns: [
        NAME_COLUMN,
        text('StorageClassName', 'The StorageClass that the figure is for.'),
        text('Capacity', 'What GetCapacity reported for it, in this topology segment.'),
      ],
      row: (object) => [
        object.metadata.name ?? '',
        capacityOf(object).storageClassName ?? '',
        orUnset(capacityOf(object).capacity),
      ],
    },
  },
});
