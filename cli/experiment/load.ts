// Reads an experiment's file: YAML, checked against schema.json and then for what a schema cannot say (expressions,
// parameters, names). Every error names the file, the field's path and what is allowed. It runs nothing.

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseAllDocuments, parseDocument } from 'yaml';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { check } from './expression/evaluate.ts';
import { parseExpression } from './expression/parse.ts';
import { ExpressionError } from './expression/token.ts';
import type { Experiment, ExperimentStep, Manifest } from './model.ts';
import { type Schema, schemaProblems } from './schema-check.ts';

export type ParameterValues = Readonly<Record<string, string | number>>;

/** As the schema describes it: before the manifests of `apply` are a list. */
type FileStep =
  | ExperimentStep
  | ({ readonly name?: string; readonly copies?: number } & { readonly apply: string | readonly Manifest[] });
type ExperimentFile = Omit<Experiment, 'steps'> & { readonly steps: readonly FileStep[] };

/** A file that was read; variations are made of it. */
export interface ExperimentSource {
  /** For messages. */
  readonly file: string;
  /** With the defaults of its parameters. */
  readonly experiment: Experiment;
  /** With these values of parameters; throws UserError for a name that the file does not have, and for what is then wrong. */
  readonly vary: (values: ParameterValues) => Promise<Experiment>;
}

/** Names in expressions that are no measures. */
export const WORLD_NAMES = ['sim', 'lab', 'vm'] as const;

let schema: Promise<Schema> | undefined;

/** The published schema, from the file beside this one. */
export function experimentSchema(): Promise<Schema> {
  schema ??= readFile(new URL('schema.json', import.meta.url), 'utf8').then((text): Schema => JSON.parse(text));
  return schema;
}

function fail(file: string, problems: readonly string[]): never {
  const [first = '', ...more] = problems;
  throw new UserError([`${file}: ${first}`, ...more.map((each) => `  ${each}`)].join('\n'));
}

function parseYaml(text: string, file: string): unknown {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) fail(file, [`is not YAML: ${error.message.split('\n')[0]}`]);
  try {
    return document.toJS();
  } catch (error) {
    // An alias without an anchor, or too many of them.
    fail(file, [`is not YAML: ${errorMessage(error)}`]);
  }
}

// ---------------------------------------------------------------- parameters

/** "$(name)" in texts; a text that is nothing else becomes the value itself, so that it can be a number. Pure. */
export function substitute(value: unknown, values: ParameterValues): unknown {
  if (typeof value === 'string') {
    const whole = /^\$\((\w+)\)$/.exec(value)?.[1];
    const alone = whole === undefined ? undefined : getOwn(values, whole);
    if (alone !== undefined) return alone;
    return value.replace(/\$\((\w+)\)/g, (text, name: string) => String(getOwn(values, name) ?? text));
  }
  if (Array.isArray(value)) return value.map((item: unknown) => substitute(item, values));
  if (typeof value !== 'object' || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) setOwn(result, key, substitute(inner, values));
  return result;
}

/** The defaults that the file gives; what is no parameter there is for the schema to refuse. */
function defaultsOf(raw: unknown): Record<string, string | number> {
  const values: Record<string, string | number> = {};
  const parameters = typeof raw === 'object' && raw !== null && 'parameters' in raw ? raw.parameters : undefined;
  if (typeof parameters !== 'object' || parameters === null) return values;
  for (const [name, parameter] of Object.entries(parameters) as [string, unknown][]) {
    if (typeof parameter !== 'object' || parameter === null || !('default' in parameter)) continue;
    const { default: value } = parameter;
    if (typeof value === 'string' || typeof value === 'number') setOwn(values, name, value);
  }
  return values;
}

/** Applies values to the whole file but its `parameters`. */
function withValues(raw: unknown, values: ParameterValues): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  const { parameters, ...rest }: { parameters?: unknown } = raw;
  const varied = substitute(rest, values);
  return parameters === undefined || typeof varied !== 'object' ? varied : { ...varied, parameters };
}

// ---------------------------------------------------------------- what a schema cannot say

function expressionProblem(text: string, names: ReadonlySet<string>, path: string): string[] {
  try {
    check(parseExpression(text), names);
    return [];
  } catch (error) {
    if (error instanceof ExpressionError) return [`${path}: ${error.message} (column ${error.column} of "${text}")`];
    throw error;
  }
}

function meaningProblems({ steps, measure, expect, on }: ExperimentFile): string[] {
  const problems: string[] = [];
  const names = new Set<string>(WORLD_NAMES);
  for (const [index, step] of steps.entries()) {
    if ('wait' in step) problems.push(...expressionProblem(step.wait.until, names, `steps[${index}].wait.until`));
    if ('copies' in step && !('apply' in step)) problems.push(`steps[${index}].copies is for apply alone`);
  }
  for (const [index, { name, value }] of measure.entries()) {
    problems.push(...expressionProblem(value, names, `measure[${index}].value`));
    if (names.has(name)) problems.push(`measure[${index}].name: ${name} is a name already`);
    names.add(name);
  }
  for (const [index, each] of expect.entries()) {
    problems.push(...expressionProblem(each.that, names, `expect[${index}].that`));
    const elsewhere = each.on?.find((world) => !on.includes(world));
    if (elsewhere !== undefined) problems.push(`expect[${index}].on: ${elsewhere} is not in the experiment's own "on"`);
  }
  return problems;
}

/** A "$(name)" that no parameter stands for is a mistake; in manifests it is Kubernetes' own reference to a variable. */
function openNames(value: unknown, known: ReadonlySet<string>, path: string): string[] {
  if (typeof value === 'string') {
    const open = [...value.matchAll(/\$\((\w+)\)/g)].map(([, name = '']) => name).filter((name) => !known.has(name));
    return open.map((name) => `${path}: $(${name}) is no parameter of this file`);
  }
  if (Array.isArray(value)) return value.flatMap((item: unknown, index) => openNames(item, known, `${path}[${index}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'apply' ? [] : openNames(inner, known, path === '' ? key : `${path}.${key}`),
  );
}

// ---------------------------------------------------------------- manifests

async function manifestsOf(path: string, file: string, where: string): Promise<readonly unknown[]> {
  const place = resolve(dirname(file), path);
  let text: string;
  try {
    text = await readFile(place, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EISDIR', 'EACCES'))
      fail(file, [`${where}: ${place} cannot be read: ${errorMessage(error)}`]);
    throw error;
  }
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return [];
  return documents.map((document) => {
    const [error] = document.errors;
    if (error !== undefined) fail(place, [`is not YAML: ${error.message.split('\n')[0]}`]);
    return document.toJS() as unknown;
  });
}

async function resolvedStep(
  step: FileStep,
  index: number,
  file: string,
  schemaOfStep: Schema,
): Promise<ExperimentStep> {
  if (!('apply' in step)) return step;
  const { apply, copies, ...rest }: { apply: string | readonly Manifest[]; copies?: number; name?: string } = step;
  const where = `steps[${index}].apply`;
  const given: unknown = typeof apply === 'string' ? await manifestsOf(apply, file, where) : apply;
  const count = copies ?? 1;
  const all = Array.from({ length: count }, (_, copy) =>
    substitute(given, copies === undefined ? {} : { copy: copy + 1 }),
  ).flat();
  const resolved: unknown = { ...rest, apply: all };
  if (isStep(resolved, schemaOfStep)) return resolved;
  fail(file, schemaProblems(schemaOfStep, resolved, `steps[${index}]`));
}

/** The schema allows a path for `apply`; here it is a list. */
function isStep(value: unknown, stepSchema: Schema): value is ExperimentStep {
  return schemaProblems(stepSchema, value).length === 0;
}

function isExperimentFile(value: unknown, whole: Schema): value is ExperimentFile {
  return schemaProblems(whole, value).length === 0;
}

async function build(raw: unknown, values: ParameterValues, file: string): Promise<Experiment> {
  const whole = await experimentSchema();
  const varied = withValues(raw, values);
  if (!isExperimentFile(varied, whole)) fail(file, schemaProblems(whole, varied));
  const { parameters: _parameters, ...texts } = varied;
  const known = new Set(['copy', ...Object.keys(values)]);
  const problems = [...meaningProblems(varied), ...openNames(texts, known, '')];
  if (problems.length > 0) fail(file, problems);
  const stepSchema = getOwn(whole.properties, 'steps')?.items ?? {};
  const steps = await Promise.all(varied.steps.map((step, index) => resolvedStep(step, index, file, stepSchema)));
  return { ...varied, steps };
}

/** An experiment from its text. Rejects with UserError. */
export async function parseExperiment(text: string, file: string): Promise<ExperimentSource> {
  const raw = parseYaml(text, file);
  const defaults = defaultsOf(raw);
  const vary = (values: ParameterValues): Promise<Experiment> => {
    const unknown = Object.keys(values).find((name) => !Object.hasOwn(defaults, name));
    if (unknown !== undefined) {
      const names = Object.keys(defaults);
      const known = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
      throw new UserError(`${file}: there is no parameter ${unknown}; ${known}`);
    }
    return build(raw, { ...defaults, ...values }, file);
  };
  return { file, experiment: await build(raw, defaults, file), vary };
}

/** Rejects with UserError. */
export async function loadExperiment(file: string): Promise<ExperimentSource> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EISDIR', 'EACCES'))
      throw new UserError(`${file} cannot be read: ${errorMessage(error)}`);
    throw error;
  }
  return await parseExperiment(text, file);
}
