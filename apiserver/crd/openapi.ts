// The schema of a custom kind as OpenAPI documents have it: with the head that every object has, and for v2 without what that
// version has no word for. Pure.

import { setOwn } from '../../lib/own-property.ts';
import { type JsonSchema, properties, valueSchema } from './types.ts';

type Schema = Record<string, unknown>;
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
/** Not in OpenAPI v2 as kubectl reads it. */
const V3_ONLY: readonly string[] = ['oneOf', 'anyOf', 'allOf', 'not', 'nullable', 'x-kubernetes-validations'];
const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
const BELOW: readonly string[] = ['properties', 'items', 'additionalProperties'];

function converted(schema: JsonSchema, form: 'v2' | 'v3', reference: (name: string) => Schema): Schema {
  const result: Schema = {};
  for (const [key, value] of Object.entries(schema)) {
    if (BELOW.includes(key) || (form === 'v2' && V3_ONLY.includes(key))) continue;
    setOwn(result, key, value);
  }
  // v2 has no way to keep unknown fields, and none to allow a null: such parts are described by no type, and by none of their fields.
  const isOpen = form === 'v2' && (schema.nullable === true || schema[PRESERVE] === true);
  if (!isOpen) {
    const children: Schema = {};
    for (const [name, child] of properties(schema)) setOwn(children, name, converted(child, form, reference));
    if (schema['x-kubernetes-embedded-resource'] === true) addHead(children, form, reference);
    if (Object.keys(children).length > 0) result['properties'] = children;
    if (schema.items !== undefined) result['items'] = converted(schema.items, form, reference);
  }
  if (form === 'v2') {
    if (isOpen || (result['type'] === 'array' && result['items'] === undefined)) delete result['type'];
    dropNullable(result, schema);
  }
  const values = valueSchema(schema);
  if (values !== undefined) result['additionalProperties'] = converted(values, form, reference);
  else if (schema.additionalProperties === true) result['additionalProperties'] = true;
  return result;
}

/** kubectl takes no null for a field that is required. */
function dropNullable(result: Schema, schema: JsonSchema): void {
  const nullable = new Set(properties(schema).flatMap(([name, child]) => (child.nullable === true ? [name] : [])));
  if (schema.required === undefined || nullable.size === 0) return;
  const required = schema.required.filter((name) => !nullable.has(name));
  if (required.length > 0) result['required'] = required;
  else delete result['required'];
}

function addHead(children: Schema, form: 'v2' | 'v3', reference: (name: string) => Schema): void {
  const metadata = reference(`${META}.ObjectMeta`);
  const head: Schema = {
    apiVersion: {
      description: 'APIVersion defines the versioned schema of this representation of an object.',
      type: 'string',
    },
    kind: {
      description: 'Kind is a string value representing the REST resource this object represents.',
      type: 'string',
    },
    metadata:
      form === 'v3'
        ? { description: "Standard object's metadata.", allOf: [metadata] }
        : { description: "Standard object's metadata.", ...metadata },
  };
  for (const [name, child] of Object.entries(head)) setOwn(children, name, child);
}

/** The definition of the kind itself. */
export function openapiOf(
  group: string,
  version: string,
  kind: string,
  schema: JsonSchema,
  form: 'v2' | 'v3',
  reference: (name: string) => Schema,
): Schema {
  const kinds = [{ group, version, kind }];
  // With any field, kubectl would refuse those that are not described.
  if (form === 'v2' && schema[PRESERVE] === true) return { type: 'object', 'x-kubernetes-group-version-kind': kinds };
  const result = converted(schema, form, reference);
  const children: Schema = {};
  addHead(children, form, reference);
  const own = result['properties'];
  if (typeof own === 'object' && own !== null) {
    for (const [name, child] of Object.entries(own)) if (!Object.hasOwn(children, name)) setOwn(children, name, child);
  }
  return {
    ...result,
    type: 'object',
    properties: children,
    'x-kubernetes-group-version-kind': kinds,
  };
}
