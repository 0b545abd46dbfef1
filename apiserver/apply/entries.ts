// metadata.managedFields: the list of who set what and when, read, written, sorted and kept short. Pure.

import { isObject } from '../patch/json-value.ts';
import { decode, encode, type FieldSet, isEmpty, union } from './field-set.ts';
import { ElementError } from './path-element.ts';

/** One manager's part, as it is stored. */
export interface Entry {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  /** '' for the object itself. */
  readonly subresource: string;
  /** RFC 3339; absent where nothing of the object was changed. */
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** Entries by who they are of. */
export type Entries = ReadonlyMap<string, Entry>;

/** More entries of updates than this are put together, the oldest first. */
const MAX_UPDATERS = 10;
const OLD_UPDATERS = 'ancient-changes';
const MAX_MANAGER = 128;

/** What tells entries apart. An applier is the same one whatever version it applies. */
export function entryKey({ manager, operation, apiVersion, subresource }: Omit<Entry, 'time' | 'fields'>): string {
  return JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource]);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Entries as they were stored, which need not be written again while they are the same. */
const stored = new WeakMap<Entry, Record<string, unknown>>();

/** The entries of a stored object, whose fields are in canonical form. */
export function storedEntries(list: unknown): Map<string, Entry> | undefined {
  return readEntries(list, fieldsAsStored);
}

/** A set as it was written: nothing else is stored. */
function fieldsAsStored(value: unknown): FieldSet {
  return isFieldSet(value) ? value : {};
}

function isFieldSet(value: unknown): value is FieldSet {
  return isObject(value);
}

/** undefined for a list that is not one of managed fields. */
export function readEntries(list: unknown, fields = decode): Map<string, Entry> | undefined {
  const entries = new Map<string, Entry>();
  for (const value of Array.isArray(list) ? list : []) {
    const entry = readEntry(value, fields);
    if (entry === undefined) return undefined;
    if (fields === fieldsAsStored) stored.set(entry, value);
    entries.set(entryKey(entry), entry);
  }
  return entries;
}

function readEntry(value: unknown, fieldsOf: (value: unknown) => FieldSet): Entry | undefined {
  if (!isObject(value)) return undefined;
  const { operation, fieldsType } = value;
  const apiVersion = text(value['apiVersion']);
  const manager = text(value['manager']);
  if ((operation !== 'Apply' && operation !== 'Update') || apiVersion === '' || fieldsType !== 'FieldsV1')
    return undefined;
  if (manager.length > MAX_MANAGER) return undefined;
  try {
    const fields = fieldsOf(value['fieldsV1'] ?? {});
    const time = text(value['time']);
    const subresource = text(value['subresource']);
    return { manager, operation, apiVersion, subresource, time: time === '' ? undefined : time, fields };
  } catch (error) {
    if (error instanceof ElementError) return undefined;
    throw error;
  }
}

/** The list for metadata; undefined for none. */
export function writeEntries(entries: Entries): Record<string, unknown>[] | undefined {
  const list = [...entries.values()].filter(({ fields }) => !isEmpty(fields));
  if (list.length === 0) return undefined;
  list.sort(inOrder);
  return list.map((entry) => stored.get(entry) ?? written(entry));
}

function written({ manager, operation, apiVersion, time, fields, subresource }: Entry): Record<string, unknown> {
  return {
    manager,
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: encode(fields),
    ...(subresource === '' ? {} : { subresource }),
  };
}

function inOrder(a: Entry, b: Entry): number {
  const keys = (entry: Entry): string[] => {
    const { operation, time = '', manager, apiVersion, subresource } = entry;
    return [operation, time, manager, apiVersion, subresource];
  };
  const right = keys(b);
  for (const [index, left] of keys(a).entries()) {
    const other = right[index] ?? '';
    if (left !== other) return left < other ? -1 : 1;
  }
  return 0;
}

/** At most MAX_UPDATERS entries of updates: the oldest of one version become one, under a name of its own. */
export function limited(entries: Entries): Entries {
  const updates = [...entries].filter(([, { operation }]) => operation === 'Update');
  if (updates.length <= MAX_UPDATERS) return entries;
  updates.sort(([aKey, a], [bKey, b]) => {
    const [left = '', right = ''] = a.time === b.time ? [aKey, bKey] : [a.time, b.time];
    return left < right ? -1 : 1;
  });
  const result = new Map(entries);
  const firstOf = new Map<string, string>();
  let count = updates.length;
  for (const [key, entry] of updates) {
    if (count <= MAX_UPDATERS) break;
    const { apiVersion } = entry;
    const first = firstOf.get(apiVersion);
    if (first === undefined) {
      firstOf.set(apiVersion, key);
      continue;
    }
    const bucket = { manager: OLD_UPDATERS, operation: 'Update', apiVersion, subresource: '' } as const;
    const bucketKey = entryKey(bucket);
    const before = result.get(bucketKey) ?? result.get(first);
    if (!result.has(bucketKey)) result.delete(first);
    result.delete(key);
    const fields = before === undefined ? entry.fields : union(entry.fields, before.fields);
    result.set(bucketKey, { ...bucket, time: entry.time, fields });
    count--;
  }
  return result;
}

/** Whether a client wants all of it gone: an empty list, or a list of one empty entry. */
export function isReset(list: unknown): boolean {
  if (!Array.isArray(list)) return false;
  const [first] = list;
  return list.length === 0 || (list.length === 1 && isObject(first) && Object.keys(first).length === 0);
}
