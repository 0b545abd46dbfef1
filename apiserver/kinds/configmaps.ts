// ConfigMaps: keys, size, and immutability.

import type { ConfigMap } from 'kubernetes-types/core/v1';
import { sameJson } from '../../lib/same-json.ts';
import { namedTable } from './columns.ts';
import { addErrors, forbidden, invalid, syntax, tooLong, WHOLE } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { configMapKey } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const of = (object: KubeObject) => as<ConfigMap>(object, 'ConfigMap');
/** Bytes of all values together. */
const MAX_SIZE = 1024 * 1024;

function validate(object: KubeObject): FieldError[] {
  const { data = {}, binaryData = {} } = of(object);
  const errors: FieldError[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    addErrors(errors, syntax(`data[${key}]`, key, configMapKey(key)));
    if (Object.hasOwn(binaryData, key))
      errors.push(invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
    size += Buffer.byteLength(value ?? '');
  }
  for (const [key, value] of Object.entries(binaryData)) {
    addErrors(errors, syntax(`binaryData[${key}]`, key, configMapKey(key)));
    size += Buffer.byteLength(value ?? '', 'base64');
  }
  if (size > MAX_SIZE) errors.push(tooLong(WHOLE, MAX_SIZE));
  return errors;
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [now, before] = [of(object), of(old)];
  const errors: FieldError[] = [];
  if (before.immutable === true) {
    const locked = 'field is immutable when `immutable` is set';
    if (now.immutable !== true) errors.push(forbidden('immutable', locked));
    for (const field of ['data', 'binaryData'] as const) {
      if (!sameJson(now[field] ?? {}, before[field] ?? {})) errors.push(forbidden(field, locked));
    }
  }
  return errors;
}

export const configmaps = defineKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  shortNames: ['cm'],
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.core.v1.ConfigMap',
  updateMeta: ['update', 'own', 'rules', 'create'],
  strategy: {
    validateCreate: validate,
    validateUpdate,
    table: namedTable(
      [{ name: 'Data', type: 'string', description: 'Data contains the configuration data.' }],
      (object) => {
        const { data = {}, binaryData = {} } = of(object);
        return [Object.keys(data).length + Object.keys(binaryData).length];
      },
    ),
  },
});
