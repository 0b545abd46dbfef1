// Whether the defaults of a structural schema are values that it leaves as they are, and heads of objects that may be
// (k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting and objectmeta). Pure.

import { aggregate } from '../../lib/aggregate.ts';
import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { addErrors, invalid, required } from '../kinds/field-errors.ts';
import { validateObjectMeta } from '../kinds/metadata.ts';
import { dns1035Label, pathSegment } from '../kinds/names.ts';
import type { FieldError } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { applyDefaults, prune } from './prune.ts';
import { itemSchema, type JsonSchema, properties, valueSchema } from './types.ts';
import { validateValue } from './validate.ts';

const META_FIELDS: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);

/** The kind of a JSON value as Go's decoder names it. */
function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}

/** What Go's decoder says of metadata with a field of another type; undefined for what it reads. */
function decodingProblem(metadata: unknown): string | undefined {
  const cannot = (value: unknown, into: string): string => `json: cannot unmarshal ${goKind(value)} into Go ${into}`;
  if (!isObject(metadata)) return cannot(metadata, 'value of type v1.ObjectMeta');
  for (const name of ['name', 'generateName', 'namespace', 'uid', 'resourceVersion']) {
    const value = getOwn(metadata, name);
    if (value !== undefined && value !== null && typeof value !== 'string') {
      return cannot(value, `struct field ObjectMeta.${name} of type string`);
    }
  }
  for (const name of ['labels', 'annotations']) {
    const values = getOwn(metadata, name);
    if (values === undefined || values === null) continue;
    if (!isObject(values)) return cannot(values, `struct field ObjectMeta.${name} of type map[string]string`);
    const wrong = Object.values(values).find((value) => typeof value !== 'string');
    if (wrong !== undefined) return cannot(wrong, `struct field ObjectMeta.${name} of type string`);
  }
  return undefined;
}

const below = (field: string, name: string): string => (field === '' ? name : `${field}.${name}`);

function typeMeta(field: string, name: 'apiVersion' | 'kind', value: unknown): FieldError[] {
  const at = below(field, name);
  if (value === undefined) return [required(at)];
  if (typeof value !== 'string') return [invalid(at, value, 'must be a string')];
  if (value === '') return [invalid(at, value, 'must not be empty')];
  if (name === 'apiVersion') {
    const isOdd = value.split('/').length > 2;
    return isOdd ? [invalid(at, value, `unexpected GroupVersion string: ${value}`)] : [];
  }
  const problems = dns1035Label(value.toLowerCase());
  const why = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
  return problems.length === 0 ? [] : [invalid(at, value, why)];
}

function objectMeta(field: string, value: unknown): FieldError[] {
  const at = below(field, 'metadata');
  const problem = decodingProblem(value);
  if (problem !== undefined || !isObject(value)) return [invalid(at, value, problem ?? '')];
  const name = typeof value['name'] === 'string' && value['name'] !== '' ? value['name'] : 'fakename';
  const hasNamespace = typeof value['namespace'] === 'string' && value['namespace'] !== '';
  return validateObjectMeta({ ...value, name }, hasNamespace, pathSegment, false).map((error) => ({
    ...error,
    field: below(field, error.field),
  }));
}

/** The heads of all objects that are embedded in the value; `isRoot`: it is one itself. */
function heads(value: unknown, schema: JsonSchema, field: string, isRoot: boolean): FieldError[] {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    if (items === undefined) return [];
    return value.flatMap((one, index) => heads(one, items, `${field}[${index}]`, false));
  }
  if (!isObject(value)) return [];
  const errors: FieldError[] = [];
  if (isRoot || schema['x-kubernetes-embedded-resource'] === true) {
    addErrors(errors, typeMeta(field, 'apiVersion', value['apiVersion']), typeMeta(field, 'kind', value['kind']));
    if (value['metadata'] !== undefined) addErrors(errors, objectMeta(field, value['metadata']));
  }
  const names = new Map(properties(schema));
  const values = valueSchema(schema);
  for (const [key, child] of Object.entries(value)) {
    const known = names.get(key);
    if (known !== undefined) addErrors(errors, heads(child, known, below(field, key), false));
    else if (values !== undefined) addErrors(errors, heads(child, values, `${field}[${key}]`, false));
  }
  return errors;
}

/** Where a schema is: the resource that it is in, and how to make one of a value at this place. */
interface Surroundings {
  readonly root: JsonSchema;
  readonly wrap: (value: unknown) => unknown;
  /** In the head of the resource. */
  readonly isInMeta: boolean;
}

function resourceOf(root: JsonSchema): Surroundings {
  const wrap = (value: unknown): unknown =>
    isObject(value) ? { apiVersion: 'validation/v1', kind: 'Validation', ...value } : value;
  return { root, wrap, isInMeta: false };
}

function unknownFields(value: unknown, schema: JsonSchema): boolean {
  const copy = structuredClone(value);
  let found = false;
  const report = {
    unknown: () => {
      found = true;
    },
  };
  if (schema['x-kubernetes-embedded-resource'] === true) prune(copy, schema, report);
  // As a part of an object: only the root of one has a head of its own.
  else prune({ value: copy }, { type: 'object', properties: { value: schema } }, report);
  return found || !sameJson(copy, value);
}

function checkDefault(schema: JsonSchema, at: string, around: Surroundings): FieldError[] {
  const value = structuredClone(schema.default);
  const errors: FieldError[] = [];
  if (around.isInMeta) {
    const problems = heads(around.wrap(value), around.root, '', true);
    if (problems.length > 0) {
      const why = aggregate(problems.map(({ field, detail }) => `${field}: ${detail}`));
      return [invalid(at, schema.default, `must result in valid metadata: ${why}`)];
    }
  } else {
    if (unknownFields(value, schema)) errors.push(invalid(at, schema.default, 'must not have unknown fields'));
    const problems = heads(value, schema, at, schema['x-kubernetes-embedded-resource'] === true);
    if (problems.length > 0) return [...errors, ...problems];
  }
  applyDefaults(value, schema);
  for (const { error } of validateValue(value, schema, [at])) {
    // Upstream's texts name the place in the default, and it does not look at sets here.
    const detail = error.detail.replaceAll(`${at}.`, '').replaceAll(at, '');
    if (error.type !== 'FieldValueDuplicate') errors.push({ ...error, detail });
  }
  return errors;
}

function validateAt(schema: JsonSchema, field: string, outside: Surroundings, errors: FieldError[]): void {
  const isResource = schema['x-kubernetes-embedded-resource'] === true;
  const around = isResource ? resourceOf(schema) : outside;
  if (schema.default !== undefined) addErrors(errors, checkDefault(schema, `${field}.default`, around));
  const items = itemSchema(schema);
  if (items !== undefined) {
    validateAt(items, `${field}.items`, { ...around, wrap: (value) => around.wrap([value]) }, errors);
  }
  for (const [name, child] of properties(schema)) {
    const wrap = (value: unknown): unknown => {
      const object: JsonObject = { [name]: value };
      return around.wrap(object);
    };
    const isInMeta = around.isInMeta || (around.root === schema && META_FIELDS.has(name));
    validateAt(child, `${field}.properties[${name}]`, { ...around, wrap, isInMeta }, errors);
  }
}

/** Those of a structural schema of a resource; there are none in additionalProperties. */
export function validateDefaults(schema: JsonSchema, field: string): FieldError[] {
  const errors: FieldError[] = [];
  validateAt({ ...schema, 'x-kubernetes-embedded-resource': true }, field, resourceOf(schema), errors);
  return errors;
}
