// The merge type of a custom resource, from its structural OpenAPI v3 schema: x-kubernetes-list-type, -list-map-keys,
// -map-type, -preserve-unknown-fields and -int-or-string. Knows no objects.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { DEDUCED, type ListType, type MapType, typeOfDefinition, type ValueType } from './types.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';

/** The type of an object of a custom resource; DEDUCED where there is no schema. */
export function typeOfCustomResource(schema: unknown): ValueType {
  if (!isObject(schema)) return DEDUCED;
  const type = typeOfSchema(schema);
  if (type.kind !== 'map') return DEDUCED;
  const metadata = typeOfDefinition(META);
  const text: ValueType = { kind: 'scalar', scalar: 'string' };
  return {
    ...type,
    field: (name) => {
      if (name === 'metadata') return metadata;
      return name === 'apiVersion' || name === 'kind' ? text : type.field(name);
    },
  };
}

function typeOfSchema(schema: JsonObject): ValueType {
  if (schema['x-kubernetes-int-or-string'] === true) return { kind: 'scalar', scalar: 'untyped' };
  if (schema['x-kubernetes-embedded-resource'] === true && !isObject(schema['properties'])) return DEDUCED;
  switch (schema['type']) {
    case 'object':
      return objectType(schema);
    case 'array':
      return listType(schema);
    case 'string':
      return { kind: 'scalar', scalar: 'string' };
    case 'boolean':
      return { kind: 'scalar', scalar: 'boolean' };
    case 'integer':
    case 'number':
      return { kind: 'scalar', scalar: 'numeric' };
    default:
      return DEDUCED;
  }
}

function objectType(schema: JsonObject): ValueType {
  const properties = isObject(schema['properties']) ? schema['properties'] : undefined;
  const others = schema['additionalProperties'];
  const open = schema['x-kubernetes-preserve-unknown-fields'] === true || others === true;
  const atomic = schema['x-kubernetes-map-type'] === 'atomic';
  if (properties === undefined && open && !atomic) return DEDUCED;
  const fields = new Map<string, ValueType>();
  const type: MapType = {
    kind: 'map',
    atomic,
    element: isObject(others) ? () => typeOfSchema(others) : open ? () => DEDUCED : undefined,
    present: {},
    field(name) {
      const property = getOwn(properties, name);
      if (!isObject(property)) return undefined;
      const known = fields.get(name) ?? typeOfSchema(property);
      fields.set(name, known);
      return known;
    },
  };
  return type;
}

function listType(schema: JsonObject): ListType {
  const items = isObject(schema['items']) ? schema['items'] : {};
  const keys = strings(schema['x-kubernetes-list-map-keys']);
  const declared = schema['x-kubernetes-list-type'];
  const relation = declared === 'map' || declared === 'set' ? declared : 'atomic';
  return { kind: 'list', relation, keys, keyDefaults: defaultsOf(items, keys), item: () => typeOfSchema(items) };
}

function defaultsOf(items: JsonObject, keys: readonly string[]): Record<string, unknown> {
  const properties = isObject(items['properties']) ? items['properties'] : {};
  const defaults: Record<string, unknown> = {};
  for (const key of keys) {
    const property = getOwn(properties, key);
    if (isObject(property) && property['default'] !== undefined) setOwn(defaults, key, property['default']);
  }
  return defaults;
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
