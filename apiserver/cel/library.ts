// The parts of @marcbachmann/cel-js that macros work with, which have no published types: nodes of a checked tree, the scope
// of names, the type checker and the evaluator.

/** A node of the library's tree. */
export interface Node {
  readonly op: string;
  args: unknown;
  readonly start: number;
  readonly end: number;
  readonly checkedType?: Type;
  readonly meta?: object;
  setMeta(key: string, value: unknown): Node;
}

/** Names and their values. A fork adds one name; `reuse` says what it is a fork of in this evaluation. */
export interface Context {
  forkWithVariable(name: string, type: Type): Context;
  reuse(context: Context): Context;
  setIterValue(value: unknown, evaluator: Evaluator): Context;
}

export interface Evaluator {
  run(node: object, context: Context): unknown;
}

export interface Type {
  readonly kind?: string;
  readonly name: string;
  readonly type?: string;
  readonly keyType?: Type;
  readonly valueType?: Type;
  /** It is, or contains, a type that is not determined yet. */
  readonly hasPlaceholderType: boolean;
  /** The type of both; null where there is none. */
  unify(registry: unknown, other: Type): Type | null;
}

export interface Checker {
  readonly registry: unknown;
  check(node: object, context: Context): Type;
  getType(name: string): Type;
  formatType(type: Type): string;
  createError(code: string, message: string, node: object): Error;
}

/** What a macro's expander is given: `receiver.name(args)`. */
export interface MacroCall {
  readonly ast: Node;
  readonly args: readonly Node[];
  readonly receiver: Node;
}

/** What takes the place of a node's own check and evaluation. Nodes among the other fields charge like all (budget.ts). */
export interface Macro {
  readonly async?: boolean;
  typeCheck(checker: Checker, own: unknown, context: Context): Type;
  evaluate(evaluator: Evaluator, own: unknown, context: Context): unknown;
}

export function isNode(value: unknown): value is Node {
  return (
    typeof value === 'object' &&
    value !== null &&
    'setMeta' in value &&
    typeof value.setMeta === 'function' &&
    'op' in value &&
    typeof value.op === 'string'
  );
}

/** The name that a macro's argument declares; undefined where it is no identifier. */
export function identifierOf(node: Node | undefined): string | undefined {
  return node?.op === 'id' && typeof node.args === 'string' ? node.args : undefined;
}

/** In the names of types: Kubernetes' `@`, which the library's have not. */
export const TYPE_MARK = '__at__';

/** As cel-go names types in messages: `list(int)`, `map(string, dyn)`, `optional_type(int)`. */
export function goType(name: string): string {
  return name
    .replaceAll('<', '(')
    .replaceAll('>', ')')
    .replaceAll('optional(', 'optional_type(')
    .replaceAll(TYPE_MARK, '@')
    .replaceAll('google.protobuf.Timestamp', 'timestamp')
    .replaceAll('google.protobuf.Duration', 'duration');
}

const isTreeNode = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, 'op') === 'string' && 'args' in value;

/** What the library makes of a macro call; its parts are nodes, too. */
function macroOf(node: object): unknown[] {
  const meta: unknown = Reflect.get(node, 'meta');
  if (typeof meta !== 'object' || meta === null) return [];
  const [alternate, macro]: unknown[] = [Reflect.get(meta, 'alternate'), Reflect.get(meta, 'macro')];
  return [alternate, ...(typeof macro === 'object' && macro !== null ? Object.values(macro) : [])];
}

/** Every node below `root`, with its parent. */
export function* nodesOf(root: object): Iterable<{ readonly node: object; readonly parent: object | undefined }> {
  const seen = new Set<object>();
  const open: { value: unknown; parent: object | undefined }[] = [{ value: root, parent: undefined }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, parent } = next;
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    if (Array.isArray(value)) for (const item of value) open.push({ value: item, parent });
    else if (isTreeNode(value)) {
      yield { node: value, parent };
      open.push({ value: Reflect.get(value, 'args'), parent: value });
      for (const part of macroOf(value)) open.push({ value: part, parent: value });
    } else if (parent !== undefined && Reflect.get(parent, 'op') === 'comprehension') {
      for (const part of Object.values(value)) open.push({ value: part, parent });
    }
  }
}
