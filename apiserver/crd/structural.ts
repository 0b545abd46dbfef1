// Whether a schema is structural: every field has one type, outside of allOf, anyOf, oneOf and not, and these restrict only what is there
// (k8s.io/apiextensions-apiserver/pkg/apiserver/schema). Messages and their order are the API server's. Pure.

import { RegexError, regex } from '../cel/regex.ts';
import { forbidden, invalid, required } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import { itemSchema, type JsonSchema, properties, valueSchema } from './types.ts';

type Level = 'root' | 'field' | 'item';
const LEVELS: Readonly<Record<Level, string>> = {
  root: 'at the root',
  field: 'for specified object fields',
  item: 'for specified array items',
};
/** What stands outside of allOf, anyOf, oneOf and not alone, and what it must be inside. */
const STRUCTURE_ONLY = [
  ['type', 'empty'],
  ['default', 'undefined'],
  ['title', 'empty'],
  ['description', 'empty'],
  ['nullable', 'false'],
  ['x-kubernetes-preserve-unknown-fields', 'false'],
  ['x-kubernetes-embedded-resource', 'false'],
  ['x-kubernetes-int-or-string', 'false'],
  ['x-kubernetes-list-map-keys', 'empty'],
  ['x-kubernetes-list-type', 'undefined'],
  ['x-kubernetes-map-type', 'undefined'],
  ['x-kubernetes-validations', 'empty'],
] as const;
/** What is not checked in the metadata of the root, where all else is implied. */
const METADATA_MAY = new Set(['type', 'default', 'example', 'externalDocs']);

/** Whether the field has another value than its zero. */
export function isSet(schema: JsonSchema, field: string): boolean {
  const value: unknown = Reflect.get(schema, field);
  if (value === undefined || value === false || value === '' || value === null) return false;
  if (Array.isArray(value)) return value.length > 0;
  return field !== 'properties' || Object.keys(value).length > 0;
}

/** The two types of int-or-string, spelled out. */
function isIntOrString(anyOf: readonly JsonSchema[] = []): boolean {
  const types = anyOf.map((one) => (Object.keys(one).length === 1 ? one.type : undefined));
  return types.length === 2 && types[0] === 'integer' && types[1] === 'string';
}

class Structure {
  readonly errors: FieldError[] = [];

  invariants(schema: JsonSchema, field: string, level: Level): void {
    const items = itemSchema(schema);
    if (schema.type === 'array' && items === undefined)
      this.errors.push(required(`${field}.items`, 'must be specified'));
    if (items !== undefined) this.invariants(items, `${field}.items`, 'item');
    for (const [name, child] of properties(schema)) this.invariants(child, `${field}.properties[${name}]`, 'field');
    const values = valueSchema(schema);
    if (schema.additionalProperties !== undefined && level === 'root') {
      this.errors.push(forbidden(`${field}.additionalProperties`, 'must not be used at the root'));
    }
    if (values !== undefined) this.invariants(values, `${field}.additionalProperties`, 'field');
    this.#extensions(schema, field);
    const [first] = schema.allOf ?? [];
    this.#validations(schema, field, isIntOrString(schema.anyOf), isIntOrString(first?.anyOf));
    this.#type(schema, field, level);
    this.#metadata(schema, field, level);
    const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
    if (isEmbedded && schema['x-kubernetes-preserve-unknown-fields'] !== true && properties(schema).length === 0) {
      const why =
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
      this.errors.push(required(`${field}.properties`, why));
    }
  }

  #extensions(schema: JsonSchema, field: string): void {
    if (schema['x-kubernetes-int-or-string'] !== true) return;
    for (const name of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const) {
      if (schema[name] !== true) continue;
      this.errors.push(invalid(`${field}.${name}`, true, 'must be false if x-kubernetes-int-or-string is true'));
    }
  }

  #type(schema: JsonSchema, field: string, level: Level): void {
    const { type = '' } = schema;
    const at = `${field}.type`;
    if (schema['x-kubernetes-embedded-resource'] === true) {
      const why = 'must be object if x-kubernetes-embedded-resource is true';
      if (type === '') this.errors.push(required(at, why));
      else if (type !== 'object') this.errors.push(invalid(at, type, why));
      if (schema.additionalProperties !== undefined) {
        const place = `${field}.additionalProperties`;
        this.errors.push(forbidden(place, 'must not be used if x-kubernetes-embedded-resource is set'));
      }
    }
    const isAny =
      schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
    if (type === '' && !isAny && schema['x-kubernetes-embedded-resource'] !== true) {
      this.errors.push(required(at, `must not be empty ${LEVELS[level]}`));
    }
    if (level === 'root' && type !== '' && type !== 'object') {
      this.errors.push(invalid(at, type, 'must be object at the root'));
    }
  }

  /** Of the root, and of every resource that is embedded. */
  #metadata(schema: JsonSchema, field: string, level: Level): void {
    const isResource = level === 'root' || schema['x-kubernetes-embedded-resource'] === true;
    if (!isResource) return;
    const names = new Map(properties(schema));
    for (const [name, type] of [
      ['kind', 'string'],
      ['apiVersion', 'string'],
      ['metadata', 'object'],
    ] as const) {
      const child = names.get(name);
      if (child === undefined || child.type === type) continue;
      this.errors.push(invalid(`${field}.properties[${name}].type`, child.type ?? '', `must be ${type}`));
    }
    const metadata = names.get('metadata');
    if (metadata === undefined || level !== 'root') return;
    const isNamed = properties(metadata).every(([name]) => name === 'name' || name === 'generateName');
    const others = Object.keys(metadata).some(
      (name) => !METADATA_MAY.has(name) && !(name === 'properties' && isNamed) && isSet(metadata, name),
    );
    if (!others) return;
    const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    this.errors.push(forbidden(`${field}.properties[metadata]`, why));
  }

  #validations(schema: JsonSchema, field: string, skipsAnyOf: boolean, skipsFirst: boolean): void {
    const { anyOf = [], allOf = [], oneOf = [], not, pattern = '' } = schema;
    if (!skipsAnyOf) for (const [index, one] of anyOf.entries()) this.#nested(one, `${field}.anyOf[${index}]`);
    for (const [index, one] of allOf.entries()) {
      this.#nested(one, `${field}.allOf[${index}]`, skipsFirst && index === 0);
    }
    for (const [index, one] of oneOf.entries()) this.#nested(one, `${field}.oneOf[${index}]`);
    if (not !== undefined) this.#nested(not, `${field}.not`);
    if (pattern === '') return;
    try {
      regex(pattern);
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      const why = `must be a valid regular expression, but isn't: ${error.message}`;
      this.errors.push(invalid(`${field}.pattern`, pattern, why));
    }
  }

  #nested(schema: JsonSchema, field: string, skipsAnyOf = false): void {
    this.#validations(schema, field, skipsAnyOf, false);
    const items = itemSchema(schema);
    if (items !== undefined) this.#nested(items, `${field}.items`);
    for (const [name, child] of properties(schema)) this.#nested(child, `${field}.properties[${name}]`);
    for (const [name, what] of STRUCTURE_ONLY) {
      if (isSet(schema, name)) this.errors.push(forbidden(`${field}.${name}`, `must be ${what} to be structural`));
    }
    if (isSet(schema, 'additionalProperties')) {
      this.errors.push(forbidden(`${field}.additionalProperties`, 'must be undefined to be structural'));
    }
    if (properties(schema).some(([name]) => name === 'metadata')) {
      this.errors.push(forbidden(`${field}.properties[metadata]`, 'must not be specified in a nested context'));
    }
  }

  /** What is restricted has to be there: `outer` at `outside` is the schema that the parts of `inner` restrict. */
  completeness(inner: JsonSchema, outer: JsonSchema, field: string, outside: string): void {
    const parts: readonly (readonly [string, readonly JsonSchema[]])[] = [
      ['allOf', inner.allOf ?? []],
      ['anyOf', inner.anyOf ?? []],
      ['oneOf', inner.oneOf ?? []],
    ];
    for (const [name, schemas] of parts) {
      for (const [index, one] of schemas.entries()) this.#complete(one, outer, `${field}.${name}[${index}]`, outside);
    }
    if (inner.not !== undefined) this.#complete(inner.not, outer, `${field}.not`, outside);
  }

  #complete(schema: JsonSchema, outer: JsonSchema | undefined, field: string, outside: string): void {
    if (outer === undefined) {
      this.errors.push(required(outside, `because it is defined in ${field}`));
      return;
    }
    this.completeness(schema, outer, field, outside);
    const items = itemSchema(schema);
    if (items !== undefined) this.#complete(items, itemSchema(outer), `${field}.items`, `${outside}.items`);
    const names = new Map(properties(outer));
    for (const [name, child] of properties(schema)) {
      const step = `properties[${name}]`;
      this.#complete(child, names.get(name), `${field}.${step}`, `${outside}.${step}`);
    }
  }
}

/** Sorted as upstream, by place and message. */
export function validateStructural(schema: JsonSchema, field: string): FieldError[] {
  const structure = new Structure();
  structure.invariants(schema, field, 'root');
  structure.completeness(schema, schema, field, field);
  const text = (error: FieldError): string => `${error.field}: ${error.detail}`;
  return structure.errors.toSorted((a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0));
}
