// Which schemas a definition may have: structural ones, with defaults that they allow, and nothing that the API server cannot
// validate in linear time. The parts are in structural.ts, schema-defaults.ts, openapi-rules.ts, and rules.ts for expressions.

import { CelBudget } from '../cel/budget.ts';
import { forbidden, invalid } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import { children, isConvertible, validateOpenApi } from './openapi-rules.ts';
import { expensiveRules, expensiveSchema } from './rule-costs.ts';
import { checkRules, type RuleNode, rulesOf } from './rules.ts';
import { validateDefaults } from './schema-defaults.ts';
import { isSet, validateStructural } from './structural.ts';
import { itemSchema, type JsonSchema, properties } from './types.ts';

/** Schemas of one definition: above, validation of objects would take too long. */
const MAX_SCHEMAS = 20_000;
/** Each is compiled in the event loop. */
const MAX_RULES = 500;

/** The fields of a schema as upstream's type has them, in its order, and which of them may stand beside a status. */
const FIELDS = [
  ...['id', '$schema', '$ref', 'description', 'type', 'nullable', 'format', 'title', 'default', 'maximum'],
  ...['exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength', 'pattern', 'maxItems', 'minItems'],
  ...['uniqueItems', 'multipleOf', 'enum', 'maxProperties', 'minProperties', 'required', 'items', 'allOf', 'oneOf'],
  ...['anyOf', 'not', 'properties', 'additionalProperties', 'patternProperties', 'dependencies', 'additionalItems'],
  ...['definitions', 'externalDocs', 'example', 'x-kubernetes-preserve-unknown-fields'],
  ...['x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string', 'x-kubernetes-list-map-keys'],
  ...['x-kubernetes-list-type', 'x-kubernetes-map-type', 'x-kubernetes-validations'],
];
const NOT_AT_ROOT = new Set([
  ...['id', '$schema', '$ref', 'nullable', 'default', 'enum', 'maxProperties', 'minProperties', 'allOf', 'oneOf'],
  ...['anyOf', 'not', 'additionalProperties', 'patternProperties', 'dependencies', 'additionalItems', 'definitions'],
  ...['x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string', 'x-kubernetes-list-map-keys'],
  ...['x-kubernetes-list-type', 'x-kubernetes-map-type'],
]);
/** As upstream prints them: by the names of Go's fields. */
const AT_ROOT =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations';

/** What the status subresource needs of the root: the schema of the status is taken out of it. */
function besideStatus(schema: JsonSchema, field: string): FieldError[] {
  for (const name of FIELDS) {
    if (!isSet(schema, name)) continue;
    if (name === 'type' && schema.type !== 'object') {
      const why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
      return [invalid(`${field}.type`, schema.type, why)];
    }
    if (!NOT_AT_ROOT.has(name)) continue;
    const why = `only [${AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled`;
    return [invalid(field, schema, why)];
  }
  return [];
}

/** How many schemas and rules there are; stops where there are too many. */
function sizeOf(schema: JsonSchema): { readonly schemas: number; readonly rules: number } {
  const waiting = [schema];
  let schemas = 0;
  let rules = 0;
  for (let next = waiting.pop(); next !== undefined && schemas <= MAX_SCHEMAS; next = waiting.pop()) {
    schemas++;
    rules += next['x-kubernetes-validations']?.length ?? 0;
    for (const child of children(next)) waiting.push(child);
  }
  return { schemas, rules };
}

export interface SchemaOptions {
  /** It is stored already, and what its single rules cost was accepted then. */
  readonly isUnchanged?: boolean;
  /** A version that has the schema has the status subresource. */
  readonly hasStatus?: boolean;
}

/** What is wrong with the schema of a version; `field` is where it stands. Throws Pending. */
export function validateSchema(schema: JsonSchema, field: string, options: SchemaOptions = {}): FieldError[] {
  const { isUnchanged = false, hasStatus = false } = options;
  const { schemas, rules } = sizeOf(schema);
  if (schemas > MAX_SCHEMAS) return [forbidden(field, `more than ${MAX_SCHEMAS} schemas`)];
  if (rules > MAX_RULES) return [forbidden(field, `more than ${MAX_RULES} validation rules`)];
  const errors = hasStatus ? besideStatus(schema, field) : [];
  if (schema.nullable === true) errors.push(forbidden(`${field}.nullable`, 'nullable cannot be true at the root'));
  if (isConvertible(schema)) {
    const structural = validateStructural(schema, field);
    errors.push(...(structural.length > 0 ? structural : validateDefaults(schema, field)));
  }
  errors.push(...validateOpenApi(schema, field));
  if (errors.length > 0) return errors;
  return validateRules(schema, field, isUnchanged);
}

/** Throws Pending where the rules are too many to be compiled in one turn. */
function validateRules(schema: JsonSchema, field: string, isUnchanged: boolean): FieldError[] {
  const { errors, costs, root } = rulesOf(schema);
  return [
    ...(errors.length > 0 || root === undefined ? [] : brokenDefaults(schema, root, field)),
    ...(isUnchanged ? [] : expensiveRules(costs, field)),
    ...errors.map(({ field: at, value, detail, within }) =>
      invalid(`${field}${at}`, value, within === undefined ? detail : `${detail} ${field}${within}`),
    ),
    ...expensiveSchema(costs, field),
  ];
}

/** The rules that defaults break, as what stays as it is and as what is new; all of them have one budget. There are none in additionalProperties. */
function brokenDefaults(schema: JsonSchema, node: RuleNode, field: string, budget = new CelBudget()): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.default !== undefined) {
    const value = structuredClone(schema.default);
    const unchanged = checkRules(node, value, value, budget);
    for (const error of unchanged.length > 0 ? unchanged : checkRules(node, value, undefined, budget)) {
      const at = `${field}.default`;
      errors.push({ ...error, field: error.field === '<nil>' ? at : `${at}.${error.field}` });
    }
  }
  for (const [name, child] of properties(schema)) {
    const below = node.fields.get(name);
    if (below !== undefined) errors.push(...brokenDefaults(child, below, `${field}.properties[${name}]`, budget));
  }
  const items = itemSchema(schema);
  if (items !== undefined && node.items !== undefined) {
    errors.push(...brokenDefaults(items, node.items, `${field}.items`, budget));
  }
  return errors;
}
