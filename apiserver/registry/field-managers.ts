// Joins field management (apply/) to rows: the type and the served versions of a kind, and what a write through each
// endpoint can change.

import { getOwn } from '../../lib/own-property.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import { type FieldWrite, ownFilter, resetFilter, sameButTimes } from '../apply/field-manager.ts';
import { typeOfDefinition, type ValueType } from '../apply/types.ts';
import type { Schema, Version } from '../apply/updater.ts';
import { StatusError } from '../errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import type { ObjectKey, StoredObject } from '../storage/object-store.ts';
import { inVersion } from './conversions.ts';
import { apiVersionOf, type Registry, type View, type WriteOptions } from './registry.ts';

function valueTypeOf(row: ResourceKind): ValueType {
  return row.valueType ?? typeOfDefinition(row.schema);
}

const schemas = new WeakMap<ResourceKind, Map<string, Schema>>();

function schemaOf(registry: Registry, row: ResourceKind, subresource: string): Schema {
  const ofRow = schemas.get(row) ?? new Map<string, Schema>();
  schemas.set(row, ofRow);
  let schema = ofRow.get(subresource);
  if (schema === undefined) {
    schema = {
      apiVersion: apiVersionOf(row),
      type: valueTypeOf(row),
      version: (apiVersion) => otherVersion(registry, row, apiVersion),
      filter: filterOf(row, subresource),
    };
    ofRow.set(subresource, schema);
  }
  return schema;
}

function filterOf(row: ResourceKind, subresource: string): Schema['filter'] {
  const own = getOwn(row.strategy.ownFields, subresource);
  if (own !== undefined) return ownFilter(own);
  const reset = getOwn(row.strategy.resetFields, subresource);
  if (reset !== undefined) return resetFilter(reset);
  if (!row.subresources.includes('status')) return resetFilter([]);
  return resetFilter([[subresource === 'status' ? 'spec' : 'status']]);
}

/** Another version under which the same objects are served, with the way there and back. */
function otherVersion(registry: Registry, row: ResourceKind, apiVersion: string): Version | undefined {
  const other = registry.versionsOf(row).find((each) => apiVersionOf(each) === apiVersion);
  return other === undefined
    ? undefined
    : {
        type: valueTypeOf(other),
        from: (object) => convert(object, row, other),
        to: (object) => convert(object, other, row),
      };
}

function convert(value: unknown, from: ResourceKind, to: ResourceKind): unknown {
  if (!isObject(value)) return value;
  const metadata = isObject(value['metadata']) ? value['metadata'] : {};
  return inVersion({ ...value, apiVersion: apiVersionOf(from), kind: from.kind, metadata }, from, to);
}

/** What field management needs to know of a write. */
export function fieldWrite(
  registry: Registry,
  row: ResourceKind,
  options: Pick<WriteOptions, 'fieldManager'>,
  subresource = '',
): FieldWrite {
  const manager = options.fieldManager ?? '';
  return { schema: schemaOf(registry, row, subresource), manager, subresource, time: rfc3339(registry.clock.now()) };
}

/** Writes it; where managed fields make an object too large, without them, except that an apply has to keep account. */
export function putWithin(
  registry: Registry,
  row: ResourceKind,
  key: ObjectKey,
  object: KubeObject,
  tracked: boolean,
  previous?: StoredObject,
): View {
  try {
    return registry.put(row, key, object, previous);
  } catch (error) {
    const isTooLarge = error instanceof StatusError && error.status.code === 413;
    if (!isTooLarge || tracked || object.metadata.managedFields === undefined) throw error;
    delete object.metadata.managedFields;
    return registry.put(row, key, object, previous);
  }
}

/**
 * Sets what the write made of the managed fields, whatever its preparation did to metadata. New times alone are no change:
 * a client that writes the same again and again writes nothing.
 */
export function keepManagedFields(
  object: KubeObject,
  old: KubeObject,
  managedFields: Record<string, unknown>[] | undefined,
): void {
  const before = old.metadata.managedFields;
  let kept = managedFields;
  if (kept !== undefined && kept !== before && sameButTimes(kept, before)) {
    const { managedFields: _new, ...metadata } = object.metadata;
    const { managedFields: _old, ...oldMetadata } = old.metadata;
    if (sameJson({ ...object, metadata }, { ...old, metadata: oldMetadata })) kept = before;
  }
  if (kept === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = kept;
}
