// Who owns which fields after a change, and what an applied configuration makes of an object. Follows
// structured-merge-diff's updater. Managers are known by keys that manager.ts makes; nothing here reads metadata. Pure.

import { sameJson } from '../../lib/same-json.ts';
import { type Comparison, compare } from './compare.ts';
import { difference, type FieldSet, intersection, isEmpty, NO_FIELDS, union, withNamedFields } from './field-set.ts';
import { fieldsOf, merge, remove } from './typed.ts';
import type { ValueType } from './types.ts';

export interface Owned {
  readonly fields: FieldSet;
  readonly apiVersion: string;
}

export type Owners = ReadonlyMap<string, Owned>;

/** One served version of the object's kind. */
export interface Version {
  readonly type: ValueType;
  /** An object of the version that the request uses, in this one. */
  from(object: unknown): unknown;
  /** And back. */
  to(object: unknown): unknown;
}

export interface Schema {
  /** Of the request. */
  readonly apiVersion: string;
  readonly type: ValueType;
  /** undefined for a version that is no longer served: what it says about owners is forgotten. */
  readonly version: (apiVersion: string) => Version | undefined;
  /** Leaves of a set only what a write through this endpoint can change. */
  readonly filter: (fields: FieldSet) => FieldSet;
}

export interface Conflict {
  readonly manager: string;
  readonly fields: FieldSet;
}

/** Others own, with other values, what a configuration sets. */
export class ConflictError extends Error {
  override name = 'ConflictError';
  readonly conflicts: readonly Conflict[];
  constructor(conflicts: readonly Conflict[]) {
    super(`${conflicts.length} managers own fields of this configuration`);
    this.conflicts = conflicts;
  }
}

function versionOf(schema: Schema, apiVersion: string): Version | undefined {
  if (apiVersion !== schema.apiVersion) return schema.version(apiVersion);
  return { type: schema.type, from: (object) => object, to: (object) => object };
}

/** What of the change counts, in the version a manager used; undefined where that version is gone. */
function comparisons(
  schema: Schema,
  before: unknown,
  after: unknown,
  of: 'objects' | 'apply',
): (apiVersion: string) => { readonly raw: Comparison; readonly seen: Comparison } | undefined {
  const known = new Map<string, { raw: Comparison; seen: Comparison } | undefined>();
  return (apiVersion) => {
    if (known.has(apiVersion)) return known.get(apiVersion);
    const version = versionOf(schema, apiVersion);
    let made: { raw: Comparison; seen: Comparison } | undefined;
    if (version !== undefined) {
      const raw = compare(version.type, version.from(before), version.from(after), of);
      const { filter } = schema;
      made = { raw, seen: { added: filter(raw.added), modified: filter(raw.modified), removed: filter(raw.removed) } };
    }
    known.set(apiVersion, made);
    return made;
  };
}

/** Takes what changed from every owner but `writer`. Throws ConflictError unless `force`. */
function handOver(
  owners: Owners,
  writer: string,
  comparisonIn: ReturnType<typeof comparisons>,
  force: boolean,
): Map<string, Owned> {
  const result = new Map<string, Owned>();
  const conflicts: Conflict[] = [];
  for (const [manager, owned] of owners) {
    if (manager === writer) {
      result.set(manager, owned);
      continue;
    }
    const seen = comparisonIn(owned.apiVersion)?.seen;
    if (seen === undefined) continue;
    const taken = intersection(owned.fields, union(seen.modified, seen.added));
    let { fields } = owned;
    if (!isEmpty(taken)) {
      conflicts.push({ manager, fields: taken });
      fields = difference(fields, taken);
    }
    if (!isEmpty(intersection(fields, seen.removed))) fields = difference(fields, seen.removed);
    if (!isEmpty(fields)) result.set(manager, fields === owned.fields ? owned : { ...owned, fields });
  }
  if (!force && conflicts.length > 0) throw new ConflictError(conflicts);
  return result;
}

/** The owners after `writer` made `after` of `before` by anything but an apply. */
export function afterUpdate(
  schema: Schema,
  before: unknown,
  after: unknown,
  owners: Owners,
  writer: string,
): ReadonlyMap<string, Owned> {
  const comparisonIn = comparisons(schema, before, after, 'objects');
  const seen = comparisonIn(schema.apiVersion)?.seen;
  if (seen === undefined) return owners;
  if (isEmpty(seen.added) && isEmpty(seen.modified) && isEmpty(seen.removed)) {
    const same = [...owners.values()].every(({ apiVersion }) => apiVersion === schema.apiVersion);
    if (same) return owners;
  }
  const result = handOver(owners, writer, comparisonIn, true);
  const mine = result.get(writer)?.fields ?? NO_FIELDS;
  const fields = schema.filter(union(difference(mine, seen.removed), union(seen.modified, seen.added)));
  if (isEmpty(fields)) result.delete(writer);
  else result.set(writer, { fields, apiVersion: schema.apiVersion });
  return result;
}

export interface Applied {
  /** The new object; undefined when the configuration changes nothing. */
  readonly object: unknown;
  readonly owners: ReadonlyMap<string, Owned>;
}

/** What becomes of `live` when `applier` applies `config`. Throws ConflictError unless `force`. */
export function afterApply(
  schema: Schema,
  live: unknown,
  config: unknown,
  owners: Owners,
  applier: string,
  force: boolean,
): Applied {
  const merged = merge(schema.type, live, config);
  const last = owners.get(applier);
  const fields = schema.filter(fieldsOf(schema.type, config));
  const all = new Map(owners);
  all.set(applier, { fields, apiVersion: schema.apiVersion });
  const object = last === undefined || isEmpty(last.fields) ? merged : prune(schema, merged, all, last);
  const result = handOver(all, applier, comparisons(schema, live, object, 'apply'), force);
  if (isEmpty(result.get(applier)?.fields ?? NO_FIELDS)) result.delete(applier);
  return { object: sameJson(object, live) ? undefined : object, owners: result };
}

/** Without what the applier named last time, does not name now, and no other manager owns. */
function prune(schema: Schema, merged: unknown, owners: Owners, last: Owned): unknown {
  const version = versionOf(schema, last.apiVersion);
  if (version === undefined) return merged;
  const { type } = version;
  const whole = version.from(merged);
  const named = withNamedFields(last.fields, type);
  let pruned = remove(type, whole, named);
  const versions = new Set([last.apiVersion, ...Array.from(owners.values(), ({ apiVersion }) => apiVersion)]);
  for (const apiVersion of versions) {
    const at = versionOf(schema, apiVersion);
    if (at === undefined) continue;
    let owned = NO_FIELDS;
    for (const each of owners.values()) if (each.apiVersion === apiVersion) owned = union(owned, each.fields);
    const into = (object: unknown): unknown => (apiVersion === last.apiVersion ? object : at.from(version.to(object)));
    const back = (object: unknown): unknown => (apiVersion === last.apiVersion ? object : version.from(at.to(object)));
    pruned = back(addBack(at.type, into(whole), into(pruned), owned));
  }
  const lost = difference(allFields(type, whole), allFields(type, pruned));
  return version.to(remove(type, whole, intersection(lost, named)));
}

function allFields(type: ValueType, object: unknown): FieldSet {
  return withNamedFields(fieldsOf(type, object), type);
}

/** `pruned` with what any manager owns of `whole`. */
function addBack(type: ValueType, whole: unknown, pruned: unknown, owned: FieldSet): unknown {
  const kept = union(allFields(type, pruned), withNamedFields(owned, type));
  return remove(type, whole, difference(allFields(type, whole), kept));
}
