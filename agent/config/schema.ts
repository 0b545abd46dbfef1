// A small language for tables of configuration fields: each field has its type, its default and its effect in
// nodelet, and the TypeScript type of the whole follows from the table. Knows nothing about any particular field.

import { formatGoDuration, parseGoDuration } from '../../lib/go-duration.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { sameJson } from '../../lib/same-json.ts';

/** Something wrong with one field; `path` is as a person would write it: "authentication.webhook.cacheTTL". */
export interface ConfigProblem {
  readonly path: string;
  readonly message: string;
}

/** One field. `parse` adds to `problems` instead of throwing, so that a user sees all of them at once. */
export interface Field<T> {
  readonly type: string;
  parse(value: unknown, path: string, problems: ConfigProblem[]): T;
  /** The value of a field that is not set. */
  readonly fallback: T;
  readonly effect: Effect;
  /** Go's zero value ("", 0, "0s") of a field that is no pointer means "not set": the default counts. */
  readonly zero?: T;
  /** The table below it, for objects. */
  readonly fields?: FieldTable;
  /** Back to what a file would say, where that differs from the parsed value. */
  print?(value: T): unknown;
}

/**
 * The effect of a field. `acted`: it is implemented. Of the others only some values, the default among them, match what
 * nodelet does. Any other value `ends` the agent at its start, where pods would lack isolation, a limit or a check; or it
 * is named in one warning (`warns`). `why` ends that sentence: "… nodelet has no CPU manager".
 */
export type Effect =
  | { readonly kind: 'acted' }
  | { readonly kind: 'ends' | 'warns'; readonly why: string; readonly allowed: readonly unknown[] };

export type FieldTable = Readonly<Record<string, Field<unknown>>>;
/** The type that a table describes. */
export type Described<S extends FieldTable> = {
  readonly [K in keyof S]: S[K] extends Field<infer T> ? T : never;
};

type Type<T> = Pick<Field<T>, 'type' | 'parse' | 'fields' | 'print'> & { readonly zero: T };

/** A field that nodelet acts on. */
export function used<T>(type: Type<T>, fallback: T = type.zero): Field<T> {
  return described(type, fallback, { kind: 'acted' });
}

/** A field of which only the default, and `allowed`, can be had: anything else ends the agent. */
export function ends<T>(type: Type<T>, why: string, fallback: T = type.zero, allowed: readonly T[] = []): Field<T> {
  return described(type, fallback, { kind: 'ends', why, allowed: [fallback, ...allowed] });
}

/** A field of which a value other than the default, and `allowed`, is named in the warning. */
export function warns<T>(type: Type<T>, why: string, fallback: T = type.zero, allowed: readonly T[] = []): Field<T> {
  return described(type, fallback, { kind: 'warns', why, allowed: [fallback, ...allowed] });
}

function described<T>(type: Type<T>, fallback: T, effect: Effect): Field<T> {
  const { zero, ...rest } = type;
  // A boolean whose default is true is a pointer in Go, and so is a list or map with a default.
  const scalar = typeof zero === 'string' || typeof zero === 'number';
  return { ...rest, fallback, effect, ...(scalar ? { zero } : {}) };
}

/** The same field as a pointer in Go: its zero value is one like any other. */
export function pointer<T>(field: Field<T>): Field<T> {
  const { zero: _, ...rest } = field;
  return rest;
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'list' : typeof value;
}

function wrong(path: string, wanted: string, value: unknown): ConfigProblem {
  const shown = typeof value === 'object' ? '' : ` ${JSON.stringify(value)}`;
  return { path, message: `must be ${wanted}, not ${typeName(value)}${shown}` };
}

function scalar<T>(type: string, zero: T, read: (value: unknown) => T | undefined): Type<T> {
  return {
    type,
    zero,
    parse(value, path, problems) {
      const parsed = read(value);
      if (parsed !== undefined) return parsed;
      problems.push(wrong(path, type, value));
      return zero;
    },
  };
}

export const bool: Type<boolean> = scalar('a boolean', false, (v) => (typeof v === 'boolean' ? v : undefined));
export const text: Type<string> = scalar('a string', '', (v) => (typeof v === 'string' ? v : undefined));
export const float: Type<number> = scalar('a number', 0, (v) => (typeof v === 'number' ? v : undefined));

function integer(bits: 32 | 64): Type<number> {
  const limit = bits === 32 ? 2 ** 31 : 2 ** 63;
  return scalar(bits === 32 ? 'an integer (int32)' : 'an integer (int64)', 0, (v) =>
    typeof v === 'number' && Number.isInteger(v) && v >= -limit && v < limit ? v : undefined,
  );
}
export const int32: Type<number> = integer(32);
export const int64: Type<number> = integer(64);

/** A Go duration ("1m30s"), as milliseconds. */
export const duration: Type<number> = {
  ...scalar('a duration such as "1m30s"', 0, (v) => (typeof v === 'string' ? parseGoDuration(v) : undefined)),
  print: formatGoDuration,
};

/** A Go duration, or a number of nanoseconds as older files have it; as milliseconds. */
export const durationOrNumber: Type<number> = {
  ...scalar('a duration such as "5s"', 0, (v) =>
    typeof v === 'number' ? v / 1e6 : typeof v === 'string' ? parseGoDuration(v) : undefined,
  ),
  print: formatGoDuration,
};

/** A resource quantity, kept as text. */
export const quantity: Type<string> = scalar('a quantity such as "100Mi"', '0', (v) =>
  (typeof v === 'string' || typeof v === 'number') && parseQuantity(v) !== undefined ? String(v) : undefined,
);

/** One of a few words. The first is what an unset field means unless a default is given. */
export function oneOf<const T extends string>(...words: readonly [T, ...T[]]): Type<T> {
  const known: ReadonlySet<string> = new Set(words);
  const isKnown = (v: unknown): v is T => typeof v === 'string' && known.has(v);
  return scalar(`one of ${words.map((w) => `"${w}"`).join(', ')}`, words[0], (v) => (isKnown(v) ? v : undefined));
}

/** The same type, where "not set" differs from every value. */
export function optional<T>(type: Type<T>): Type<T | undefined> {
  const { print } = type;
  return {
    type: type.type,
    parse: (value, path, problems) => type.parse(value, path, problems),
    zero: undefined,
    ...(type.fields === undefined ? {} : { fields: type.fields }),
    ...(print === undefined ? {} : { print: (value) => (value === undefined ? undefined : print(value)) }),
  };
}

export function listOf<T>(type: Type<T>): Type<readonly T[]> {
  return {
    type: 'a list',
    zero: [],
    parse(value, path, problems) {
      if (Array.isArray(value)) return value.map((item, i) => type.parse(item, `${path}[${i}]`, problems));
      problems.push(wrong(path, 'a list', value));
      return [];
    },
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function mapOf<T>(type: Type<T>): Type<Readonly<Record<string, T>>> {
  const { print } = type;
  return {
    type: 'a map',
    zero: {},
    ...(print === undefined
      ? {}
      : { print: (map) => Object.fromEntries(Object.entries(map).map(([k, v]) => [k, print(v)])) }),
    parse(value, path, problems) {
      if (!isRecord(value)) {
        problems.push(wrong(path, 'a map', value));
        return {};
      }
      const entries = Object.entries(value).map(([k, v]) => [k, type.parse(v, `${path}[${k}]`, problems)] as const);
      return Object.fromEntries(entries);
    },
  };
}

/** An object with a table of its own. */
export function object<const S extends FieldTable>(fields: S): Type<Described<S>> {
  return {
    type: 'an object',
    fields,
    zero: parseTable(fields, {}, '', []),
    parse: (value, path, problems) => {
      if (isRecord(value)) return parseTable(fields, value, path, problems);
      problems.push(wrong(path, 'an object', value));
      return parseTable(fields, {}, path, []);
    },
  };
}

/** Reads `value` by the table. A field that is missing or null gets its default; an unknown one is a problem. */
export function parseTable<S extends FieldTable>(
  fields: S,
  value: Readonly<Record<string, unknown>>,
  path: string,
  problems: ConfigProblem[],
): Described<S> {
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(fields, name)) problems.push({ path, message: `unknown field "${at(name)}"` });
  }
  const parsed = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const set = getOwn(value, name);
      if (set === undefined || set === null) return [name, field.fallback];
      const read = set === '' && 'zero' in field ? field.zero : field.parse(set, at(name), problems);
      return [name, 'zero' in field && read === field.zero ? field.fallback : read];
    }),
  );
  // Each entry was parsed by the field of its own name, which is the type Described.
  return parsed as Described<S>;
}

/** The values of a table as a configuration file would say them; what is undefined is left out. */
export function printTable(fields: FieldTable, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, set]): [string, unknown][] => {
      const field = getOwn(fields, name);
      if (set === undefined || field === undefined) return [];
      if (field.fields !== undefined && isRecord(set)) return [[name, printTable(field.fields, set)]];
      return [[name, field.print === undefined ? set : field.print(set)]];
    }),
  );
}

/** A field whose value is not what nodelet does. */
export interface Unmet extends ConfigProblem {
  readonly kind: 'ends' | 'warns';
}

/** The unsupported settings in `value`, as parseTable returned it; the message is the reason. */
export function unmet(fields: FieldTable, value: unknown, path = ''): readonly Unmet[] {
  if (!isRecord(value)) return [];
  return Object.entries(fields).flatMap(([name, { effect, fields: below }]): readonly Unmet[] => {
    const set = getOwn(value, name);
    const here = path === '' ? name : `${path}.${name}`;
    if (effect.kind === 'acted') return below === undefined ? [] : unmet(below, set, here);
    if (effect.allowed.some((allowed) => sameJson(allowed, set))) return [];
    return [{ kind: effect.kind, path: here, message: effect.why }];
  });
}
