// Server-side apply and the field managers of every other write, for one kind: what kube-apiserver's FieldManager does to
// metadata.managedFields, and to the object where it applies. Stores nothing, and knows kinds by their types.

import { setOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { badRequest, StatusError } from '../errors.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { compare } from './compare.ts';
import { conflictStatus } from './conflicts.ts';
import {
  type Entries,
  type Entry,
  entryKey,
  isReset,
  limited,
  readEntries,
  storedEntries,
  writeEntries,
} from './entries.ts';
import { difference, type FieldSet, has, isEmpty, members, NO_FIELDS, setOf, union, without } from './field-set.ts';
import { ElementError } from './path-element.ts';
import { checkType, fieldsOf, TypeMismatch } from './typed.ts';
import { type Applied, afterApply, afterUpdate, ConflictError, type Owned, type Schema } from './updater.ts';

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
/** The manager of what was there before the first apply, on objects without managed fields. */
const BEFORE_FIRST_APPLY = 'before-first-apply';
/** kubectl's, which takes over what `kubectl apply` has managed by annotation so far. */
const KUBECTL = 'kubectl';
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** Fields without an owner: the server's, and those that identify the object. */
const UNOWNED: FieldSet = {
  'f:apiVersion': {},
  'f:kind': {},
  'f:metadata': {
    '.': {},
    'f:name': {},
    'f:namespace': {},
    'f:creationTimestamp': {},
    'f:selfLink': {},
    'f:uid': {},
    'f:clusterName': {},
    'f:generation': {},
    'f:managedFields': {},
    'f:resourceVersion': {},
  },
};

/** A write, as far as managed fields go. */
export interface FieldWrite {
  readonly schema: Schema;
  readonly manager: string;
  /** '' for the object itself. */
  readonly subresource: string;
  /** RFC 3339, now. */
  readonly time: string;
}

function bare(object: Readonly<KubeObject> | undefined): JsonObject {
  if (object === undefined) return {};
  const { managedFields: _fields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function entryOf(
  { schema, manager, subresource }: FieldWrite,
  operation: Entry['operation'],
): Omit<Entry, 'time' | 'fields'> {
  return { manager: manager === '' ? 'unknown' : manager, operation, apiVersion: schema.apiVersion, subresource };
}

/** Entries with the owners that came out of a change; those of `writer` get `time` if they have one to get. */
function withOwners(entries: Entries, owners: ReadonlyMap<string, Owned>, self: Entry): Entries {
  const result = new Map<string, Entry>();
  for (const [key, { fields, apiVersion }] of owners) {
    const before = entries.get(key);
    const same = before !== undefined && before.fields === fields && before.apiVersion === apiVersion;
    result.set(key, same ? before : { ...(before ?? self), fields, apiVersion });
  }
  return result;
}

/** Stands for the writer while it is found out what the write changed. */
const WRITER = '';

/**
 * Sets metadata.managedFields of `object`, which is about to replace `live` (undefined: to be created). What the body says of
 * managed fields counts as far as it does upstream: a whole list replaces the old one, an empty list clears it.
 */
export function trackUpdate(write: FieldWrite, live: Readonly<KubeObject> | undefined, object: KubeObject): void {
  const { metadata } = object;
  const sent = metadata.managedFields;
  const stored = live?.metadata.managedFields;
  const entries = entriesFor(write, sent, stored);
  delete metadata.managedFields;
  if (entries.size === 0 && live !== undefined) return;
  let after: Entries;
  try {
    after = updated(write, live, object, entries);
  } catch (error) {
    // An object that its own type does not describe has no managed fields.
    if (error instanceof ElementError) return;
    // Called again where a webhook has to convert the object first.
    if (sent !== undefined) metadata.managedFields = sent;
    throw error;
  }
  const list = after === entries && stored !== undefined && !isSent(sent) ? stored : writeEntries(after);
  if (list !== undefined) metadata.managedFields = list;
}

function isSent(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0;
}

function entriesFor({ subresource }: FieldWrite, sent: unknown, stored: unknown): Entries {
  const own = (): Entries => storedEntries(stored) ?? new Map();
  if (subresource !== '') return own();
  if (isReset(sent)) return new Map();
  const read = isSent(sent) && !sameJson(sent, stored) ? readEntries(sent) : undefined;
  return read === undefined || read.size === 0 ? own() : read;
}

function updated(
  write: FieldWrite,
  live: Readonly<KubeObject> | undefined,
  object: Readonly<KubeObject>,
  entries: Entries,
): Entries {
  const owners = afterUpdate(write.schema, bare(live), bare(object), entries, WRITER);
  if (owners === entries) return entries;
  const result = new Map(owners);
  const taken = difference(result.get(WRITER)?.fields ?? NO_FIELDS, UNOWNED);
  result.delete(WRITER);
  const self = { ...entryOf(write, 'Update'), time: write.time, fields: taken };
  const after = new Map(withOwners(entries, result, self));
  if (!isEmpty(taken)) {
    const key = entryKey(self);
    const fields = union(taken, after.get(key)?.fields ?? NO_FIELDS);
    after.set(key, { ...self, fields });
  }
  return limited(after);
}

/**
 * The object that `config`, applied to `live`, makes; undefined for `live` creates one. Throws 400, 409 with a cause for each
 * conflict, or 500 for a configuration or a live object that does not have the kind's type, as upstream.
 */
export function applyConfig(
  write: FieldWrite,
  live: Readonly<KubeObject> | undefined,
  config: JsonObject,
  force: boolean,
  describe: string,
): KubeObject {
  const { schema } = write;
  const metadata = isObject(config['metadata']) ? config['metadata'] : {};
  if (metadata['managedFields'] !== undefined && metadata['managedFields'] !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  try {
    checkType(schema.type, config);
  } catch (error) {
    if (!(error instanceof TypeMismatch)) throw error;
    throw new StatusError(500, '', `failed to create typed patch object (${describe}): ${error.message}`);
  }
  const stored = storedEntries(live?.metadata.managedFields);
  if (stored === undefined) throw new StatusError(500, '', 'failed to decode managed fields');
  const entries = stored.size > 0 || live === undefined ? stored : firstEntries(write, live, describe);
  const before = bare(live);
  const self = { ...entryOf(write, 'Apply'), time: undefined, fields: NO_FIELDS };
  const key = entryKey(self);
  const applied = applyOver(write, before, config, entries, key, force);
  const after = new Map(withOwners(entries, applied.owners, self));
  const mine = after.get(key);
  if (mine !== undefined) {
    const fields = difference(mine.fields, UNOWNED);
    const time = applied.object === undefined ? mine.time : write.time;
    if (isEmpty(fields)) after.delete(key);
    else after.set(key, { ...mine, fields, time });
  }
  const object = kubeObject(applied.object ?? before, config);
  if (write.manager === KUBECTL) keepLastApplied(object, config);
  const list = writeEntries(after);
  if (list !== undefined) object.metadata.managedFields = list;
  return object;
}

/** Throws 500, as upstream, for an object with a list whose elements lack the keys that its type wants of them. */
function firstEntries(write: FieldWrite, live: Readonly<KubeObject>, describe: string): Entries {
  try {
    return updated({ ...write, manager: BEFORE_FIRST_APPLY }, undefined, live, new Map());
  } catch (error) {
    if (!(error instanceof ElementError)) throw error;
    const why = mismatchOf(write.schema, bare(live)) ?? error.message;
    throw new StatusError(500, '', `failed to create typed live object (${describe}): ${why}`);
  }
}

/** What is wrong with an object's type, with its place; undefined for nothing. */
function mismatchOf({ type }: Schema, object: JsonObject): string | undefined {
  try {
    checkType(type, object);
  } catch (error) {
    if (error instanceof TypeMismatch) return error.message;
    throw error;
  }
  return undefined;
}

/** An apply; kubectl's goes through where it only takes over what `kubectl apply` itself set from the client's side. */
function applyOver(
  write: FieldWrite,
  live: JsonObject,
  config: JsonObject,
  entries: Entries,
  key: string,
  force: boolean,
): Applied {
  const { schema } = write;
  try {
    return afterApply(schema, live, config, entries, key, force);
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    const conflicts = error.conflicts.flatMap(({ manager, fields }) =>
      Array.from(members(fields), (path) => ({ entry: entries.get(manager), path })),
    );
    const allowed = write.manager === KUBECTL ? lastAppliedFields(schema, live) : undefined;
    const left = allowed === undefined ? conflicts : conflicts.filter(({ path }) => !has(allowed, path));
    if (left.length > 0) throw conflictStatus(left);
    return afterApply(schema, live, config, entries, key, true);
  }
}

/** What the annotation of client-side apply names and the object still has. */
function lastAppliedFields(schema: Schema, live: JsonObject): FieldSet | undefined {
  const { annotations } = isObject(live['metadata']) ? live['metadata'] : {};
  const text = isObject(annotations) ? annotations[LAST_APPLIED] : undefined;
  if (typeof text !== 'string' || text === '') return undefined;
  try {
    const last: unknown = JSON.parse(text);
    if (!isObject(last) || last['apiVersion'] !== schema.apiVersion) return undefined;
    checkType(schema.type, last);
    const { added, modified, removed } = compare(schema.type, last, live);
    return difference(difference(difference(fieldsOf(schema.type, last), modified), added), removed);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeMismatch || error instanceof ElementError)
      return undefined;
    throw error;
  }
}

/** Client-side apply can take over again: its annotation follows what is applied here. */
function keepLastApplied(object: KubeObject, config: JsonObject): void {
  const { annotations } = object.metadata;
  if ((annotations?.[LAST_APPLIED] ?? '') === '' || annotations === undefined) return;
  const { metadata } = config;
  let last = config;
  if (isObject(metadata) && isObject(metadata['annotations'])) {
    const { [LAST_APPLIED]: _last, ...others } = metadata['annotations'];
    last = { ...config, metadata: { ...metadata, annotations: others } };
  }
  const kept = { ...annotations, [LAST_APPLIED]: `${JSON.stringify(last)}\n` };
  let bytes = 0;
  for (const [name, value] of Object.entries(kept)) bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  if (bytes > MAX_ANNOTATIONS_BYTES) delete annotations[LAST_APPLIED];
  else object.metadata.annotations = kept;
}

/** A copy that may be changed. */
function kubeObject(value: unknown, config: JsonObject): KubeObject {
  const source = isObject(value) ? value : config;
  const copy: JsonObject = structuredClone(source);
  const metadata = isObject(copy['metadata']) ? copy['metadata'] : {};
  const object: KubeObject = { apiVersion: String(copy['apiVersion']), kind: String(copy['kind']), metadata };
  for (const [name, field] of Object.entries(copy)) if (name !== 'metadata') setOwn(object, name, field);
  return object;
}

/** Whether two lists say the same but for the times; such a change alone is not written. */
export function sameButTimes(a: unknown, b: unknown): boolean {
  const timeless = (list: unknown): unknown =>
    Array.isArray(list) ? list.map((entry) => (isObject(entry) ? { ...entry, time: undefined } : entry)) : list;
  return sameJson(timeless(a), timeless(b));
}

/** A filter that leaves out what is at and below the paths: `["status"]`, `["metadata", "labels"]`. */
export function resetFilter(paths: readonly (readonly string[])[]): (fields: FieldSet) => FieldSet {
  let reset = NO_FIELDS;
  for (const path of paths) reset = union(reset, setOf(path.map((name) => `f:${name}`)));
  return (fields) => without(fields, reset);
}

/** A filter that leaves only what is at and below the paths; "*" stands for any element of a list. */
export function ownFilter(paths: readonly (readonly string[])[]): (fields: FieldSet) => FieldSet {
  const patterns = paths.map((path) => path.map((name) => (name === '*' ? name : `f:${name}`)));
  return (fields) => {
    let result = NO_FIELDS;
    for (const path of members(fields)) {
      const matches = patterns.some((pattern) =>
        path.every((element, index) => index >= pattern.length || pattern[index] === '*' || pattern[index] === element),
      );
      if (matches) result = union(result, setOf(path));
    }
    return result;
  };
}
