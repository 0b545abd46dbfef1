// The types that a schema's values have in its rules: a class for each object with properties, so that an expression is checked
// when the definition is created, and the conversion of values into them.

import type { Environment } from '@marcbachmann/cel-js';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { charge } from '../cel/budget.ts';
import { parseDuration } from '../cel/functions/text.ts';
import { TYPE_MARK } from '../cel/library.ts';
import { celTime } from '../cel/times.ts';
import { type ListType, markContainer, markList } from '../cel/typed-lists.ts';
import { celEqual, celValue } from '../cel/values.ts';
import { isObject } from '../patch/json-value.ts';
import { type JsonSchema, properties, valueSchema } from './types.ts';

export interface CelType {
  /** For declarations: "int", "list<string>", "Object.spec". */
  readonly name: string;
  /** It is or contains lists of type set or map, which compare without order. */
  readonly unordered?: boolean;
  /** The JSON value as this type's. */
  convert(value: unknown): unknown;
}

const DYN: CelType = { name: 'dyn', convert: celValue };
const BOOL: CelType = { name: 'bool', convert: (value) => value };
const STRING: CelType = { name: 'string', convert: (value) => value };
const DOUBLE: CelType = { name: 'double', convert: (value) => value };
const INT: CelType = {
  name: 'int',
  convert: (value) => (typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value),
};
const TIME: CelType = {
  name: 'google.protobuf.Timestamp',
  convert: (value) => (typeof value === 'string' ? (celTime(value) ?? value) : value),
};
const BYTES: CelType = {
  name: 'bytes',
  convert: (value) => (typeof value === 'string' ? Buffer.from(value, 'base64') : value),
};
const DURATION: CelType = {
  name: 'google.protobuf.Duration',
  convert: (value) => {
    if (typeof value !== 'string') return value;
    try {
      return parseDuration(value);
    } catch (error) {
      if (error instanceof RangeError) return value;
      throw error;
    }
  },
};

const TEXTS: ReadonlyMap<string, CelType> = new Map([
  ['byte', BYTES],
  ['date', TIME],
  ['date-time', TIME],
  ['datetime', TIME],
  ['duration', DURATION],
]);

/** Words of the language, which no field may be named by. */
const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** A field's name in expressions: "a-b" is a__dash__b; undefined for one that has none. */
export function escapeField(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  const escaped = name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
  return /^[A-Za-z_]\w*$/.test(escaped) ? escaped : undefined;
}

const TEXT: JsonSchema = { type: 'string' };
/** What an entry of an object costs to convert, in units of the budget. */
const ENTRY = 2;
/** What expressions see of an object's head. */
export const HEAD: JsonSchema = {
  type: 'object',
  properties: {
    apiVersion: TEXT,
    kind: TEXT,
    metadata: { type: 'object', properties: { name: TEXT, generateName: TEXT } },
  },
};

function listType(schema: JsonSchema): ListType | undefined {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return { kind: 'set' };
    case 'map':
      return { kind: 'map', keys: (schema['x-kubernetes-list-map-keys'] ?? []).map((key) => escapeField(key) ?? key) };
    default:
      return undefined;
  }
}

export class CelTypes {
  readonly #environment: Environment;
  readonly #readReserved: boolean;
  /** A schema below several rules has one type. */
  readonly #known = new Map<JsonSchema, CelType>();
  readonly #names = new Set<string>();
  #count = 0;

  /** `readReserved`: a field named by a word of the language can be read by that name, too. */
  constructor(environment: Environment, { readReserved = false }: { readonly readReserved?: boolean } = {}) {
    this.#environment = environment;
    this.#readReserved = readReserved;
  }

  /**
   * `root`: the schema of the whole object, or of an embedded one. `name`: the type's in messages, where it is an object;
   * types below it are named by their path.
   */
  typeOf(schema: JsonSchema, root = false, name = `selfType${++this.#count}`): CelType {
    const type = this.#known.get(schema) ?? this.#typeOf(schema, root, name);
    this.#known.set(schema, type);
    return type;
  }

  #typeOf(schema: JsonSchema, root: boolean, name: string): CelType {
    if (schema['x-kubernetes-int-or-string'] === true) return DYN;
    switch (schema.type) {
      case 'boolean':
        return BOOL;
      case 'integer':
        return INT;
      case 'number':
        return DOUBLE;
      case 'string':
        return TEXTS.get(schema.format ?? '') ?? STRING;
      case 'array':
        return this.#list(schema, name);
      case 'object':
        return this.#object(schema, root || schema['x-kubernetes-embedded-resource'] === true, name);
      default:
        return DYN;
    }
  }

  #list(schema: JsonSchema, name: string): CelType {
    const item = schema.items === undefined ? DYN : this.typeOf(schema.items, false, `${name}.${TYPE_MARK}idx`);
    const type = listType(schema);
    const unordered = type !== undefined || item.unordered === true;
    return {
      name: `list<${item.name}>`,
      unordered,
      convert: (value) => {
        if (!Array.isArray(value)) return value;
        charge(1 + value.length);
        const list = value.map((one) => (one === null ? null : item.convert(one)));
        if (unordered) markList(list, type);
        return list;
      },
    };
  }

  #object(schema: JsonSchema, embedded: boolean, name: string): CelType {
    const values = valueSchema(schema);
    if (values !== undefined) return this.#map(this.typeOf(values, false, `${name}.${TYPE_MARK}elem`));
    const fields = embedded
      ? [...properties(HEAD), ...properties(schema).filter(([name]) => getOwn(HEAD.properties, name) === undefined)]
      : properties(schema);
    if (fields.length === 0)
      return schema.additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields'] === true
        ? DYN
        : this.#struct([], name);
    return this.#struct(fields, name);
  }

  #map(item: CelType): CelType {
    return {
      name: `map<string, ${item.name}>`,
      unordered: item.unordered === true,
      convert: (value) => {
        if (!isObject(value)) return value;
        const map: Record<string, unknown> = {};
        const entries = Object.entries(value);
        charge(1 + ENTRY * entries.length);
        for (const [key, one] of entries) setOwn(map, key, one === null ? null : item.convert(one));
        if (item.unordered === true) markContainer(map);
        return map;
      },
    };
  }

  #unique(wanted: string): string {
    let name = wanted;
    while (this.#names.has(name)) name = `${wanted}_${this.#names.size}`;
    this.#names.add(name);
    return name;
  }

  #struct(fields: readonly (readonly [string, JsonSchema])[], wanted: string): CelType {
    const name = this.#unique(wanted);
    class Struct {}
    const types = new Map<string, { readonly escaped: string; readonly type: CelType }>();
    const declared: Record<string, string> = {};
    for (const [field, schema] of fields) {
      const escaped = escapeField(field);
      if (escaped === undefined) continue;
      const type = this.typeOf(schema, false, `${name}.${escaped}`);
      types.set(field, { escaped, type });
      setOwn(declared, escaped, type.name);
      if (this.#readReserved && RESERVED.has(field)) setOwn(declared, field, type.name);
    }
    this.#environment.registerType(name, { ctor: Struct, fields: declared });
    this.#environment.registerOperator(`${name} == ${name}`, celEqual);
    this.#environment.registerOperator(`${name} == null`, celEqual);
    const readsReserved = this.#readReserved;
    const convert = (value: unknown): unknown => {
      if (!isObject(value)) return value;
      const struct: object = new Struct();
      charge(1 + ENTRY * types.size);
      for (const [field, { escaped, type }] of types) {
        const one = getOwn(value, field);
        // A null is as good as absent.
        if (one !== undefined && one !== null) {
          const converted = type.convert(one);
          Object.defineProperty(struct, escaped, { value: converted, enumerable: true });
          // The same value, not another field.
          if (readsReserved && RESERVED.has(field)) Object.defineProperty(struct, field, { value: converted });
        }
      }
      return struct;
    };
    return { name, convert, unordered: [...types.values()].some(({ type }) => type.unordered === true) };
  }
}
