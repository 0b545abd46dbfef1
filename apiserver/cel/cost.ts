// What an expression may cost at most, estimated from the limits of the schema before there is any value: cel-go's checker.Cost
// with the estimates of k8s.io/apiserver/pkg/cel/library. Definitions are accepted or refused by it, so it counts as upstream,
// in upstream's units, whatever evaluations cost here (budget.ts). Pure.

import { getOwn } from '../../lib/own-property.ts';
import { type CallEstimate, callCost } from './cost-functions.ts';
import {
  add,
  asSize,
  type EntrySizes,
  type Estimate,
  exactly,
  factor,
  type Size,
  type SizedType,
  times,
  UNKNOWN,
  union,
} from './cost-sizes.ts';

/** A node of the library's tree. */
interface Node {
  readonly op: string;
  readonly args: unknown;
  readonly checkedType?: { readonly kind?: unknown; readonly name?: unknown; readonly valueType?: unknown };
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'op' in value && typeof value.op === 'string';
}

const SCALARS: ReadonlySet<string> = new Set([
  'bool',
  'int',
  'uint',
  'double',
  'google.protobuf.Timestamp',
  'google.protobuf.Duration',
]);
const CONVERSIONS: ReadonlyMap<string, string> = new Map([
  ['matchesRe2', 'matches'],
  ['goDuration', 'duration'],
  ['lowerAsciiOnly', 'lowerAscii'],
  ['upperAsciiOnly', 'upperAscii'],
]);
const LIST_BASE = 10;
const MAP_BASE = 30;

/** Below a value of which the schema says nothing. */
const NOWHERE: SizedType = { kind: 'dyn', maxElements: -1 };

const typeOf = (node: Node): string => {
  const name = node.checkedType?.name;
  return typeof name === 'string' ? name : 'dyn';
};
const isList = (type: string): boolean => type.startsWith('list');
const isMap = (type: string): boolean => type.startsWith('map');
const isText = (type: string): boolean => type === 'string' || type === 'bytes';

/** Lists and maps of the syntax, whose entries have a size of their own. */
function entriesOf(kind: EntrySizes['kind'], keys: readonly Size[], values: readonly Size[]): EntrySizes {
  const all = (sizes: readonly Size[]): Size =>
    sizes.reduce((sum, size) => ({ min: Math.min(sum.min, size.min), max: Math.max(sum.max, size.max) }), {
      min: sizes.length === 0 ? 0 : UNKNOWN.max,
      max: 0,
    });
  return { kind, key: all(keys), value: all(values) };
}

function unionOfEntries(a: EntrySizes | undefined, b: EntrySizes | undefined): EntrySizes | undefined {
  if (a === undefined || b === undefined) return undefined;
  return { kind: a.kind, key: union(a.key, b.key), value: union(a.value, b.value) };
}

type Local = Pick<Estimate, 'place' | 'size' | 'entries'>;
type Locals = ReadonlyMap<string, Local>;

/** Keys of a map have no limits of their own. */
const KEY: SizedType = { kind: 'string', maxElements: 0 };

class Estimator {
  readonly #variables: Readonly<Record<string, SizedType>>;

  constructor(variables: Readonly<Record<string, SizedType>>) {
    this.#variables = variables;
  }

  of(value: unknown, locals: Locals): Estimate {
    if (!isNode(value)) return { cost: 0, size: undefined, place: undefined, entries: undefined, type: 'dyn' };
    const type = typeOf(value);
    const { cost, size, place, entries, type: known = type } = this.#parts(value, type, locals);
    // What the declaration says goes before what the type says.
    const declared = sizeAt(place);
    const byType = SCALARS.has(known) ? exactly(1) : undefined;
    const own = value.op === 'id' ? locals.get(String(value.args))?.size : undefined;
    return { cost, size: size ?? declared ?? byType ?? own, place, entries, type: known };
  }

  #parts(node: Node, type: string, locals: Locals): Partial<Estimate> & { readonly cost: number } {
    const args: readonly unknown[] = Array.isArray(node.args) ? node.args : [node.args];
    switch (node.op) {
      case 'value':
        return { cost: 0, size: literalSize(args[0]) };
      case 'id':
        return this.#identifier(String(args[0]), locals);
      case '.':
        return this.#select(this.of(args[0], locals), String(args[1]));
      case 'list': {
        const items = args.map((item) => this.of(item, locals));
        const sizes = items.map(({ size }) => asSize(size));
        return {
          cost: LIST_BASE + sum(items),
          size: exactly(items.length),
          entries: { ...entriesOf('list', [], sizes), key: exactly(1) },
        };
      }
      case 'map': {
        const pairs = args.map((pair) => (Array.isArray(pair) ? pair : []).map((part) => this.of(part, locals)));
        const sizes = (index: number): Size[] => pairs.map((pair) => asSize(pair[index]?.size));
        const cost = MAP_BASE + sum(pairs.flat());
        return { cost, size: exactly(pairs.length), entries: entriesOf('map', sizes(0), sizes(1)) };
      }
      case '?:':
        return this.#conditional(args.map((part) => this.of(part, locals)));
      case '&&':
      case '||':
        return { cost: sum(args.map((part) => this.of(part, locals))) };
      case 'call':
        return this.#call(node, String(args[0]), undefined, argumentsOf(args[1]), type, locals);
      case 'rcall':
        return this.#call(node, String(args[0]), args[1], argumentsOf(args[2]), type, locals);
      default:
        return this.#operator(
          node.op,
          args.map((part) => (isNode(part) ? this.of(part, locals) : undefined)).filter((one) => one !== undefined),
        );
    }
  }

  #identifier(name: string, locals: Locals): Partial<Estimate> & { readonly cost: number } {
    const local = locals.get(name);
    // Upstream takes the name of a type for the value that the rule is about.
    const place = local === undefined ? (getOwn(this.#variables, name) ?? this.#variables['self']) : local.place;
    return { cost: 1, place, entries: local?.entries };
  }

  #select(operand: Estimate, field: string): Partial<Estimate> & { readonly cost: number } {
    const { place, type } = operand;
    const isCharged =
      isMap(type) || isObjectType(type) || (type !== 'dyn' && (place?.kind === 'map' || place?.kind === 'object'));
    // Upstream takes a field of a new value for the value that the rule is about.
    const found = place === undefined ? this.#variables['self'] : (getOwn(place.fields, field) ?? NOWHERE);
    return { cost: operand.cost + (isCharged ? 1 : 0), place: found };
  }

  #conditional([condition, yes, no]: readonly Estimate[]): Partial<Estimate> & { readonly cost: number } {
    if (condition === undefined || yes === undefined || no === undefined) return { cost: 0 };
    return {
      cost: condition.cost + Math.max(yes.cost, no.cost),
      size: union(asSize(yes.size), asSize(no.size)),
      entries: unionOfEntries(yes.entries, no.entries),
    };
  }

  #operator(op: string, args: readonly Estimate[]): Partial<Estimate> & { readonly cost: number } {
    const [left, right] = args;
    const own = sum(args);
    if (left === undefined) return { cost: 1 };
    if (right === undefined) return { cost: 1 + own };
    const types = [left.type, right.type];
    // Where one side is known, the other one has its type when it is evaluated.
    const known = left.type === 'dyn' ? right.type : left.type;
    const isDyn = known === 'dyn';
    switch (op) {
      case '[]': {
        // As in #select.
        const place = left.place === undefined ? this.#variables['self'] : (left.place.items ?? NOWHERE);
        return { cost: 1 + own, place, size: left.entries?.value };
      }
      case '==':
      case '!=':
        return { cost: own + (types.every((type) => CONSTANT.has(type)) ? 1 : comparison(left, right)) };
      case '<':
      case '<=':
      case '>':
      case '>=': {
        const texts = comparison(left, right);
        return { cost: own + (isDyn ? Math.max(1, texts) : isText(known) ? texts : 1) };
      }
      case '+': {
        const size = add(asSize(left.size), asSize(right.size));
        const isSized = isDyn || isText(known) || isList(known);
        const cost = isText(known) || isDyn ? Math.max(factor(size.max, 0.1), isDyn ? 1 : 0) : 1;
        return { cost: own + cost, ...(isSized ? { size } : {}), entries: unionOfEntries(left.entries, right.entries) };
      }
      case 'in': {
        const items = asSize(right.size).max;
        return { cost: own + (isMap(right.type) ? 1 : right.type === 'dyn' ? Math.max(1, items) : items) };
      }
      default:
        return { cost: 1 + own };
    }
  }

  #call(
    node: Node,
    written: string,
    receiver: unknown,
    args: readonly unknown[],
    type: string,
    locals: Locals,
  ): Partial<Estimate> & { readonly cost: number } {
    const name = CONVERSIONS.get(written) ?? written;
    if (receiver === undefined && name === 'has') {
      const [field] = args;
      return { cost: isNode(field) && Array.isArray(field.args) ? this.of(field.args[0], locals).cost : 0 };
    }
    const macro = receiver === undefined ? undefined : this.#macro(node, name, receiver, args, locals);
    if (macro !== undefined) return macro;
    const given = args.map((arg) => this.of(arg, locals));
    if (receiver === undefined && name === 'dyn') {
      const [arg] = given;
      return { cost: 1 + sum(given), size: arg?.size, entries: arg?.entries };
    }
    const library = namespaceOf(receiver, locals, this.#variables);
    const target = receiver === undefined || library !== '' ? undefined : this.of(receiver, locals);
    const { cost, size }: CallEstimate = callCost(`${library}${name}`, target, given, type);
    return { cost: (target?.cost ?? 0) + sum(given) + cost, size };
  }

  /** Undefined for a call that is no macro. */
  #macro(
    node: Node,
    name: string,
    receiver: unknown,
    args: readonly unknown[],
    locals: Locals,
  ): (Partial<Estimate> & { readonly cost: number }) | undefined {
    const [variable, ...rest] = args;
    if (!isNode(variable) || variable.op !== 'id') return undefined;
    const local = String(variable.args);
    if (isNode(receiver) && receiver.op === 'id' && receiver.args === 'cel' && name === 'bind') {
      const init = this.of(rest[0], locals);
      const body = this.of(rest[1], new Map([...locals, [local, init]]));
      // Of the empty range that the macro is made of.
      return { ...body, cost: LIST_BASE + init.cost + body.cost };
    }
    if (name === 'optMap' || name === 'optFlatMap') {
      const value = this.of(receiver, locals);
      const unknown = { place: undefined, size: undefined, entries: undefined };
      const body = this.of(rest[0], new Map([...locals, [local, unknown]]));
      // hasValue() ? optional.of(<the body, with value() bound to the name>) : optional.none()
      const isFlat = name === 'optFlatMap';
      return { cost: 1 + value.cost + LIST_BASE + 1 + value.cost + body.cost + (isFlat ? 0 : 1) };
    }
    const steps = STEPS.get(`${name}/${args.length}`);
    if (steps !== undefined) {
      const range = this.of(receiver, locals);
      const item = itemOf(range, this.#variables['self']);
      return this.#fold(node, steps, range, item, rest, new Map([...locals, [local, item]]));
    }
    const [second, ...parts] = rest;
    const pairs = PAIR_STEPS.get(`${name}/${args.length}`);
    if (pairs === undefined || !isNode(second) || second.op !== 'id') return undefined;
    const range = this.of(receiver, locals);
    const { key, value } = pairOf(range, this.#variables['self']);
    const inner = new Map([...locals, [local, key], [String(second.args), value]]);
    return this.#fold(node, pairs, range, value, parts, inner);
  }

  #fold(
    node: Node,
    steps: Steps,
    range: Estimate,
    item: Local,
    args: readonly unknown[],
    inner: Locals,
  ): Partial<Estimate> & { readonly cost: number } {
    const parts = args.map((part) => this.of(part, inner));
    const last = steps.makesList === 'items' ? (sizeAt(item.place) ?? item.size) : parts.at(-1)?.size;
    const count = asSize(range.size);
    const cost = range.cost + steps.before + times(count.max, steps.each(parts.map((part) => part.cost)));
    if (steps.makesList === undefined) return { cost, size: exactly(1) };
    const value = asSize(last);
    if (steps.makesList === 'map') return { cost, size: count, type: typeOf(node) };
    return {
      cost,
      size: count,
      entries: { kind: 'list', key: exactly(1), value: { min: 0, max: value.max } },
      type: typeOf(node),
    };
  }
}

interface Steps {
  /** What the macro costs once: the accumulator, the result. */
  readonly before: number;
  /** And for each item, of what its arguments cost. */
  each(parts: readonly number[]): number;
  /** Of what the list that it returns is made. */
  readonly makesList?: 'items' | 'results' | 'map';
}

const of = (parts: readonly number[], index: number): number => parts[index] ?? 0;
/** What cel-go's macros expand to, counted. By name and number of arguments. */
const STEPS: ReadonlyMap<string, Steps> = new Map<string, Steps>([
  ['all/2', { before: 1, each: (parts) => 3 + of(parts, 0) }],
  ['exists/2', { before: 1, each: (parts) => 4 + of(parts, 0) }],
  ['exists_one/2', { before: 2, each: (parts) => of(parts, 0) + 2 }],
  ['existsOne/2', { before: 2, each: (parts) => of(parts, 0) + 2 }],
  ['map/2', { before: 11, each: (parts) => 12 + of(parts, 0), makesList: 'results' }],
  ['map/3', { before: 11, each: (parts) => of(parts, 0) + 12 + of(parts, 1), makesList: 'results' }],
  ['filter/2', { before: 11, each: (parts) => of(parts, 0) + 13, makesList: 'items' }],
]);

/** The same with two variables. */
const PAIR_STEPS: ReadonlyMap<string, Steps> = new Map<string, Steps>([
  ['all/3', { before: 1, each: (parts) => 3 + of(parts, 0) }],
  ['exists/3', { before: 1, each: (parts) => 4 + of(parts, 0) }],
  ['exists_one/3', { before: 2, each: (parts) => of(parts, 0) + 2 }],
  ['existsOne/3', { before: 2, each: (parts) => of(parts, 0) + 2 }],
  ['transformList/3', { before: 11, each: (parts) => 12 + of(parts, 0), makesList: 'results' }],
  ['transformList/4', { before: 11, each: (parts) => of(parts, 0) + 12 + of(parts, 1), makesList: 'results' }],
  ['transformMap/3', { before: 31, each: (parts) => 3 + of(parts, 0), makesList: 'map' }],
  ['transformMap/4', { before: 31, each: (parts) => of(parts, 0) + 3 + of(parts, 1), makesList: 'map' }],
  ['transformMapEntry/3', { before: 31, each: (parts) => 2 + of(parts, 0), makesList: 'map' }],
  ['transformMapEntry/4', { before: 31, each: (parts) => of(parts, 0) + 2 + of(parts, 1), makesList: 'map' }],
]);

/** What the variables of such a macro are: an index and an item, or a key and its value. */
function pairOf({ place, entries, type }: Estimate, root: SizedType | undefined): Record<'key' | 'value', Local> {
  const kind = entries?.kind ?? (isList(type) ? 'list' : isMap(type) ? 'map' : place?.kind);
  const isOfList = kind === 'list';
  const at = (found: SizedType | undefined): SizedType | undefined => (place === undefined ? root : found);
  return {
    key: {
      place: at(!isOfList && place?.kind === 'map' ? KEY : NOWHERE),
      size: entries?.key,
      entries: undefined,
    },
    value: { place: at(place?.items ?? NOWHERE), size: entries?.value, entries: undefined },
  };
}

/** What a macro's variable is: an item of a list, or a key of a map. Upstream takes those of a new list for `root`. */
function itemOf({ place, entries, type }: Estimate, root: SizedType | undefined): Local {
  const kind = entries?.kind ?? (isList(type) ? 'list' : isMap(type) ? 'map' : place?.kind);
  const isOfList = kind === 'list';
  const item = place === undefined ? root : isOfList ? (place.items ?? NOWHERE) : place.kind === 'map' ? KEY : NOWHERE;
  return { place: item, size: isOfList ? entries?.value : entries?.key, entries: undefined };
}

function sizeAt(place: SizedType | undefined): Size | undefined {
  return place === undefined || place === NOWHERE ? undefined : { min: 0, max: place.maxElements };
}

/** "sets." of sets.contains(a, b): a library, and no value. */
function namespaceOf(receiver: unknown, locals: Locals, variables: Readonly<Record<string, SizedType>>): string {
  if (!isNode(receiver) || receiver.op !== 'id') return '';
  const name = String(receiver.args);
  return locals.has(name) || getOwn(variables, name) !== undefined ? '' : `${name}.`;
}

function argumentsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isObjectType(type: string): boolean {
  return type.startsWith('selfType');
}

/** Equal at a cost of one. */
const CONSTANT: ReadonlySet<string> = new Set([
  'IP',
  'CIDR',
  'Quantity',
  'Semver',
  'net.IP',
  'net.CIDR',
  'kubernetes.Quantity',
]);

function comparison(left: Estimate, right: Estimate): number {
  return factor(Math.min(asSize(left.size).max, asSize(right.size).max), 0.1);
}

function literalSize(value: unknown): Size | undefined {
  if (typeof value === 'string') return exactly([...value].length);
  return value instanceof Uint8Array ? exactly(value.length) : exactly(1);
}

function sum(parts: readonly Estimate[]): number {
  return parts.reduce((total, { cost }) => total + cost, 0);
}

/** `variables`: what the expression is about ("self"). `root`: the library's tree, with its types checked. */
export function estimateCost(root: unknown, variables: Readonly<Record<string, SizedType>>): number {
  return new Estimator(variables).of(root, new Map()).cost;
}
