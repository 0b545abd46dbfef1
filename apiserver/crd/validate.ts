// Values against a schema, in the API server's words: `spec.replicas in body should be less than or equal to 10`. Errors carry
// their path in steps, so that an update can pass over what it leaves as it was.

import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { CelBudget, charge, onBudget } from '../cel/budget.ts';
import { regexTest } from '../cel/regex.ts';
import { duplicate, invalid, notSupported, required, tooLong, tooMany } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import { isObject, type JsonObject, jsonIdentity } from '../patch/json-value.ts';
import { formatCheck } from './formats.ts';
import { type JsonSchema, properties, valueSchema } from './types.ts';

interface MapKey {
  readonly key: string;
}

/** Field names, indexes and keys of maps. */
export type Steps = readonly (string | number | MapKey)[];

export interface PlacedError {
  readonly steps: Steps;
  readonly error: FieldError;
}

/** All names are joined by points, as what reads an OpenAPI schema does it upstream. */
export function pathText(steps: Steps): string {
  return keyedPathText(steps.map((step) => (typeof step === 'object' ? step.key : step)));
}

/** Keys of maps stand in brackets, as in what upstream says of rules and of duplicates in lists. */
export function keyedPathText(steps: Steps): string {
  let text = '';
  for (const step of steps) {
    if (typeof step === 'object') text += `[${step.key}]`;
    else if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

/** Enough for a report; a client's list may have a million wrong items. */
const MAX_ERRORS = 100;

class Validator {
  readonly errors: PlacedError[] = [];

  get isFull(): boolean {
    return this.errors.length >= MAX_ERRORS;
  }

  #add(steps: Steps, make: (field: string) => FieldError): void {
    if (!this.isFull) this.errors.push({ steps, error: make(pathText(steps) || '<nil>') });
  }

  #wrong(steps: Steps, value: unknown, rule: string): void {
    this.#add(steps, (field) => invalid(field, value, `${pathText(steps)} in body ${rule}`));
  }

  check(value: unknown, schema: JsonSchema, steps: Steps): void {
    if (this.isFull || value === undefined) return;
    if (value === null && schema.nullable === true) return;
    if (!this.#type(value, schema, steps)) return;
    this.#enum(value, schema, steps);
    if (typeof value === 'string') this.#text(value, schema, steps);
    else if (typeof value === 'number') this.#number(value, schema, steps);
    else if (Array.isArray(value)) this.#list(value, schema, steps);
    else if (isObject(value)) this.#object(value, schema, steps);
    this.#composed(value, schema, steps);
  }

  #type(value: unknown, schema: JsonSchema, steps: Steps): boolean {
    const is = typeName(value);
    const wanted = schema['x-kubernetes-int-or-string'] === true ? ['integer', 'string'] : [schema.type ?? ''];
    if (wanted[0] === '' || wanted.includes(is) || (is === 'integer' && wanted.includes('number'))) return true;
    this.#add(steps, (field) => ({
      type: 'FieldValueTypeInvalid',
      field,
      detail: `Invalid value: ${JSON.stringify(is)}: ${pathText(steps)} in body must be of type ${wanted.join(',')}: ${JSON.stringify(is)}`,
    }));
    return false;
  }

  #enum(value: unknown, schema: JsonSchema, steps: Steps): void {
    const { enum: allowed } = schema;
    if (allowed === undefined || allowed.some((one) => sameJson(one, value))) return;
    const shown = allowed.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
    this.#add(steps, (field) => notSupported(field, value, shown));
  }

  #text(value: string, schema: JsonSchema, steps: Steps): void {
    const { minLength, maxLength, pattern, format } = schema;
    const length = maxLength === undefined && minLength === undefined ? 0 : [...value].length;
    if (maxLength !== undefined && length > maxLength) {
      this.#add(steps, (field) => tooLong(field, maxLength));
      return;
    }
    if (minLength !== undefined && length < minLength) {
      this.#wrong(steps, value, `should be at least ${minLength} chars long`);
    }
    if (pattern !== undefined && !regexTest(pattern, value)) this.#wrong(steps, value, `should match '${pattern}'`);
    if (format !== undefined && formatCheck(format)?.(value) === false) {
      this.#wrong(steps, value, `must be of type ${format}: ${JSON.stringify(value)}`);
    }
  }

  #number(value: number, schema: JsonSchema, steps: Steps): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    if (maximum !== undefined && (exclusiveMaximum === true ? value >= maximum : value > maximum)) {
      this.#wrong(steps, value, `should be less than ${exclusiveMaximum === true ? '' : 'or equal to '}${maximum}`);
    }
    if (minimum !== undefined && (exclusiveMinimum === true ? value <= minimum : value < minimum)) {
      this.#wrong(steps, value, `should be greater than ${exclusiveMinimum === true ? '' : 'or equal to '}${minimum}`);
    }
    if (multipleOf !== undefined && multipleOf !== 0 && !Number.isInteger(value / multipleOf)) {
      this.#wrong(steps, value, `should be a multiple of ${multipleOf}`);
    }
    if (schema.format === 'int32' && Math.abs(value) > 2 ** 31) {
      this.#wrong(steps, value, `should be between -2147483648 and 2147483647`);
    }
  }

  #list(value: readonly unknown[], schema: JsonSchema, steps: Steps): void {
    const { minItems, maxItems, items } = schema;
    if (maxItems !== undefined && value.length > maxItems) {
      this.#add(steps, (field) => tooMany(field, value.length, maxItems));
      return;
    }
    if (minItems !== undefined && value.length < minItems) {
      this.#wrong(steps, value.length, `should have at least ${minItems} items`);
    }
    if (items !== undefined) for (const [index, item] of value.entries()) this.check(item, items, [...steps, index]);
    this.#unique(value, schema, steps);
  }

  #unique(value: readonly unknown[], schema: JsonSchema, steps: Steps): void {
    const type = schema['x-kubernetes-list-type'];
    if (type !== 'set' && type !== 'map') return;
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    const seen = new Set<string>();
    for (const [index, item] of value.entries()) {
      const key = type === 'set' ? item : keysOf(item, keys, schema.items);
      const identity = jsonIdentity(key);
      if (seen.has(identity)) {
        const place = [...steps, index];
        this.#add(place, () => duplicateOf(keyedPathText(place), key));
      }
      seen.add(identity);
    }
  }

  #object(value: JsonObject, schema: JsonSchema, steps: Steps): void {
    const { minProperties, maxProperties } = schema;
    const size = minProperties === undefined && maxProperties === undefined ? 0 : Object.keys(value).length;
    if (maxProperties !== undefined && size > maxProperties) {
      this.#add(steps, (field) => tooMany(field, size, maxProperties));
      return;
    }
    if (minProperties !== undefined && size < minProperties) {
      this.#wrong(steps, size, `should have at least ${minProperties} properties`);
    }
    for (const name of schema.required ?? []) {
      if (!Object.hasOwn(value, name)) this.#add([...steps, name], (field) => required(field));
    }
    for (const [name, child] of properties(schema)) this.check(getOwn(value, name), child, [...steps, name]);
    const values = valueSchema(schema);
    if (values !== undefined) {
      for (const [key, child] of Object.entries(value)) {
        if (getOwn(schema.properties, key) === undefined) this.check(child, values, [...steps, { key }]);
      }
    }
    if (schema['x-kubernetes-embedded-resource'] === true) this.#embedded(value, steps);
  }

  #embedded(value: JsonObject, steps: Steps): void {
    for (const name of ['apiVersion', 'kind']) {
      const text = getOwn(value, name);
      if (text === undefined || text === '')
        this.#add([...steps, name], (field) => required(field, 'must not be empty'));
    }
  }

  /** Each alternative is checked once: schemas may be nested, and twice at each level would be exponential. */
  #composed(value: unknown, schema: JsonSchema, steps: Steps): void {
    const { allOf = [], anyOf = [], oneOf = [], not } = schema;
    const path = JSON.stringify(pathText(steps));
    const fails = (rule: string): void => this.#add(steps, (field) => invalid(field, '', `${path} must ${rule}`));
    const [any, one, all] = [anyOf, oneOf, allOf].map((list) => list.map((inner) => errorsOf(value, inner, steps)));
    if (any !== undefined && any.length > 0 && any.every((errors) => errors.length > 0)) {
      fails('validate at least one schema (anyOf)');
      this.#addAll(fewest(any));
    }
    if (one !== undefined && one.length > 0) {
      const count = one.filter((errors) => errors.length === 0).length;
      const found = count === 0 ? 'Found none valid' : `Found ${count} valid alternatives`;
      if (count !== 1) fails(`validate one and only one schema (oneOf). ${found}`);
      if (count === 0) this.#addAll(fewest(one));
    }
    if (all?.some((errors) => errors.length > 0)) {
      const partly = all.some((errors) => errors.length === 0) ? '' : '. None validated';
      fails(`validate all the schemas (allOf)${partly}`);
      for (const errors of all) this.#addAll(errors);
    }
    if (not !== undefined && errorsOf(value, not, steps).length === 0) fails('not validate the schema (not)');
  }

  #addAll(errors: readonly PlacedError[]): void {
    for (const { steps, error } of errors) this.#add(steps, () => error);
  }
}

/** On the budget: a value with many parts may meet many alternatives. */
function errorsOf(value: unknown, schema: JsonSchema, steps: Steps): readonly PlacedError[] {
  charge(1);
  const inner = new Validator();
  inner.check(value, schema, steps);
  return inner.errors;
}

/** Of the alternative that came furthest. */
function fewest(alternatives: readonly (readonly PlacedError[])[]): readonly PlacedError[] {
  return alternatives.reduce((best, errors) => (errors.length < best.length ? errors : best));
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'object' ? 'object' : typeof value;
}

function keysOf(item: unknown, keys: readonly string[], schema: JsonSchema | undefined): JsonObject {
  const object = isObject(item) ? item : {};
  return Object.fromEntries(keys.map((key) => [key, getOwn(object, key) ?? getOwn(schema?.properties, key)?.default]));
}

/** A map as Go prints it. */
function duplicateOf(field: string, value: unknown): FieldError {
  if (!isObject(value)) return duplicate(field, value);
  const entries = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${JSON.stringify(each)}`);
  return {
    type: 'FieldValueDuplicate',
    field,
    detail: `Duplicate value: map[string]interface {}{${entries.join(', ')}}`,
  };
}

/** Errors of `value` by the schema. Patterns and alternatives run on a budget: a value that uses it up is an error of its own. */
export function validateValue(value: unknown, schema: JsonSchema, steps: Steps = []): PlacedError[] {
  const validator = new Validator();
  const budget = new CelBudget();
  try {
    onBudget(budget, () => validator.check(value, schema, steps));
  } catch (error) {
    if (!budget.exceeded) throw error;
    const text =
      'the patterns and alternatives of the schema cannot be checked with this much within the limits of time';
    validator.errors.push({ steps, error: invalid(pathText(steps) || '<nil>', '', text) });
  }
  return validator.errors;
}

/**
 * Of the errors of an update those that it has made: what was as wrong before is passed over (validation ratcheting). Items of
 * a list are matched by the list’s keys; any other list is one value.
 */
export function newErrors(
  errors: readonly PlacedError[],
  object: unknown,
  old: unknown,
  schema: JsonSchema,
): FieldError[] {
  return errors.filter(({ steps }) => !isUnchanged(object, old, schema, steps)).map(({ error }) => error);
}

function isUnchanged(object: unknown, old: unknown, schema: JsonSchema | undefined, steps: Steps): boolean {
  const [step, ...more] = steps;
  if (step === undefined) return sameJson(object, old);
  if (typeof step === 'number') {
    if (!Array.isArray(object) || !Array.isArray(old) || schema?.['x-kubernetes-list-type'] !== 'map') {
      return sameJson(object, old);
    }
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    const key = keysOf(object[step], keys, schema.items);
    const before = old.find((item) => sameJson(keysOf(item, keys, schema.items), key));
    return before !== undefined && isUnchanged(object[step], before, schema.items, more);
  }
  if (!isObject(object) || !isObject(old)) return false;
  const name = typeof step === 'object' ? step.key : step;
  // What is missing is an error of the object that it is missing in.
  if (more.length === 0 && !Object.hasOwn(object, name)) return sameJson(object, old);
  if (!Object.hasOwn(old, name)) return false;
  const child = schema === undefined ? undefined : (getOwn(schema.properties, name) ?? valueSchema(schema));
  return isUnchanged(getOwn(object, name), getOwn(old, name), child, more);
}
