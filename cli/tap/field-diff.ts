// Two messages field by field. Lists whose entries have a key of their own (environment, mounts, …) are compared by it, and
// not by their order. Pure.

import { isMessage } from './names.ts';
import type { Json, JsonMessage } from './wire.ts';

export interface FieldDifference {
  /** "config.linux.resources.cpu_shares", "config.envs[FOO].value" */
  readonly path: string;
  /** Undefined where the field is absent. */
  readonly a: Json | undefined;
  readonly b: Json | undefined;
}

/** Fields that name an entry of a list: the first group whose first field every entry has. The others may be absent. */
const KEYS: readonly (readonly [string, ...string[]])[] = [
  ['key'],
  ['name'],
  ['container_path'],
  ['container_port', 'protocol'],
  ['page_size'],
  ['id'],
  ['host_path'],
  ['type'],
];

function keyOf(lists: readonly Json[][]): readonly string[] | undefined {
  const entries = lists.flat();
  return KEYS.find(
    (fields) =>
      entries.every((each) => fieldText(each, fields[0]) !== undefined) &&
      lists.every((list) => new Set(list.map((each) => keyValue(each, fields))).size === list.length),
  );
}

function fieldText(entry: Json, field: string): string | undefined {
  const value: unknown = isMessage(entry) ? Object.getOwnPropertyDescriptor(entry, field)?.value : undefined;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

const keyValue = (entry: Json, fields: readonly string[]): string =>
  fields.flatMap((field) => fieldText(entry, field) ?? []).join('/');

function differencesOfLists(a: readonly Json[], b: readonly Json[], path: string): FieldDifference[] {
  const key = keyOf([[...a], [...b]]);
  if (key === undefined) {
    return Array.from({ length: Math.max(a.length, b.length) }, (_, index) =>
      differences(a[index], b[index], `${path}[${index}]`),
    ).flat();
  }
  const byKey = (list: readonly Json[]): Map<string, Json> => new Map(list.map((each) => [keyValue(each, key), each]));
  const [first, second] = [byKey(a), byKey(b)];
  return [...new Set([...first.keys(), ...second.keys()])].flatMap((each) =>
    differences(first.get(each), second.get(each), `${path}[${each}]`),
  );
}

function differencesOfMessages(a: JsonMessage, b: JsonMessage, path: string): FieldDifference[] {
  const [first, second] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  return [...new Set([...first.keys(), ...second.keys()])].flatMap((key) => {
    const name = /^[A-Za-z0-9_#]+$/.test(key) ? (path === '' ? key : `${path}.${key}`) : `${path}[${key}]`;
    return differences(first.get(key), second.get(key), name);
  });
}

export function differences(a: Json | undefined, b: Json | undefined, path = ''): FieldDifference[] {
  if (Array.isArray(a) && Array.isArray(b)) return differencesOfLists(a, b, path);
  if (isMessage(a) && isMessage(b)) return differencesOfMessages(a, b, path);
  return a === b ? [] : [{ path, a, b }];
}

/** The paths of all fields that a message has, without keys and indexes of lists: what a method answers at all. */
export function shapeOf(value: Json, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => shapeOf(each, path));
  if (!isMessage(value)) return [path];
  return Object.entries(value).flatMap(([key, each]) => {
    // The keys of maps are data: labels, annotations, extra information.
    if (!/^[a-z0-9_#]+$/.test(key)) return [`${path}[]`];
    return shapeOf(each, path === '' ? key : `${path}.${key}`);
  });
}
