// VolumeAttributesClasses: the row and its rules. Changing a volume's attributes is a CSI resizer's.

import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { forbidden, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { qualifiedName } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';
import { validateParameters } from './shared.ts';

interface VolumeAttributesClass {
  driverName?: string;
  parameters?: Record<string, string>;
}

const of = (object: KubeObject): Of<VolumeAttributesClass> =>
  as<VolumeAttributesClass>(object, 'VolumeAttributesClass');

function validate(object: KubeObject): FieldError[] {
  const { driverName = '', parameters = {} } = of(object);
  const empty = Object.keys(parameters).length === 0;
  return allOf(
    driverName === ''
      ? [required('driverName')]
      : syntax('driverName', driverName.toLowerCase(), qualifiedName(driverName.toLowerCase())),
    validateParameters('parameters', parameters),
    empty ? [required('parameters', 'must contain at least one key/value pair')] : [],
  );
}

export const volumeattributesclasses = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'VolumeAttributesClass',
  plural: 'volumeattributesclasses',
  singular: 'volumeattributesclass',
  shortNames: ['vac'],
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.storage.v1.VolumeAttributesClass',
  updateMeta: ['rules', 'create', 'update', 'own'],
  strategy: {
    validateCreate: validate,
    validateUpdate: (object, old) => {
      const fixed = (field: 'driverName' | 'parameters'): FieldError[] =>
        sameJson(of(object)[field] ?? {}, of(old)[field] ?? {})
          ? []
          : [forbidden(field, `updates to ${field} are forbidden.`)];
      return allOf(fixed('driverName'), fixed('parameters'));
    },
    table: namedTable([text('DriverName', 'The CSI driver that the class is for.')], (object) => [
      of(object).driverName ?? '',
    ]),
  },
});
