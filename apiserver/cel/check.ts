// Checks the types of a parsed expression and collects all that is wrong, as cel-go does: where the library stops at an error,
// the node is taken for `dyn` and the check goes on.

import { TypeError as CelTypeError, type Environment } from '@marcbachmann/cel-js';
import { type Finding, findingOf, placeOf, undeclared, type Vocabulary } from './compile-errors.ts';
import { RENAMED } from './functions/text.ts';
import { type Checker, type Context, identifierOf, isNode, type Node, nodesOf, type Type } from './library.ts';

/** No more are reported of one expression. */
const MAX_FINDINGS = 100;
/** Functions of the library that CEL does not have, by type: `bytes.hex`. */
const UNKNOWN: ReadonlySet<string> = new Set(['json', 'hex', 'base64', 'at']);

const WRITTEN: ReadonlyMap<string, string> = new Map(
  [...RENAMED].map(([called, name]) => [name, called.slice(called.indexOf(':') + 1)]),
);

const vocabularies = new WeakMap<Environment, Vocabulary>();

function vocabularyOf(environment: Environment): Vocabulary {
  let known = vocabularies.get(environment);
  if (known === undefined) {
    const functions = environment.getDefinitions().functions.map(({ name }) => name);
    known = { functions: new Set(functions.filter((name) => !UNKNOWN.has(name))), written: WRITTEN };
    vocabularies.set(environment, known);
  }
  return known;
}

interface Checked {
  readonly valid: boolean;
  readonly type?: string | undefined;
  readonly error?: unknown;
}

/** The type that stands for any. */
function dynOf(environment: Environment): unknown {
  const parsed = environment.parse('dyn(1)');
  parsed.check();
  return Reflect.get(parsed.ast, 'checkedType');
}

/** The names that `cel.bind` would declare, and itself. */
function bindings(root: object, expression: string): Finding[] {
  const findings: Finding[] = [];
  for (const { node } of nodesOf(root)) {
    if (!isNode(node) || node.op !== 'rcall' || !Array.isArray(node.args)) continue;
    const [name, receiver, args]: unknown[] = node.args;
    if (name !== 'bind' || !isNode(receiver) || identifierOf(receiver) !== 'cel') continue;
    findings.push({ message: undeclared('cel'), start: receiver.start });
    findings.push({ message: undeclared('bind'), start: placeOf(node, expression) });
    const [variable, , body]: unknown[] = Array.isArray(args) ? args : [];
    const local = isNode(variable) ? identifierOf(variable) : undefined;
    if (local === undefined || !isNode(variable) || !isNode(body)) continue;
    for (const { node: inner } of [{ node: variable }, ...nodesOf(body)]) {
      if (isNode(inner) && identifierOf(inner) === local)
        findings.push({ message: undeclared(local), start: inner.start });
    }
  }
  return findings;
}

/** Uses of the library's own constant `cel` as a value, and of functions on bytes that are the library's. */
function foreign(root: object, expression: string): Finding[] {
  const findings: Finding[] = [];
  for (const { node } of nodesOf(root)) {
    if (!isNode(node)) continue;
    const type: Type | undefined = node.checkedType;
    if (node.op === 'id' && type?.name === 'CelNamespace') {
      findings.push({ message: undeclared('cel'), start: node.start });
    }
    const [name]: unknown[] = Array.isArray(node.args) ? node.args : [];
    if (node.op === 'rcall' && typeof name === 'string' && UNKNOWN.has(name)) {
      findings.push({ message: undeclared(name), start: placeOf(node, expression) });
    }
  }
  return findings;
}

type CheckNode = (checker: FieldChecker, node: Node, context: Context) => Type;
interface FieldChecker extends Checker {
  checkAccessOnType(node: Node, context: Context, type: Type, allowMissing: boolean): Type;
}
const isCheck = (value: unknown): value is CheckNode => typeof value === 'function';

/** Fields that are selected with `.?`, or from an optional value, have to exist in its type; so do those of `has()`. */
function checkFields(root: object): void {
  for (const { node } of nodesOf(root)) {
    if (!isNode(node) || !Array.isArray(node.args)) continue;
    if (node.op === '.' || node.op === '.?') checkSelected(node, node.args[0]);
    const [name, args]: unknown[] = node.args;
    if (node.op === 'call' && name === 'has' && Array.isArray(args)) checkPresence(node, args[0]);
  }
}

function checkSelected(node: Node, operand: unknown): void {
  const check: unknown = Reflect.get(node.meta ?? {}, 'check');
  if (!isCheck(check) || !isNode(operand)) return;
  const strict: CheckNode = (checker, own, context) => {
    const type = check(checker, own, context);
    const from = operand.checkedType;
    const object = from?.kind === 'optional' ? from.valueType : from;
    if (object?.kind === 'message') checker.checkAccessOnType(own, context, object, false);
    return type;
  };
  node.setMeta('check', strict);
}

function checkPresence(call: Node, field: unknown): void {
  const macro: unknown = Reflect.get(call.meta ?? {}, 'macro');
  if (typeof macro !== 'object' || macro === null || !isNode(field) || field.op !== '.') return;
  const check: unknown = Reflect.get(macro, 'typeCheck');
  if (!isCheck(check)) return;
  const strict: CheckNode = (checker, own, context) => {
    try {
      checker.check(field, context);
    } catch (error) {
      // cel-go places a missing field at the macro.
      if (!(error instanceof CelTypeError) || error.code !== 'no_such_key') throw error;
      const at: unknown = error.node;
      if (at !== field) throw error;
      throw checker.createError(error.code, error.summary, call);
    }
    return check(checker, own, context);
  };
  Reflect.set(macro, 'typeCheck', strict);
}

export interface Check {
  readonly type: string;
  readonly findings: readonly Finding[];
}

/** Throws what is no error of types. `hasBindings`: whether the expression may use `cel.bind`. */
export function checkTypes(
  expression: string,
  parsed: { readonly ast: object; check(): Checked },
  environment: Environment,
  hasBindings: boolean,
): Check {
  const findings = hasBindings ? [] : bindings(parsed.ast, expression);
  if (findings.length > 0) return { type: 'dyn', findings: inOrder(findings) };
  checkFields(parsed.ast);
  const vocabulary = vocabularyOf(environment);
  for (let checked = parsed.check(); ; checked = parsed.check()) {
    const { error } = checked;
    if (checked.valid) {
      if (!hasBindings) findings.push(...foreign(parsed.ast, expression));
      return { type: checked.type ?? 'dyn', findings: inOrder(findings) };
    }
    const node: unknown = error instanceof CelTypeError ? error.node : undefined;
    if (!(error instanceof CelTypeError) || !isNode(node)) throw error;
    const finding = findingOf(error, node, parentOf(node, parsed.ast), expression, vocabulary);
    if (!findings.some(({ message, start }) => message === finding.message && start === finding.start))
      findings.push(finding);
    if (findings.length === MAX_FINDINGS || !skip(node, environment))
      return { type: 'dyn', findings: inOrder(findings) };
  }
}

function parentOf(node: Node, root: object): Node | undefined {
  for (const { node: one, parent } of nodesOf(root)) if (one === node) return isNode(parent) ? parent : undefined;
  return undefined;
}

/** Lets the check go on beyond the node; false where it would fail there again. */
function skip(node: Node, environment: Environment): boolean {
  if (node.checkedType !== undefined && node.checkedType.kind === 'dyn') return false;
  Reflect.set(node, 'checkedType', dynOf(environment));
  return true;
}

function inOrder(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => a.start - b.start);
}
