// What one evaluation may cost. Every node of an expression's tree charges for itself and for the size of its result;
// regular expressions and comparisons charge for what they read. An evaluation is synchronous, so the budget in use is a
// variable of this module. The limit is chosen so that nothing a client sends occupies the event loop for 50 ms.

import { nodesOf } from './library.ts';

/** Thrown once the budget is used up; one instance, because a comprehension may catch it for each of its items. */
class BudgetExceeded extends Error {
  override name = 'BudgetExceeded';
}
const EXCEEDED = new BudgetExceeded('operation cancelled: actual cost limit exceeded');

/** For all expressions of one object or one request together. */
export const DEFAULT_BUDGET = 150_000;

export class CelBudget {
  readonly limit: number;
  left: number;
  constructor(limit: number = DEFAULT_BUDGET) {
    this.limit = limit;
    this.left = limit;
  }
  get exceeded(): boolean {
    return this.left < 0;
  }
}

let current: CelBudget | undefined;

/** Runs `evaluation` on this budget. */
export function onBudget<T>(budget: CelBudget, evaluation: () => T): T {
  const before = current;
  current = budget;
  try {
    return evaluation();
  } finally {
    current = before;
  }
}

/** Takes `units` (about 100 ns of work each) from the budget. Throws when there are none left. */
export function charge(units: number): void {
  if (current === undefined) return;
  current.left -= units;
  if (current.left < 0) throw EXCEEDED;
}

export function isExceeded(error: unknown): boolean {
  return error === EXCEEDED;
}

/** Characters that cost one unit. */
const TEXT_UNIT = 64;

/** What a value costs that was just made or is about to be iterated, in O(1). */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length / TEXT_UNIT;
  if (Array.isArray(value)) return value.length;
  if (value instanceof Uint8Array) return value.length / TEXT_UNIT;
  if (value instanceof Map || value instanceof Set) return value.size;
  return 0;
}

/** The same for what is iterated: a plain object by its keys. */
function iterationsOf(value: unknown): number {
  const size = sizeOf(value);
  if (size > 0 || typeof value !== 'object' || value === null) return size;
  return Object.keys(value).length;
}

/** Charges for every part of the value: for comparisons, which read it whole. */
export function chargeDeep(value: unknown): void {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    charge(1 + sizeOf(next));
    if (Array.isArray(next)) for (const item of next) open.push(item);
    else if (next instanceof Map) for (const item of next.values()) open.push(item);
    else if (typeof next === 'object' && next !== null) for (const item of Object.values(next)) open.push(item);
  }
}

type Evaluate = (evaluator: unknown, node: unknown, context: unknown) => unknown;

function isEvaluate(value: unknown): value is Evaluate {
  return typeof value === 'function';
}

const COMPARISONS: ReadonlySet<unknown> = new Set(['==', '!=', 'in']);
/** Nodes whose result is made anew; the others' is part of a variable. */
const MAKERS: ReadonlySet<unknown> = new Set(['+', 'list', 'map', 'call', 'rcall']);

/** Arguments of these are read by the function. */
const CALLS: ReadonlySet<unknown> = new Set(['call', 'rcall']);
/** A part of a time in a zone: the runtime formats the time for it. */
const ZONED = 500;

/** What a call costs beside its arguments and its result; functions/ charge for themselves. */
function callCost(node: object): number {
  const args: unknown = Reflect.get(node, 'args');
  if (Reflect.get(node, 'op') !== 'rcall' || !Array.isArray(args)) return 0;
  const [name, , given]: unknown[] = args;
  return typeof name === 'string' && name.startsWith('get') && Array.isArray(given) && given.length > 0 ? ZONED : 0;
}

function isIterated(node: object, parent: object | undefined): boolean {
  const args: unknown = parent === undefined ? undefined : Reflect.get(parent, 'args');
  return typeof args === 'object' && args !== null && Reflect.get(args, 'iterable') === node;
}

/** A failed step: the error has been made. */
const FAILURE = 20;
/** A comprehension goes on over all its items, even where each of them fails. */
const ITEM = 3;

/** Makes every node of the tree charge. The library stores a node's evaluation in the node, so that is where it is met. */
export function meter(root: object): void {
  for (const { node, parent } of nodesOf(root)) {
    const first: unknown = Reflect.get(node, 'evaluate');
    if (!isEvaluate(first)) continue;
    const isCompared = parent !== undefined && COMPARISONS.has(Reflect.get(parent, 'op'));
    const isArgument = parent !== undefined && CALLS.has(Reflect.get(parent, 'op'));
    const own = 1 + callCost(node);
    const perItem = isIterated(node, parent) ? ITEM : MAKERS.has(Reflect.get(node, 'op')) ? 1 : 0;
    let evaluate = first;
    const metered: Evaluate = (evaluator, self, context) => {
      charge(own);
      let result: unknown;
      try {
        result = evaluate.call(node, evaluator, self, context);
      } catch (error) {
        if (error !== EXCEEDED) charge(FAILURE);
        throw error;
      }
      if (perItem > 0) charge(perItem * iterationsOf(result));
      if (isCompared) chargeDeep(result);
      else if (isArgument && typeof result === 'string') charge(sizeOf(result));
      return result;
    };
    Object.defineProperty(node, 'evaluate', {
      get: () => metered,
      set: (value: unknown) => {
        if (isEvaluate(value)) evaluate = value;
      },
    });
  }
}

/** The names of functions and methods in the tree, for `rename` to change. */
export function rename(root: object, names: ReadonlyMap<string, string>): void {
  for (const { node } of nodesOf(root)) {
    const op: unknown = Reflect.get(node, 'op');
    const args: unknown = Reflect.get(node, 'args');
    if ((op !== 'call' && op !== 'rcall') || !Array.isArray(args)) continue;
    const replacement = names.get(`${op}:${String(args[0])}`);
    if (replacement !== undefined) args[0] = replacement;
  }
}
