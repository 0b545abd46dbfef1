// What a schema may have beside being structural: keywords, list and map types, and what rules need beside their expressions
// (ValidateCustomResourceDefinitionOpenAPISchema of k8s.io/apiextensions-apiserver). Messages and their order are the API server's;
// fields, which upstream goes through in any order, are in that of their names. Pure.

import { duplicate, forbidden, invalid, notSupported, required } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import { FieldPathError, fieldAt } from './field-path.ts';
import { isSet } from './structural.ts';
import { itemSchema, type JsonSchema, properties, type ValidationRule, valueSchema } from './types.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
/** Keywords of JSON Schema that no definition may have. */
const UNSUPPORTED = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'];
const META_FIELDS: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);
const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const MAX_KEY_ERRORS = 20;
const LINE_BREAK = /[\n\r]/;

interface Place {
  readonly isRoot: boolean;
  /** Inside of the head of an object. */
  readonly isInMeta: boolean;
  /** Why there may be no default. */
  readonly noDefaults: string | undefined;
  /** Paths of rules lead through structural schemas alone. */
  readonly hasPaths: boolean;
}

/** Whether the schema has nothing that a structural one has no place for. */
export function isConvertible(schema: JsonSchema): boolean {
  if (UNSUPPORTED.some((name) => isSet(schema, name)) || Array.isArray(schema.items)) return false;
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) return false;
  return children(schema).every(isConvertible);
}

/** All schemas in a schema, at any place. */
export function children(schema: JsonSchema): JsonSchema[] {
  const { allOf = [], anyOf = [], oneOf = [], not } = schema;
  const single = [valueSchema(schema), itemSchema(schema), not].filter((one) => one !== undefined);
  return [...properties(schema).map(([, child]) => child), ...single, ...allOf, ...anyOf, ...oneOf];
}

export function validateOpenApi(schema: JsonSchema, field: string): FieldError[] {
  const errors: FieldError[] = [];
  check(
    schema,
    field,
    { isRoot: true, isInMeta: false, noDefaults: undefined, hasPaths: isConvertible(schema) },
    errors,
  );
  return errors;
}

function check(schema: JsonSchema, field: string, place: Place, errors: FieldError[]): void {
  keywords(schema, field, place, errors);
  const below: Place = { ...place, isRoot: false };
  const { additionalProperties, not, allOf = [], oneOf = [], anyOf = [] } = schema;
  const values = valueSchema(schema);
  if (additionalProperties !== undefined && additionalProperties !== true && properties(schema).length > 0) {
    const why = 'additionalProperties and properties are mutual exclusive';
    errors.push(forbidden(`${field}.additionalProperties`, why));
  }
  if (values !== undefined) {
    const inside = 'inside additionalProperties applying to object metadata';
    const there = place.isInMeta ? { ...below, noDefaults: inside } : below;
    check(values, `${field}.additionalProperties`, there, errors);
  }
  const isResource = place.isRoot || schema['x-kubernetes-embedded-resource'] === true;
  for (const [name, child] of properties(schema).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const isMeta = isResource && META_FIELDS.has(name);
    check(child, `${field}.properties[${name}]`, isMeta ? metaPlace(name, place) : below, errors);
  }
  if (not !== undefined) check(not, `${field}.not`, below, errors);
  for (const [index, one] of allOf.entries()) check(one, `${field}.allOf[${index}]`, below, errors);
  for (const [index, one] of oneOf.entries()) check(one, `${field}.oneOf[${index}]`, below, errors);
  for (const [index, one] of anyOf.entries()) check(one, `${field}.anyOf[${index}]`, below, errors);
  const items = itemSchema(schema);
  if (items !== undefined) check(items, `${field}.items`, below, errors);
  mapType(schema, field, errors);
  listType(schema, field, errors);
  listMap(schema, field, errors);
  keysOfItems(schema, field, errors);
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    checkRule(rule, place.hasPaths ? schema : undefined, `${field}.x-kubernetes-validations[${index}]`, errors);
  }
}

function metaPlace(name: string, { isRoot, noDefaults, hasPaths }: Place): Place {
  return { hasPaths, isRoot: false, isInMeta: true, noDefaults: isRoot ? `in top-level ${name}` : noDefaults };
}

function keywords(schema: JsonSchema, field: string, place: Place, errors: FieldError[]): void {
  const { type = '' } = schema;
  if (type !== '' && !TYPES.includes(type)) errors.push(notSupported(`${field}.type`, type, TYPES));
  if (schema.default !== undefined && place.noDefaults !== undefined) {
    errors.push(forbidden(`${field}.default`, `must not be set ${place.noDefaults}`));
  }
  for (const name of UNSUPPORTED) {
    if (isSet(schema, name)) errors.push(forbidden(`${field}.${name}`, `${name} is not supported`));
  }
  if (type === 'null') {
    errors.push(forbidden(`${field}.type`, 'type cannot be set to null, use nullable as an alternative'));
  }
  if (Array.isArray(schema.items)) {
    errors.push(forbidden(`${field}.items`, 'items must be a schema object and not an array'));
  }
  if (place.isInMeta && schema['x-kubernetes-embedded-resource'] === true) {
    errors.push(forbidden(`${field}.x-kubernetes-embedded-resource`, 'must not be used inside of resource meta'));
  }
  if (schema.uniqueItems === true) {
    const why = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push(forbidden(`${field}.uniqueItems`, why));
  }
}

function mapType(schema: JsonSchema, field: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalid(`${field}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
  }
  const named = schema['x-kubernetes-map-type'];
  if (named === undefined) return;
  ofType(schema, field, 'object', 'x-kubernetes-map-type', errors);
  if (named !== 'granular' && named !== 'atomic') {
    errors.push(notSupported(`${field}.x-kubernetes-map-type`, named, ['atomic', 'granular']));
  }
}

function ofType({ type = '' }: JsonSchema, field: string, wanted: string, by: string, errors: FieldError[]): void {
  const why = `must be ${wanted} if ${by} is specified`;
  if (type === '') errors.push(required(`${field}.type`, why));
  else if (type !== wanted) errors.push(invalid(`${field}.type`, type, why));
}

function listType(schema: JsonSchema, field: string, errors: FieldError[]): void {
  const named = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const items = itemSchema(schema);
  if (named !== undefined && schema.type !== 'array') {
    ofType(schema, field, 'array', 'x-kubernetes-list-type', errors);
  } else if (named === 'set' && items !== undefined) {
    const inner = items['x-kubernetes-list-type'];
    const why = 'must be atomic as item of a list with x-kubernetes-list-type=set';
    if (items.type === 'array' && inner !== undefined && inner !== 'atomic') {
      errors.push(invalid(`${field}.items.x-kubernetes-list-type`, inner, why));
    } else if (items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
      errors.push(invalid(`${field}.items.x-kubernetes-map-type`, inner ?? null, why));
    }
  }
  if (named !== undefined && !['atomic', 'set', 'map'].includes(named)) {
    errors.push(notSupported(`${field}.x-kubernetes-list-type`, named, ['atomic', 'set', 'map']));
  }
  if (keys.length === 0 || named === 'map') return;
  const why = 'must be map if x-kubernetes-list-map-keys is non-empty';
  if (named === undefined) errors.push(required(`${field}.x-kubernetes-list-type`, why));
  else errors.push(invalid(`${field}.x-kubernetes-list-type`, named, why));
}

function listMap(schema: JsonSchema, field: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-list-type'] !== 'map') return;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const at = `${field}.x-kubernetes-list-map-keys`;
  const items = itemSchema(schema);
  if (keys.length === 0) errors.push(required(at, 'must not be empty if x-kubernetes-list-type is map'));
  if (items === undefined) {
    const why = 'must have a schema if x-kubernetes-list-type is map';
    if (schema.items === undefined) errors.push(required(`${field}.items`, why));
    return;
  }
  if (items.type !== 'object') {
    const why = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalid(`${field}.items.type`, items.type ?? '', why));
    return;
  }
  const names = new Map(properties(items));
  const seen = new Set<string>();
  const before = errors.length;
  for (const key of keys) {
    // Each error shows the whole list.
    if (errors.length - before >= MAX_KEY_ERRORS) break;
    const child = names.get(key);
    if (child === undefined) errors.push(invalid(at, keys, 'entries must all be names of item properties'));
    else if (child.type === 'array' || child.type === 'object') {
      const why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalid(`${field}.items.properties[${key}].type`, items.type, why));
    }
    if (seen.has(key)) errors.push(invalid(at, keys, 'must not contain duplicate entries'));
    seen.add(key);
  }
}

/** Items of sets and maps are there, and so are their keys. */
function keysOfItems(schema: JsonSchema, field: string, errors: FieldError[]): void {
  const named = schema['x-kubernetes-list-type'];
  const items = itemSchema(schema);
  if (items === undefined || (named !== 'set' && named !== 'map')) return;
  if (items.nullable === true) {
    errors.push(forbidden(`${field}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${named}`));
  }
  if (named === 'set') return;
  const names = new Map(properties(items));
  const needed = new Set(items.required);
  for (const key of schema['x-kubernetes-list-map-keys'] ?? []) {
    const child = names.get(key);
    if (child === undefined) continue;
    const at = `${field}.items.properties[${key}]`;
    const why = 'this property is in x-kubernetes-list-map-keys, so it';
    if (!needed.has(key) && child.default === undefined) {
      errors.push(required(`${at}.default`, `${why} must have a default or be a required property`));
    }
    if (child.nullable === true) errors.push(forbidden(`${at}.nullable`, `${why} cannot be nullable`));
  }
}

/** `schema` is what the rule's path leads through. */
function checkRule(given: ValidationRule, schema: JsonSchema | undefined, field: string, errors: FieldError[]): void {
  const { rule = '', message = '', messageExpression = '', reason, fieldPath = '' } = given;
  const trimmed = message.trim();
  if (rule.trim() === '') errors.push(required(`${field}.rule`, 'rule is not specified'));
  else if (message !== '' && trimmed === '') {
    errors.push(invalid(`${field}.message`, message, 'must be non-empty if specified'));
  } else if (LINE_BREAK.test(trimmed)) {
    errors.push(invalid(`${field}.message`, message, 'must not contain line breaks'));
  } else if (LINE_BREAK.test(rule.trim()) && trimmed === '') {
    errors.push(required(`${field}.message`, 'message must be specified if rule contains line breaks'));
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(required(`${field}.messageExpression`, 'messageExpression must be non-empty if specified'));
  }
  if (reason !== undefined && !REASONS.includes(reason)) {
    errors.push(notSupported(`${field}.reason`, reason, REASONS));
  }
  if (fieldPath === '') return;
  const at = `${field}.fieldPath`;
  if (fieldPath.trim() === '') errors.push(invalid(at, fieldPath, 'must be non-empty if specified'));
  if (LINE_BREAK.test(fieldPath)) errors.push(invalid(at, fieldPath, 'must not contain line breaks'));
  if (schema !== undefined && !leadsToField(fieldPath, schema)) {
    errors.push(invalid(at, fieldPath, 'must be a valid path'));
  }
}

function leadsToField(path: string, schema: JsonSchema): boolean {
  try {
    fieldAt(path, schema, { brackets: true });
    return true;
  } catch (error) {
    if (error instanceof FieldPathError) return false;
    throw error;
  }
}

const MAX_SELECTABLE = 8;

/** The selectable fields of a version, below `field`. */
export function validateSelectable(
  selectable: readonly { readonly jsonPath?: string }[],
  schema: JsonSchema,
  field: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, { jsonPath = '' }] of selectable.entries()) {
    const at = `${field}[${index}].jsonPath`;
    if (jsonPath === '') {
      errors.push(required(at));
      continue;
    }
    try {
      const found = fieldAt(jsonPath, schema, { brackets: false });
      if (found.names[0] === 'metadata') errors.push(invalid(at, jsonPath, 'must not point to fields in metadata'));
      if (!['boolean', 'integer', 'string'].includes(found.schema.type ?? '')) {
        const why =
          'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
        errors.push(invalid(at, jsonPath, why));
      }
      const name = JSON.stringify(found.names);
      if (seen.has(name)) errors.push(duplicate(at, jsonPath));
      seen.add(name);
    } catch (error) {
      if (!(error instanceof FieldPathError)) throw error;
      errors.push(invalid(at, jsonPath, `is an invalid path: ${error.message}`));
    }
  }
  if (seen.size > MAX_SELECTABLE) {
    const detail = `Too many: ${seen.size}: must have at most ${MAX_SELECTABLE} items`;
    errors.push({ type: 'FieldValueTooMany', field, detail });
  }
  return errors;
}
