// What a structural schema does to an object before it is validated: fields that it does not name are removed and reported,
// nulls that it does not allow are left out, defaults are filled in. In place.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { fieldPath } from '../schema/duplicates.ts';
import { type JsonSchema, properties, valueSchema } from './types.ts';

/** Fields of every object with a type of its own, named by no schema. */
const OBJECT_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

export interface PruneReport {
  /** Gets the path of each field that is removed: "spec.foo", "spec.list[0].bar". */
  unknown(path: string): void;
  /** Gets the metadata of each embedded resource, and its path. */
  metadata?(path: string, metadata: JsonObject): void;
}

/** Removes what the schema does not name. */
export function prune(value: unknown, schema: JsonSchema, report: PruneReport): void {
  pruneAt(value, schema, '', true, report);
}

function pruneAt(value: unknown, schema: JsonSchema, path: string, root: boolean, report: PruneReport): void {
  if (Array.isArray(value)) {
    if (schema.items === undefined) return;
    for (const [index, item] of value.entries()) pruneAt(item, schema.items, `${path}[${index}]`, false, report);
    return;
  }
  if (!isObject(value)) return;
  const embedded = root || schema['x-kubernetes-embedded-resource'] === true;
  const values = valueSchema(schema);
  const keepsAll = schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true;
  for (const [key, child] of Object.entries(value)) {
    const below = fieldPath(path, key);
    if (embedded && OBJECT_FIELDS.has(key)) {
      if (!root && key === 'metadata' && isObject(child)) report.metadata?.(below, child);
      continue;
    }
    const childSchema = getOwn(schema.properties, key) ?? values;
    if (childSchema !== undefined) pruneAt(child, childSchema, below, false, report);
    else if (!keepsAll) {
      report.unknown(below);
      delete value[key];
    }
  }
}

/** A null for a field with a default that is not nullable is dropped, so that the default is filled in. */
function isDropped(value: unknown, schema: JsonSchema): boolean {
  return value === null && schema.nullable !== true && schema.default !== undefined;
}

/** Fills in the schema's defaults. */
export function applyDefaults(value: unknown, schema: JsonSchema): void {
  if (Array.isArray(value)) {
    if (schema.items === undefined) return;
    for (const [index, item] of value.entries()) {
      if (isDropped(item, schema.items)) value[index] = structuredClone(schema.items.default);
      applyDefaults(value[index], schema.items);
    }
    return;
  }
  if (!isObject(value)) return;
  for (const [name, child] of properties(schema)) {
    const present = Object.hasOwn(value, name);
    if (child.default !== undefined && (!present || isDropped(getOwn(value, name), child))) {
      setOwn(value, name, structuredClone(child.default));
    }
    if (Object.hasOwn(value, name)) applyDefaults(getOwn(value, name), child);
  }
  defaultValues(value, schema);
}

function defaultValues(value: JsonObject, schema: JsonSchema): void {
  const values = valueSchema(schema);
  if (values === undefined) return;
  for (const [name, child] of Object.entries(value)) {
    if (getOwn(schema.properties, name) !== undefined) continue;
    if (isDropped(child, values)) setOwn(value, name, structuredClone(values.default));
    applyDefaults(getOwn(value, name), values);
  }
}

/** Whether a default stands anywhere in the schema. */
export function hasDefaults(schema: JsonSchema | undefined): boolean {
  if (schema === undefined) return false;
  if (schema.default !== undefined) return true;
  return (
    properties(schema).some(([, child]) => hasDefaults(child)) ||
    hasDefaults(schema.items) ||
    hasDefaults(valueSchema(schema))
  );
}
