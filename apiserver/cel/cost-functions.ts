// What calls of functions cost at most, and how large their results are, by the sizes of what they read: the table of
// k8s.io/apiserver/pkg/cel/library and of cel-go. Pure.

import { add, asSize, type Estimate, exactly, factor, product, type Size, times } from './cost-sizes.ts';

/** Of the call alone, without its arguments. */
export interface CallEstimate {
  readonly cost: number;
  readonly size?: Size;
}

type Given = readonly Estimate[];
type Target = Estimate | undefined;

/** Reading a string once costs this much of its length. */
const TRAVERSAL = 0.1;
/** A regular expression, of its length. */
const REGEX = 0.25;
/** Names' formats are checked by expressions of this length at most. */
const FORMAT = 128;

const traversal = (size: number): number => factor(size, TRAVERSAL);
const sizeOf = (value: Target): Size => asSize(value?.size);
const first = (args: Given): Size => sizeOf(args[0]);

function matching(text: Size, pattern: Size): number {
  return times(traversal(text.max + 1), factor(pattern.max, REGEX));
}

/** isSorted, sum, max, min and both searches: each item once, and all of a text. */
function scan(target: Target): CallEstimate {
  const size = sizeOf(target);
  const item = itemType(target);
  if (item === undefined) return { cost: traversal(size.max) };
  const items = target?.place?.items;
  const itemSize = items === undefined ? asSize(undefined) : { min: 0, max: items.maxElements };
  const isText = item === 'string' || item === 'bytes';
  return { cost: times(size.max, 1 + (isText ? traversal(itemSize.max) : 0)) };
}

function itemType(target: Target): string | undefined {
  return /^list<(.*)>$/.exec(target?.type ?? '')?.[1];
}

/** The longest result of replacing as much as can be. */
function replaced(text: Size, what: Size, by: Size): Size {
  let [count, kept] = [0, 0];
  if (what.min === 0) [count, kept] = [text.max + 1, text.max];
  else if (by.max <= what.min) kept = text.max;
  else count = Math.ceil(text.max / what.min);
  let [least, left] = [0, 0];
  if (what.max === 0) [least, left] = [text.min + 1, text.min];
  else if (what.max > by.min) least = Math.ceil(text.min / what.max);
  return add(product({ min: least, max: count }, by), { min: left, max: kept });
}

function joined(target: Target, args: Given): CallEstimate {
  const list = sizeOf(target);
  const items = target?.place?.items;
  const item = items === undefined ? asSize(undefined) : { min: 0, max: items.maxElements };
  let size = itemType(target) === undefined ? exactly(0) : product(list, item);
  if (args.length > 0) {
    const between = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
    size = add(size, product(first(args), between));
  }
  return { cost: traversal(size.max), size };
}

/** Of comparing two addresses of 16 bytes, and of reading one. */
const ADDRESSES = 4;
const ADDRESS = 2;

/** Whether an argument is text that is parsed first. */
const parsed = (args: Given): number => (args[0]?.type === 'string' ? traversal(first(args).max) : 0);

type Row = (target: Target, args: Given, type: string) => CallEstimate;
const firstOnce: Row = (_target, args) => ({ cost: traversal(first(args).max) });
const sameText: Row = (target) => ({ cost: traversal(sizeOf(target).max), size: sizeOf(target) });
const sets =
  (by: number): Row =>
  (_target, args) => ({ cost: 1 + times(times(first(args).max, sizeOf(args[1]).max), by) });

/** By name, "library.name" for functions of a library. */
const ROWS: ReadonlyMap<string, Row> = new Map<string, Row>([
  ...['isSorted', 'sum', 'max', 'min', 'indexOf', 'lastIndexOf'].map((name): [string, Row] => [name, scan]),
  ...['lowerAscii', 'upperAscii', 'substring', 'trim'].map((name): [string, Row] => [name, sameText]),
  ...['url', 'quantity', 'isQuantity', 'semver', 'isSemver', 'cidr', 'isIP', 'isCIDR'].map((name): [string, Row] => [
    name,
    firstOnce,
  ]),
  ['startsWith', firstOnce],
  ['endsWith', firstOnce],
  ['contains', (target, args) => ({ cost: times(traversal(sizeOf(target).max), traversal(first(args).max)) })],
  ['matches', (target, args) => matches(target, args)],
  [
    'find',
    (target, args) => ({ cost: matching(sizeOf(target), first(args)), size: { min: 0, max: sizeOf(target).max } }),
  ],
  [
    'findAll',
    (target, args) => ({ cost: matching(sizeOf(target), first(args)), size: { min: 0, max: sizeOf(target).max } }),
  ],
  [
    'replace',
    (target, args) => ({
      cost: factor(sizeOf(target).max, 2 * TRAVERSAL),
      size: replaced(sizeOf(target), first(args), sizeOf(args[1])),
    }),
  ],
  [
    'split',
    (target) => ({ cost: factor(sizeOf(target).max, 2 * TRAVERSAL), size: { min: 0, max: sizeOf(target).max } }),
  ],
  ['join', joined],
  ['format', (target) => ({ cost: traversal(sizeOf(target).max) })],
  ['validate', (_target, args) => ({ cost: factor(traversal(first(args).max), FORMAT * REGEX) })],
  ['containsIP', (_target, args) => ({ cost: ADDRESSES + parsed(args) })],
  ['containsCIDR', (_target, args) => ({ cost: ADDRESSES + ADDRESS + 1 + parsed(args) })],
  // Of text; the address of a network is at hand.
  ['ip', (target, args) => (target === undefined ? { cost: traversal(first(args).max) } : { cost: 1 })],
  ['ip.isCanonical', (_target, args) => ({ cost: factor(first(args).max, 2 * TRAVERSAL) })],
  ['string', (_target, args) => converted(args, 'bytes', ({ min, max }) => ({ min: Math.floor(min / 4), max }))],
  ['bytes', (_target, args) => converted(args, 'string', ({ min, max }) => ({ min, max: max * 4 }))],
  [
    'strings.quote',
    (_target, args) => ({
      cost: traversal(first(args).max),
      size: { min: first(args).min + 2, max: first(args).max * 2 + 2 },
    }),
  ],
  ['sets.contains', sets(1)],
  ['sets.intersects', sets(1)],
  ['sets.equivalent', sets(2)],
]);

function matches(target: Target, args: Given): CallEstimate {
  return target === undefined ? { cost: 1 } : { cost: matching(sizeOf(target), first(args)) };
}

function converted(args: Given, from: string, size: (of: Size) => Size): CallEstimate {
  if (args[0]?.type !== from && args[0]?.type !== 'dyn') return { cost: 1 };
  const cost = traversal(first(args).max);
  return { cost: args[0].type === 'dyn' ? Math.max(1, cost) : cost, size: size(first(args)) };
}

/** Any function that is not in the table costs 1. */
export function callCost(name: string, target: Target, args: Given, type: string): CallEstimate {
  return ROWS.get(name)?.(target, args, type) ?? { cost: 1 };
}
