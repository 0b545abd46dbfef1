// The values of expressions: what JSON has, and records whose fields are made when they are read. Pure.

import { getOwn } from '../../../lib/own-property.ts';
import type { MeasuredValue } from '../model.ts';

export type Value = null | number | boolean | string | readonly Value[] | RecordValue;

/** Arguments of a call, evaluated. */
export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

/** Something with fields, and perhaps methods. It has no own notion of equality: two are equal where their JSON is. */
export class RecordValue {
  /** What it is, for messages: "container crash". */
  readonly title: string;
  readonly #field: (name: string) => Value | undefined;
  readonly #names: () => readonly string[];
  readonly #methods: ReadonlyMap<string, (given: Arguments) => Value>;

  constructor(
    title: string,
    names: () => readonly string[],
    field: (name: string) => Value | undefined,
    methods: ReadonlyMap<string, (given: Arguments) => Value> = new Map(),
  ) {
    this.title = title;
    this.#names = names;
    this.#field = field;
    this.#methods = methods;
  }

  /** Undefined where there is no such field. */
  field(name: string): Value | undefined {
    return this.#field(name);
  }

  names(): readonly string[] {
    return this.#names();
  }

  method(name: string): ((given: Arguments) => Value) | undefined {
    return this.#methods.get(name);
  }
}

/** A record with these fields; each is computed when it is read. */
export function record(
  title: string,
  fields: Readonly<Record<string, Value | (() => Value)>>,
  methods?: ReadonlyMap<string, (given: Arguments) => Value>,
): RecordValue {
  const read = (name: string): Value | undefined => {
    const field = getOwn(fields, name);
    return typeof field === 'function' ? field() : field;
  };
  return new RecordValue(title, () => Object.keys(fields), read, methods);
}

/** A value of JSON, as of the API. An object's absent field is null: the API leaves out what is empty. */
export function fromJson(value: unknown, title = 'object'): Value {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map((item: unknown) => fromJson(item, title));
  if (typeof value !== 'object') return String(value);
  const object: { readonly [key: string]: unknown } = { ...value };
  return new RecordValue(
    title,
    () => Object.keys(object),
    (name) => fromJson(getOwn(object, name), name),
  );
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** The number that a record has at a time, with its other texts: the labels of a sample. Undefined for other records. */
function timedNumber(
  value: Value,
): { readonly pair: readonly [ms: number, value: number]; readonly labels: ReadonlyMap<string, string> } | undefined {
  if (!(value instanceof RecordValue)) return undefined;
  const [at, number] = [value.field('at'), value.field('value')];
  if (typeof at !== 'number' || typeof number !== 'number') return undefined;
  const labels = value.names().flatMap((name): [string, string][] => {
    const text = name === 'at' || name === 'value' ? undefined : value.field(name);
    return typeof text === 'string' ? [[name, text]] : [];
  });
  return { pair: [at, number], labels: new Map(labels) };
}

/**
 * Records of numbers over time (samples, the history of a field that is a number) as [ms, number]; where they are several
 * series, each has the labels that tell them apart as a third item. Undefined for any other list.
 */
function toSeries(list: readonly Value[]): MeasuredValue | undefined {
  const numbers = list.flatMap((each) => timedNumber(each) ?? []);
  if (list.length === 0 || numbers.length !== list.length) return undefined;
  const names = [...new Set(numbers.flatMap(({ labels }) => [...labels.keys()]))];
  const differing = names.filter((name) => new Set(numbers.map(({ labels }) => labels.get(name))).size > 1);
  if (differing.length === 0) return numbers.map(({ pair }) => pair);
  return numbers.map(({ pair, labels }) => [
    ...pair,
    differing.flatMap((name) => (labels.has(name) ? [`${name}=${labels.get(name)}`] : [])).join(', '),
  ]);
}

/** As a result keeps it: numbers over time as a series, any other record as the text of its JSON. */
export function toMeasured(value: Value): MeasuredValue {
  if (value instanceof RecordValue) return show(value);
  return isList(value) ? (toSeries(value) ?? value.map(toMeasured)) : value;
}

/** Nested fields of an object of the API can be many. */
const MAX_SHOWN = 400;

function plain(value: Value): unknown {
  if (value instanceof RecordValue) {
    return Object.fromEntries(value.names().map((name) => [name, plain(value.field(name) ?? null)]));
  }
  return isList(value) ? value.map(plain) : value;
}

/** For people: JSON, cut where it is long. */
export function show(value: Value): string {
  const text = JSON.stringify(plain(value));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** Equal as JSON is. */
export function equal(a: Value, b: Value): boolean {
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, index) => equal(item, b[index] ?? null));
  if (a instanceof RecordValue && b instanceof RecordValue)
    return JSON.stringify(plain(a)) === JSON.stringify(plain(b));
  return a === b;
}

/** "a number", "a list", … for messages. */
export function typeOf(value: Value): string {
  if (value === null) return 'null';
  if (isList(value)) return 'a list';
  if (value instanceof RecordValue) return `a record (${value.title})`;
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`;
}
