// x-kubernetes-validations: compiled once for a schema, then evaluated for each value that has rules, with the old value where
// both can be matched. One budget for an object: what is left out because it is used up is an error.

import type { Environment } from '@marcbachmann/cel-js';
import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import {
  CelBudget,
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  type CelProgram,
  celEnvironment,
  compile,
  evaluate,
  optionalOf,
} from '../cel/cel.ts';
import { duplicate, forbidden, invalid, required } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import { type CelType, CelTypes } from './cel-types.ts';
import { type JsonSchema, properties, type ValidationRule, valueSchema } from './types.ts';
import { pathText, type Steps } from './validate.ts';

interface CompiledRule {
  readonly rule: ValidationRule;
  readonly program: CelProgram;
  readonly message: CelProgram | undefined;
  /** It uses oldSelf and so holds for updates. */
  readonly isTransition: boolean;
}

interface RuleNode {
  readonly schema: JsonSchema;
  readonly type: CelType | undefined;
  readonly rules: readonly CompiledRule[];
  readonly fields: ReadonlyMap<string, RuleNode>;
  readonly values: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

/** A rule that cannot be used, for the definition's validation. */
export interface RuleError {
  /** Of the schema: "properties[spec].x-kubernetes-validations[0].rule", from its root. */
  readonly field: string;
  readonly value: string;
  readonly detail: string;
}

const OLD_SELF = /\boldSelf\b/;

class Compiler {
  readonly errors: RuleError[] = [];
  readonly #environment: Environment;
  readonly #types: CelTypes;

  constructor() {
    this.#environment = celEnvironment({});
    this.#types = new CelTypes(this.#environment);
  }

  /** Undefined where neither the schema nor anything below has rules. Types are all registered before the first clone. */
  prepare(schema: JsonSchema, root: boolean, field: string, correlatable: boolean): (() => RuleNode) | undefined {
    const rules = schema['x-kubernetes-validations'] ?? [];
    const below = correlatable && (schema['x-kubernetes-list-type'] === 'map' || schema.type !== 'array');
    const fields = new Map<string, () => RuleNode>();
    for (const [name, child] of properties(schema)) {
      const node = this.prepare(child, false, `${field}.properties[${name}]`, below);
      if (node !== undefined) fields.set(name, node);
    }
    const valuesOf = valueSchema(schema);
    const values =
      valuesOf === undefined ? undefined : this.prepare(valuesOf, false, `${field}.additionalProperties`, below);
    const items = schema.items === undefined ? undefined : this.prepare(schema.items, false, `${field}.items`, below);
    if (rules.length === 0 && fields.size === 0 && values === undefined && items === undefined) return undefined;
    const type = rules.length === 0 ? undefined : this.#types.typeOf(schema, root);
    return () => ({
      schema,
      type,
      rules: type === undefined ? [] : this.#compileAll(rules, type, `${field}.x-kubernetes-validations`, correlatable),
      fields: new Map([...fields].map(([name, node]) => [name, node()])),
      values: values?.(),
      items: items?.(),
    });
  }

  #compileAll(rules: readonly ValidationRule[], type: CelType, field: string, correlatable: boolean): CompiledRule[] {
    return rules.flatMap((rule, index) => {
      const compiled = this.#compile(rule, type, `${field}[${index}]`, correlatable);
      return compiled === undefined ? [] : [compiled];
    });
  }

  #compile(rule: ValidationRule, type: CelType, field: string, correlatable: boolean): CompiledRule | undefined {
    const { rule: text = '', messageExpression, optionalOldSelf } = rule;
    const old = optionalOldSelf === true ? `optional<${type.name}>` : type.name;
    const environment = this.#environment.clone();
    environment.registerVariable('self', type.name).registerVariable('oldSelf', old);
    const program = this.#program(text, environment, `${field}.rule`, 'bool');
    const message =
      messageExpression === undefined
        ? undefined
        : this.#program(messageExpression, environment, `${field}.messageExpression`, 'string');
    const isTransition = OLD_SELF.test(text);
    if (isTransition && !correlatable) {
      const detail = 'oldSelf cannot be used on the uncorrelatable portion of the schema';
      this.errors.push({ field: `${field}.rule`, value: text, detail });
    }
    return program === undefined ? undefined : { rule, program, message, isTransition };
  }

  #program(text: string, environment: Environment, field: string, wanted: string): CelProgram | undefined {
    try {
      const program = compile(text, environment);
      if (program.type === wanted || program.type === 'dyn') return program;
      const detail =
        wanted === 'bool'
          ? 'compilation failed: cel expression must evaluate to a bool'
          : 'messageExpression compilation failed: messageExpression must evaluate to a string';
      this.errors.push({ field, value: text, detail });
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
      const prefix = wanted === 'bool' ? '' : 'messageExpression ';
      this.errors.push({ field, value: text, detail: `${prefix}compilation failed: ${error.message}` });
    }
    return undefined;
  }
}

export interface CompiledRules {
  /** Undefined when the schema has no rules. */
  readonly root: RuleNode | undefined;
  readonly errors: readonly RuleError[];
}

export function compileRules(schema: JsonSchema): CompiledRules {
  const compiler = new Compiler();
  const root = compiler.prepare(schema, true, '', true)?.();
  return { root, errors: compiler.errors };
}

class Run {
  readonly errors: FieldError[] = [];
  readonly #budget: CelBudget;

  constructor(budget: CelBudget) {
    this.#budget = budget;
  }

  /** `old` is undefined where there is none, or none that can be matched. */
  check(value: unknown, old: unknown, node: RuleNode, steps: Steps): void {
    if (value === null || value === undefined) return;
    this.#own(value, old, node, steps);
    if (Array.isArray(value)) this.#items(value, old, node, steps);
    else if (isObject(value)) {
      const before = isObject(old) ? old : {};
      for (const [name, child] of node.fields) {
        this.check(getOwn(value, name), getOwn(before, name), child, [...steps, name]);
      }
      if (node.values === undefined) return;
      for (const [key, one] of Object.entries(value))
        this.check(one, getOwn(before, key), node.values, [...steps, key]);
    }
  }

  #items(value: readonly unknown[], old: unknown, node: RuleNode, steps: Steps): void {
    if (node.items === undefined) return;
    const keys =
      node.schema['x-kubernetes-list-type'] === 'map' ? (node.schema['x-kubernetes-list-map-keys'] ?? []) : [];
    const keyOf = (item: unknown): string =>
      JSON.stringify(keys.map((key) => (isObject(item) ? getOwn(item, key) : undefined)));
    const before = new Map(Array.isArray(old) && keys.length > 0 ? old.map((item) => [keyOf(item), item]) : []);
    for (const [index, item] of value.entries()) {
      this.check(item, before.get(keyOf(item)), node.items, [...steps, index]);
    }
  }

  #own(value: unknown, old: unknown, { rules, type, schema }: RuleNode, steps: Steps): void {
    if (rules.length === 0 || type === undefined) return;
    const isUnchanged = old !== undefined && sameJson(value, old);
    const self = type.convert(value);
    const oldSelf = old === undefined || old === null ? undefined : type.convert(old);
    for (const compiled of rules) {
      const { rule, isTransition } = compiled;
      if (isTransition ? oldSelf === undefined && rule.optionalOldSelf !== true : isUnchanged) continue;
      const variables = {
        self,
        ...(isTransition || OLD_SELF.test(rule.messageExpression ?? '')
          ? { oldSelf: rule.optionalOldSelf === true ? optionalOf(oldSelf) : oldSelf }
          : {}),
      };
      if (!this.#rule(compiled, variables, schema, steps)) return;
    }
  }

  /** Returns whether there is budget left. */
  #rule(
    { rule, program, message }: CompiledRule,
    variables: Record<string, unknown>,
    schema: JsonSchema,
    steps: Steps,
  ): boolean {
    const field = pathText(steps) || '<nil>';
    const type = schema.type ?? '';
    try {
      if (evaluate(program, variables, this.#budget) === true) return true;
      const text = this.#message(message, variables) ?? rule.message ?? `failed rule: ${(rule.rule ?? '').trim()}`;
      this.errors.push(failed(rule, `${field}${rule.fieldPath ?? ''}`.replace('<nil>.', ''), type, text));
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      const exceeded = error instanceof CelBudgetError;
      const detail = exceeded
        ? 'validation failed due to running out of cost budget, no further validation rules will be run'
        : `${error.message} evaluating rule: ${rule.message ?? (rule.rule ?? '').trim()}`;
      this.errors.push(invalid(field, type, detail));
      return !exceeded;
    }
    return true;
  }

  #message(program: CelProgram | undefined, variables: Record<string, unknown>): string | undefined {
    if (program === undefined) return undefined;
    try {
      const text = evaluate(program, variables, this.#budget);
      return typeof text === 'string' && text.trim() !== '' && !text.includes('\n') ? text : undefined;
    } catch (error) {
      // The rule's fixed message takes its place.
      if (error instanceof CelEvaluationError && !(error instanceof CelBudgetError)) return undefined;
      throw error;
    }
  }
}

function failed({ reason }: ValidationRule, field: string, value: string, text: string): FieldError {
  switch (reason) {
    case 'FieldValueForbidden':
      return forbidden(field, text);
    case 'FieldValueRequired':
      return required(field, text);
    case 'FieldValueDuplicate':
      return duplicate(field, value);
    default:
      return invalid(field, value, text);
  }
}

/** The rules that `value` breaks; `old` is what it replaces. */
export function checkRules(root: RuleNode, value: unknown, old: unknown, budget = new CelBudget()): FieldError[] {
  const run = new Run(budget);
  try {
    run.check(value, old, root, []);
  } catch (error) {
    if (!(error instanceof CelBudgetError)) throw error;
    run.errors.push(
      invalid(
        '<nil>',
        '',
        'validation failed due to running out of cost budget, no further validation rules will be run',
      ),
    );
  }
  return run.errors;
}
