// Which schemas a definition may have: structural ones, where every field has one type, and nothing that the API server cannot
// validate in linear time. Messages are the API server's.

import { RegexError, regex } from '../cel/regex.ts';
import { addErrors, forbidden, invalid, notSupported, required } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import { applyDefaults, prune } from './prune.ts';
import { expensiveRules, expensiveSchema } from './rule-costs.ts';
import { rulesOf } from './rules.ts';
import { type JsonSchema, properties, valueSchema } from './types.ts';
import { validateValue } from './validate.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
/** Keywords of JSON Schema that no definition may have. */
const UNSUPPORTED: readonly (readonly [string, string])[] = [
  ['$ref', '$ref is not supported'],
  ['definitions', 'definitions is not supported'],
  ['dependencies', 'dependencies is not supported'],
  ['patternProperties', 'patternProperties is not supported'],
  ['additionalItems', 'additionalItems is not supported'],
  ['id', 'id is not supported'],
];
/** What stands outside of allOf, anyOf, oneOf and not alone. */
const STRUCTURE_ONLY = [
  'type',
  'title',
  'description',
  'default',
  'nullable',
  'additionalProperties',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
] as const;
/** Schemas of one definition, and how deep: above, validation of objects would take too long. */
const MAX_SCHEMAS = 20_000;
/** Each is compiled in the event loop. */
const MAX_RULES = 500;

type Level = 'root' | 'field' | 'item';
const LEVELS: Readonly<Record<Level, string>> = {
  root: 'at the root',
  field: 'for specified object fields',
  item: 'for specified array items',
};

function isSet(schema: JsonSchema, field: string): boolean {
  const value: unknown = Reflect.get(schema, field);
  return value !== undefined && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0);
}

class SchemaValidator {
  readonly errors: FieldError[] = [];
  #count = 0;
  #rules = 0;

  #add(...errors: readonly FieldError[]): void {
    addErrors(this.errors, errors);
  }

  structural(schema: JsonSchema, field: string, level: Level): void {
    if (++this.#count > MAX_SCHEMAS) return;
    this.#type(schema, field, level);
    this.#keywords(schema, field);
    this.#extensions(schema, field);
    this.#lists(schema, field);
    for (const [name, child] of properties(schema)) this.structural(child, `${field}.properties[${name}]`, 'field');
    const values = valueSchema(schema);
    if (values !== undefined) this.structural(values, `${field}.additionalProperties`, 'field');
    if (schema.items !== undefined) this.structural(schema.items, `${field}.items`, 'item');
    else if (schema.type === 'array') this.#add(required(`${field}.items`, 'must be specified'));
    this.#composed(schema, schema, field, field);
    if (level === 'root') this.#metadata(schema, field);
  }

  #type({ type = '', ...schema }: JsonSchema, field: string, level: Level): void {
    const intOrString = schema['x-kubernetes-int-or-string'] === true;
    const preserves = schema['x-kubernetes-preserve-unknown-fields'] === true;
    const at = `${field}.type`;
    if (intOrString && type !== '') this.#add(invalid(at, type, 'must be empty if x-kubernetes-int-or-string is true'));
    else if (type === '' && !intOrString && !preserves) this.#add(required(at, `must not be empty ${LEVELS[level]}`));
    else if (type === 'null') this.#add(forbidden(at, 'type cannot be set to null, use nullable as an alternative'));
    else if (type !== '' && !TYPES.includes(type)) this.#add(notSupported(at, type, TYPES));
    if (level === 'root' && type !== 'object' && type !== '') {
      this.#add(invalid(at, type, 'must be object at the root'));
    }
  }

  #keywords(schema: JsonSchema, field: string): void {
    for (const [name, message] of UNSUPPORTED)
      if (isSet(schema, name)) this.#add(forbidden(`${field}.${name}`, message));
    if (schema.uniqueItems === true) {
      const why = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
      this.#add(forbidden(`${field}.uniqueItems`, why));
    }
    const { additionalProperties } = schema;
    if (additionalProperties === false) {
      this.#add(forbidden(`${field}.additionalProperties`, 'additionalProperties cannot be set to false'));
    } else if (additionalProperties !== undefined && properties(schema).length > 0) {
      const why = 'additionalProperties and properties are mutual exclusive';
      this.#add(forbidden(`${field}.additionalProperties`, why));
    }
    this.#pattern(schema, field);
  }

  #pattern({ pattern }: JsonSchema, field: string): void {
    if (pattern === undefined) return;
    try {
      regex(pattern);
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      this.#add(
        invalid(`${field}.pattern`, pattern, `must be a valid regular expression, but isn't: ${error.message}`),
      );
    }
  }

  #extensions(schema: JsonSchema, field: string): void {
    const { type } = schema;
    if (schema['x-kubernetes-preserve-unknown-fields'] === true && type !== 'object' && type !== undefined) {
      this.#add(invalid(`${field}.type`, type, 'must be object if x-kubernetes-preserve-unknown-fields is true'));
    }
    if (schema['x-kubernetes-embedded-resource'] === true) {
      if (type !== 'object') {
        this.#add(invalid(`${field}.type`, type ?? '', 'must be object if x-kubernetes-embedded-resource is true'));
      }
      if (schema['x-kubernetes-preserve-unknown-fields'] !== true && properties(schema).length === 0) {
        const why =
          'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
        this.#add(required(`${field}.properties`, why));
      }
    }
    const mapType = schema['x-kubernetes-map-type'];
    if (mapType !== undefined) {
      if (type !== 'object') {
        this.#add(invalid(`${field}.type`, type ?? '', 'must be object if x-kubernetes-map-type is specified'));
      }
      if (mapType !== 'granular' && mapType !== 'atomic') {
        this.#add(notSupported(`${field}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']));
      }
    }
    for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
      this.#rules++;
      const at = `${field}.x-kubernetes-validations[${index}]`;
      if ((rule.rule ?? '').trim() === '') this.#add(required(`${at}.rule`, 'rule is not specified'));
      if (rule.message?.includes('\n')) {
        this.#add(invalid(`${at}.message`, rule.message, 'message must not contain line breaks'));
      } else if ((rule.rule ?? '').includes('\n') && rule.message === undefined) {
        this.#add(required(`${at}.message`, 'message must be specified if rule contains line breaks'));
      }
      const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
      if (rule.reason !== undefined && !reasons.includes(rule.reason)) {
        this.#add(notSupported(`${at}.reason`, rule.reason, reasons));
      }
    }
  }

  #lists(schema: JsonSchema, field: string): void {
    const listType = schema['x-kubernetes-list-type'];
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    const at = `${field}.x-kubernetes-list-map-keys`;
    if (listType !== undefined && schema.type !== 'array') {
      this.#add(invalid(`${field}.type`, schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'));
    }
    if (listType !== undefined && !['atomic', 'map', 'set'].includes(listType)) {
      this.#add(notSupported(`${field}.x-kubernetes-list-type`, listType, ['atomic', 'map', 'set']));
    }
    if (keys.length > 0 && listType !== 'map') {
      const why = 'must be map if x-kubernetes-list-map-keys is non-empty';
      if (listType === undefined) this.#add(required(`${field}.x-kubernetes-list-type`, why));
      else this.#add(invalid(`${field}.x-kubernetes-list-type`, listType, why));
    }
    const { items } = schema;
    if (listType !== 'map' || items === undefined) return;
    if (keys.length === 0) this.#add(required(at, 'must not be empty if x-kubernetes-list-type is map'));
    if (items.type !== 'object') {
      this.#add(
        invalid(
          `${field}.items.type`,
          items.type ?? '',
          "must be object if parent array's x-kubernetes-list-type is map",
        ),
      );
    }
    const names = new Map(properties(items));
    for (const [index, key] of keys.entries()) {
      const child = names.get(key);
      if (child === undefined)
        this.#add(invalid(`${at}[${index}]`, key, 'entries must all be names of item properties'));
      else if (child.default === undefined && items.required?.includes(key) !== true) {
        const why =
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
        this.#add(required(`${field}.items.properties[${key}].default`, why));
      }
    }
  }

  /** Below allOf, anyOf, oneOf and not: values may be restricted, but no fields be made. */
  #composed(inner: JsonSchema, outer: JsonSchema | undefined, field: string, outside: string): void {
    const parts: readonly (readonly [string, readonly JsonSchema[]])[] = [
      ['allOf', inner.allOf ?? []],
      ['anyOf', inner.anyOf ?? []],
      ['oneOf', inner.oneOf ?? []],
    ];
    for (const [name, schemas] of parts) {
      for (const [index, one] of schemas.entries()) this.#nested(one, outer, `${field}.${name}[${index}]`, outside);
    }
    if (inner.not !== undefined) this.#nested(inner.not, outer, `${field}.not`, outside);
  }

  #nested(schema: JsonSchema, outer: JsonSchema | undefined, field: string, outside: string): void {
    if (++this.#count > MAX_SCHEMAS) return;
    const intOrString = outer?.['x-kubernetes-int-or-string'] === true;
    for (const name of STRUCTURE_ONLY) {
      // The two types of int-or-string may be named here.
      if (isSet(schema, name) && !(name === 'type' && intOrString)) {
        this.#add(forbidden(`${field}.${name}`, 'must be empty to be structural'));
      }
    }
    this.#pattern(schema, field);
    const names = new Map(outer === undefined ? [] : properties(outer));
    for (const [name, child] of properties(schema)) {
      const known = names.get(name);
      const preserves = outer?.['x-kubernetes-preserve-unknown-fields'] === true;
      if (known === undefined && !preserves) {
        this.#add(required(`${outside}.properties[${name}]`, `because it is defined in ${field}.properties[${name}]`));
      } else this.#nested(child, known, `${field}.properties[${name}]`, `${outside}.properties[${name}]`);
    }
    if (schema.items !== undefined) {
      if (outer?.items === undefined)
        this.#add(required(`${outside}.items`, `because it is defined in ${field}.items`));
      else this.#nested(schema.items, outer.items, `${field}.items`, `${outside}.items`);
    }
    this.#composed(schema, outer, field, outside);
  }

  #metadata(schema: JsonSchema, field: string): void {
    const metadata = new Map(properties(schema)).get('metadata');
    if (metadata === undefined) return;
    const at = `${field}.properties[metadata]`;
    const others = properties(metadata).some(([name]) => name !== 'name' && name !== 'generateName');
    if (others || metadata.additionalProperties !== undefined || metadata.default !== undefined) {
      const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
      this.#add(forbidden(at, why));
    }
    if (metadata.type !== 'object') this.#add(invalid(`${at}.type`, metadata.type ?? '', 'must be object'));
  }

  /** Each default must be a value that the schema leaves as it is. */
  defaults(schema: JsonSchema, field: string): void {
    if (schema.default !== undefined) {
      const value = structuredClone(schema.default);
      const at = `${field}.default`;
      const unknown: string[] = [];
      // As a part of an object: only the root of one has a head of its own.
      prune({ value }, { type: 'object', properties: { value: schema } }, { unknown: (path) => unknown.push(path) });
      if (unknown.length > 0) this.#add(invalid(at, schema.default, 'must not have unknown fields'));
      applyDefaults(value, schema);
      for (const { error } of validateValue(value, schema, [at])) this.#add(error);
    }
    for (const [name, child] of properties(schema)) this.defaults(child, `${field}.properties[${name}]`);
    const values = valueSchema(schema);
    if (values !== undefined) this.defaults(values, `${field}.additionalProperties`);
    if (schema.items !== undefined) this.defaults(schema.items, `${field}.items`);
  }

  /** Throws Pending where the rules are too many to be compiled in one turn. */
  rules(schema: JsonSchema, field: string, isUnchanged: boolean): void {
    if (this.#rules > MAX_RULES) {
      this.#add(forbidden(field, `more than ${MAX_RULES} validation rules`));
      return;
    }
    const { errors, costs } = rulesOf(schema);
    if (!isUnchanged) this.#add(...expensiveRules(costs, field));
    for (const error of errors) this.#add(invalid(`${field}${error.field}`, error.value, error.detail));
    this.#add(...expensiveSchema(costs, field));
  }

  get isTooLarge(): boolean {
    return this.#count > MAX_SCHEMAS;
  }
}

/**
 * What is wrong with the schema of a version; `field` is where it stands. `isUnchanged`: it is stored already, and what its single
 * rules cost was accepted then. Throws Pending.
 */
export function validateSchema(schema: JsonSchema, field: string, isUnchanged = false): FieldError[] {
  const validator = new SchemaValidator();
  validator.structural(schema, field, 'root');
  if (validator.isTooLarge) return [forbidden(field, `more than ${MAX_SCHEMAS} schemas`)];
  if (validator.errors.length === 0) validator.defaults(schema, field);
  if (validator.errors.length === 0) validator.rules(schema, field, isUnchanged);
  return validator.errors;
}
