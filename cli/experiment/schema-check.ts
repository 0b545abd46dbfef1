// Checks a value against the part of JSON Schema that schema.json uses: type, enum, pattern, properties, required,
// additionalProperties, items, oneOf of required fields, least and most. Every error names the field's path and what is
// allowed. Pure.

import { getOwn } from '../../lib/own-property.ts';

export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly minProperties?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly oneOf?: readonly { readonly required: readonly string[] }[];
  readonly description?: string;
}

type Fields = Readonly<Record<string, unknown>>;

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

const PLAIN_TYPES: Readonly<Record<string, string>> = {
  array: 'a list',
  object: 'a mapping',
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'nothing',
};

function typeProblem(schema: Schema, value: unknown): string | undefined {
  if (schema.type === undefined) return undefined;
  const allowed = typeof schema.type === 'string' ? [schema.type] : schema.type;
  const found = typeName(value);
  if (allowed.includes(found) || (found === 'integer' && allowed.includes('number'))) return undefined;
  const wanted = allowed.map((type) => getOwn(PLAIN_TYPES, type) ?? type).join(' or ');
  return `must be ${wanted}, not ${getOwn(PLAIN_TYPES, found) ?? found}`;
}

function textProblem({ enum: allowed, pattern, minLength, description }: Schema, value: string): string | undefined {
  if (allowed !== undefined && !allowed.includes(value)) return `"${value}" is none of ${allowed.join(', ')}`;
  if (minLength !== undefined && value.length < minLength) return 'must not be empty';
  if (pattern !== undefined && !new RegExp(pattern).test(value))
    return `"${value}" is not allowed: ${description ?? pattern}`;
  return undefined;
}

function numberProblem({ minimum, maximum }: Schema, value: number): string | undefined {
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
  if (maximum !== undefined && value > maximum) return `must be at most ${maximum}`;
  return undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldProblems(schema: Schema, value: Fields, path: string): string[] {
  const { properties = {}, required = [], additionalProperties = true, oneOf } = schema;
  const below = (key: string): string => (path === '' ? key : `${path}.${key}`);
  const here = path === '' ? '' : `${path}: `;
  const problems = required.filter((key) => !Object.hasOwn(value, key)).map((key) => `${below(key)} is missing`);
  for (const [key, inner] of Object.entries(value)) {
    const known = getOwn(properties, key);
    if (known !== undefined) problems.push(...schemaProblems(known, inner, below(key)));
    else if (typeof additionalProperties === 'object')
      problems.push(...schemaProblems(additionalProperties, inner, below(key)));
    else if (!additionalProperties)
      problems.push(`${below(key)} is not known; allowed: ${Object.keys(properties).join(', ')}`);
  }
  if (schema.minProperties !== undefined && Object.keys(value).length < schema.minProperties) {
    problems.push(`${here}at least one of ${Object.keys(properties).join(', ')} is needed`);
  }
  if (oneOf !== undefined) {
    const met = oneOf.filter((choice) => choice.required.some((key) => Object.hasOwn(value, key)));
    const complete = oneOf.filter((choice) => choice.required.every((key) => Object.hasOwn(value, key)));
    const choices = oneOf.map((choice) => choice.required.join(' and ')).join(', ');
    if (met.length !== 1 || complete.length !== 1) problems.push(`${here}exactly one of ${choices} is needed`);
  }
  return problems;
}

/** One line for each thing that is wrong; none where the value is as the schema says. `path` is where it is in the file. */
export function schemaProblems(schema: Schema, value: unknown, path = ''): string[] {
  const wrongType = typeProblem(schema, value);
  const at = (problem: string | undefined): string[] => (problem === undefined ? [] : [`${path}: ${problem}`]);
  if (wrongType !== undefined) return path === '' ? [`the file ${wrongType}`] : at(wrongType);
  if (typeof value === 'string') return at(textProblem(schema, value));
  if (typeof value === 'number') return at(numberProblem(schema, value));
  if (Array.isArray(value)) {
    const short = schema.minItems !== undefined && value.length < schema.minItems ? at('must not be empty') : [];
    const { items } = schema;
    if (items === undefined) return short;
    return [...short, ...value.flatMap((item: unknown, index) => schemaProblems(items, item, `${path}[${index}]`))];
  }
  return isFields(value) ? fieldProblems(schema, value, path) : [];
}
