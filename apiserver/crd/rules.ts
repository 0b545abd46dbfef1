// x-kubernetes-validations: compiled once for a schema, then evaluated for each value that has rules, with the old value where
// both can be matched. One budget for an object: what is left out because it is used up is an error.

import type { Environment } from '@marcbachmann/cel-js';
import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { nextTurn } from '../../lib/turns.ts';
import { charge } from '../cel/budget.ts';
import {
  CelBudget,
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  type CelProgram,
  celEnvironment,
  compile,
  evaluate,
  onCelBudget,
  optionalOf,
} from '../cel/cel.ts';
import { duplicate, forbidden, invalid, required } from '../kinds/field-errors.ts';
import { type FieldError, Pending } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import { type CelType, CelTypes } from './cel-types.ts';
import { type Declared, declaredType, MAX_REQUEST } from './sized-types.ts';
import { type JsonSchema, properties, type ValidationRule, valueSchema } from './types.ts';
import { keyedPathText, type Steps } from './validate.ts';

interface CompiledRule {
  readonly rule: ValidationRule;
  readonly program: CelProgram;
  readonly message: CelProgram | undefined;
  /** It uses oldSelf and so holds for updates. */
  readonly isTransition: boolean;
}

export interface RuleNode {
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
  readonly value: unknown;
  readonly detail: string;
  /** The path of a schema that the detail ends with, from the root. */
  readonly within?: string;
}

/** What an expression may cost at most. */
export interface RuleCost {
  /** As RuleError's. */
  readonly field: string;
  readonly kind: 'rule' | 'messageExpression';
  /** Of one evaluation. */
  readonly own: number;
  /** Of all evaluations for one object, in a rule: as often as its value may be there. */
  readonly total: number;
}

const OLD_SELF = /\boldSelf\b/;

class Compiler {
  readonly errors: RuleError[] = [];
  readonly costs: RuleCost[] = [];
  readonly #environment: Environment;
  readonly #types: CelTypes;

  constructor() {
    this.#environment = celEnvironment({});
    this.#types = new CelTypes(this.#environment, { readReserved: true });
  }

  /** Undefined where neither the schema nor anything below has rules. Types are all registered before the first clone. */
  prepare(
    schema: JsonSchema,
    root: boolean,
    field: string,
    uncorrelated: string | undefined,
    times: number | undefined,
  ): (() => Compilation<RuleNode>) | undefined {
    const rules = schema['x-kubernetes-validations'] ?? [];
    // Of parts that are replaced as a whole, the outermost one.
    const inItems = uncorrelated ?? (schema['x-kubernetes-list-type'] === 'map' ? undefined : field);
    const fields = new Map<string, () => Compilation<RuleNode>>();
    const inner = timesBelow(schema, times);
    for (const [name, child] of properties(schema)) {
      const node = this.prepare(child, false, `${field}.properties[${name}]`, uncorrelated, inner);
      if (node !== undefined) fields.set(name, node);
    }
    const valuesOf = valueSchema(schema);
    const values =
      valuesOf === undefined
        ? undefined
        : this.prepare(valuesOf, false, `${field}.additionalProperties`, uncorrelated, inner);
    const items =
      schema.items === undefined ? undefined : this.prepare(schema.items, false, `${field}.items`, inItems, inner);
    if (rules.length === 0 && fields.size === 0 && values === undefined && items === undefined) return undefined;
    const type = rules.length === 0 ? undefined : this.#types.typeOf(schema, root);
    const compiler = this;
    return function* () {
      const place = { declared: declaredType(schema, root), times };
      const nodes = new Map<string, RuleNode>();
      for (const [name, node] of fields) nodes.set(name, yield* node());
      return {
        schema,
        type,
        rules: type === undefined ? [] : yield* compiler.#compileAll(rules, { type, ...place }, field, uncorrelated),
        fields: nodes,
        values: values === undefined ? undefined : yield* values(),
        items: items === undefined ? undefined : yield* items(),
      };
    };
  }

  *#compileAll(
    rules: readonly ValidationRule[],
    place: RulePlace,
    field: string,
    uncorrelated: string | undefined,
  ): Compilation<CompiledRule[]> {
    const all: CompiledRule[] = [];
    for (const [index, rule] of rules.entries()) {
      const compiled = this.#compile(rule, place, `${field}.x-kubernetes-validations[${index}]`, uncorrelated);
      if (compiled !== undefined) all.push(compiled);
      yield OWN_COST + (rule.rule?.length ?? 0) + (rule.messageExpression?.length ?? 0);
    }
    return all;
  }

  #cost(program: CelProgram | undefined, place: RulePlace, kind: RuleCost['kind'], field: string): void {
    const { declared, times } = place;
    if (program === undefined || declared === undefined) return;
    const own = program.cost({ self: declared.type, oldSelf: declared.type });
    const often = times ?? Math.floor(MAX_REQUEST / (declared.minBytes + 1));
    this.costs.push({ field: `${field}.${kind}`, kind, own, total: kind === 'rule' ? own * often : own });
  }

  #compile(
    rule: ValidationRule,
    place: RulePlace,
    field: string,
    uncorrelated: string | undefined,
  ): CompiledRule | undefined {
    const { type } = place;
    const { rule: text = '', messageExpression, optionalOldSelf } = rule;
    const old = optionalOldSelf === true ? `optional<${type.name}>` : type.name;
    const environment = this.#environment.clone();
    environment.registerVariable('self', type.name).registerVariable('oldSelf', old);
    const program = this.#program(text, environment, `${field}.rule`, 'bool');
    const message =
      messageExpression === undefined
        ? undefined
        : this.#program(messageExpression, environment, `${field}.messageExpression`, 'string');
    this.#cost(program, place, 'rule', field);
    this.#cost(message, place, 'messageExpression', field);
    const isTransition = OLD_SELF.test(text);
    if (isTransition && uncorrelated !== undefined) {
      const detail = 'oldSelf cannot be used on the uncorrelatable portion of the schema within';
      this.errors.push({ field: `${field}.rule`, value: text, detail, within: uncorrelated });
    } else if (!isTransition && optionalOldSelf !== undefined) {
      const detail = 'may not be set if oldSelf is not used in rule';
      this.errors.push({ field: `${field}.optionalOldSelf`, value: optionalOldSelf, detail });
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

/** Compiles a rule at a time; yields what it took, in characters. */
type Compilation<T> = Generator<number, T, void>;
/** What a rule takes beside its expressions: an environment with its variables. */
const OWN_COST = 100;
/** Rules that are compiled in one turn, some milliseconds' work. */
const TURN = 4096;

interface RulePlace {
  readonly type: CelType;
  readonly declared: Declared | undefined;
  /** How often the value may be in an object; undefined where nothing limits that but the size of a request. */
  readonly times: number | undefined;
}

/** The same for what the schema holds. */
function timesBelow(schema: JsonSchema, times: number | undefined): number | undefined {
  const limit =
    schema.type === 'array'
      ? schema.maxItems
      : schema.type === 'object' && schema.additionalProperties !== undefined
        ? schema.maxProperties
        : 1;
  return times === undefined || limit === undefined ? undefined : times * Math.max(0, limit);
}

export interface CompiledRules {
  /** Undefined when the schema has no rules. */
  readonly root: RuleNode | undefined;
  readonly errors: readonly RuleError[];
  readonly costs: readonly RuleCost[];
}

function* compilation(schema: JsonSchema): Compilation<CompiledRules> {
  const compiler = new Compiler();
  const root = compiler.prepare(schema, true, '', undefined, 1);
  return { root: root === undefined ? undefined : yield* root(), errors: compiler.errors, costs: compiler.costs };
}

/** In this turn, however many rules there are. */
export function compileRules(schema: JsonSchema): CompiledRules {
  const steps = compilation(schema);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

const compiled = new WeakMap<JsonSchema, CompiledRules>();

/** Compiled once for a schema, which does not change. Throws Pending where that takes more than a turn. */
export function rulesOf(schema: JsonSchema): CompiledRules {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const steps = compilation(schema);
  const rules = compileSome(steps);
  if (rules === undefined) throw new Pending('the rules are not compiled yet', () => compileRest(schema, steps));
  compiled.set(schema, rules);
  return rules;
}

/** As many as fit into a turn; undefined where there are more. */
function compileSome(steps: Compilation<CompiledRules>): CompiledRules | undefined {
  for (let spent = 0; spent < TURN; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    spent += step.value;
  }
  return undefined;
}

async function compileRest(schema: JsonSchema, steps: Compilation<CompiledRules>): Promise<void> {
  for (;;) {
    await nextTurn();
    const rules = compileSome(steps);
    if (rules === undefined) continue;
    compiled.set(schema, rules);
    return;
  }
}

/** What a rule costs beside its expression, in units of the budget: its variables, its path. */
const EVALUATION = 4;
/** And one that fails: its message, its error. */
const FAILURE = 12;

/** A rule that takes more than this part of an object's budget is too expensive by itself; kube-apiserver has a limit of its own for it. */
const CALL_SHARE = 0.5;
const NO_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';

class Run {
  readonly errors: FieldError[] = [];
  readonly #budget: CelBudget;
  /** The budget is used up: no further rule is evaluated. */
  #isOver = false;

  constructor(budget: CelBudget) {
    this.#budget = budget;
  }

  /** `old` is undefined where there is none, or none that can be matched. */
  check(value: unknown, old: unknown, node: RuleNode, steps: Steps): void {
    if (this.#isOver || value === null || value === undefined) return;
    this.#own(value, old, node, steps);
    if (Array.isArray(value)) this.#items(value, old, node, steps);
    else if (isObject(value)) {
      const before = isObject(old) ? old : {};
      for (const [name, child] of node.fields) {
        this.check(getOwn(value, name), getOwn(before, name), child, [...steps, name]);
      }
      if (node.values === undefined) return;
      for (const [key, one] of Object.entries(value))
        this.check(one, getOwn(before, key), node.values, [...steps, { key }]);
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
    const hasOld = old !== undefined && old !== null;
    // The comparison reads as much as the conversion.
    const self = onCelBudget(this.#budget, () => type.convert(value));
    const oldSelf = hasOld ? onCelBudget(this.#budget, () => type.convert(old)) : undefined;
    const isUnchanged = hasOld && sameJson(value, old);
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
    const field = keyedPathText(steps) || '<nil>';
    const type = schema.type ?? '';
    const before = this.#budget.left;
    try {
      this.#spend(EVALUATION);
      if (evaluate(program, variables, this.#budget) === true) return true;
      this.#spend(FAILURE);
      const text = this.#message(message, variables) ?? rule.message ?? `failed rule: ${(rule.rule ?? '').trim()}`;
      this.errors.push(failed(rule, `${field}${rule.fieldPath ?? ''}`.replace('<nil>.', ''), type, text));
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      const exceeded = error instanceof CelBudgetError;
      this.#isOver = exceeded;
      const text = rule.message ?? (rule.rule ?? '').trim();
      const detail = exceeded ? this.#costDetail(before, error.message, text) : failure(error.message, text);
      this.errors.push(invalid(field, type, detail));
      return !exceeded;
    }
    return true;
  }

  /** Whether the rule is too expensive by itself, or those before it have left too little. */
  #costDetail(before: number, message: string, rule: string): string {
    if (before - this.#budget.left < CALL_SHARE * this.#budget.limit) return NO_BUDGET;
    return `'${message}': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`;
  }

  #spend(units: number): void {
    onCelBudget(this.#budget, () => charge(units));
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

/** Why a rule has no result. `rule`: its message or its text. */
function failure(error: string, rule: string): string {
  if (!error.startsWith('no such overload')) return `${error} evaluating rule: ${rule}`;
  return `'${error}': call arguments did not match a supported operator, function or macro signature for rule: ${rule}`;
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
    run.errors.push(invalid('<nil>', '', NO_BUDGET));
  }
  return run.errors;
}
