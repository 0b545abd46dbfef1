// The functions of the language that need no observations: counts, times, statistics. The table is also what the
// documentation's list and the check of a file before it runs are held against. Pure.

import { quantityMilli } from '../../../lib/quantity.ts';
import { OperationError } from './operators.ts';
import { type Arguments, equal, isList, RecordValue, typeOf, type Value } from './value.ts';

export interface FunctionDefinition {
  /** As in the documentation: "percentile(list, percent)". */
  readonly usage: string;
  /** Least and most positional arguments. */
  readonly arity: readonly [number, number];
  /** Names that arguments may have; "*" for any. */
  readonly named?: readonly string[];
}

type PureFunction = FunctionDefinition & { readonly run: (given: Arguments) => Value };

function listOf(value: Value | undefined, name: string): readonly Value[] {
  if (value === undefined || value === null) return [];
  if (!isList(value)) throw new OperationError(`${name} needs a list, not ${typeOf(value)}`);
  return value;
}

/** The numbers of a list; of records their times. What is not known is left out. */
function numbersOf(value: Value | undefined, name: string): number[] {
  return listOf(value, name).flatMap((item) => {
    const number = item instanceof RecordValue ? timeOf(item) : item;
    if (number === null) return [];
    if (typeof number !== 'number') throw new OperationError(`${name} needs a list of numbers, not of ${typeOf(item)}`);
    return [number];
  });
}

function timeOf(item: RecordValue): Value {
  const time = item.field('at');
  if (time === undefined) throw new OperationError(`${item.title} has no time`);
  return time;
}

function numberOf(value: Value | undefined, name: string): number | null {
  if (value === null || value === undefined) return null;
  if (value instanceof RecordValue) return numberOf(timeOf(value), name);
  if (typeof value !== 'number') throw new OperationError(`${name} needs a number, not ${typeOf(value)}`);
  return value;
}

/** `least` numbers are needed for an answer. */
function statistic(name: string, of: (sorted: readonly number[]) => number): PureFunction['run'] {
  return ({ positional }) => {
    const numbers = numbersOf(positional[0], name).toSorted((a, b) => a - b);
    return numbers.length === 0 ? null : of(numbers);
  };
}

/** Linear between the two nearest. `numbers` are in order and not none; `share` is from 0 to 1. */
function quantile(numbers: readonly number[], share: number): number {
  const place = (numbers.length - 1) * share;
  const below = numbers[Math.floor(place)] ?? 0;
  const above = numbers[Math.ceil(place)] ?? below;
  return below + (above - below) * (place - Math.floor(place));
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

function pairs(a: Value, b: Value): readonly (readonly [Value, Value])[] | undefined {
  if (!isList(a) && !isList(b)) return [[a, b]];
  const [left, right] = [isList(a) ? a : undefined, isList(b) ? b : undefined];
  if (left !== undefined && right !== undefined && left.length !== right.length) return undefined;
  const count = left?.length ?? right?.length ?? 0;
  return Array.from({ length: count }, (_, index) => [left?.[index] ?? null, right?.[index] ?? null] as const).map(
    ([x, y]) => [left === undefined ? a : x, right === undefined ? b : y] as const,
  );
}

/** Whether all pairs are close; lists of different lengths are not, and nothing is not known. */
function close(name: string, given: Arguments, allowed: (y: number, tolerance: number) => number): Value {
  const [a = null, b = null, third = null] = given.positional;
  const tolerance = numberOf(third, name);
  const all = pairs(a, b);
  if (all === undefined) return false;
  if (all.length === 0 || tolerance === null) return null;
  let known = true;
  for (const [left, right] of all) {
    const [x, y] = [numberOf(left, name), numberOf(right, name)];
    if (x === null || y === null) known = false;
    else if (Math.abs(x - y) > allowed(y, tolerance)) return false;
  }
  return known ? true : null;
}

function quantifier(name: string, all: boolean): PureFunction['run'] {
  return ({ positional }) => {
    const items = listOf(positional[0], name);
    for (const item of items) {
      if (item !== null && typeof item !== 'boolean') {
        throw new OperationError(`${name} needs a list of true and false, not of ${typeOf(item)}`);
      }
    }
    if (items.length === 0) return all ? null : false;
    if (items.includes(!all)) return !all;
    return items.includes(null) ? null : all;
  };
}

/** "*" stands for any characters. */
export function matchesText(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}

function matchesFilter(item: Value, filters: ReadonlyMap<string, Value>): boolean {
  if (!(item instanceof RecordValue)) throw new OperationError(`where needs a list of records, not of ${typeOf(item)}`);
  return [...filters].every(([name, wanted]) => {
    const found = item.field(name);
    if (found === undefined) return false;
    if (typeof wanted === 'string' && typeof found === 'string') return matchesText(wanted, found);
    return equal(found, wanted);
  });
}

/** Items of a list whose time is within [from, to). */
function inTime(name: string, list: Value | undefined, from: number | null, to: number | null): Value {
  if (from === null || to === null) return [];
  return listOf(list, name).filter((item) => {
    const time = numberOf(item, name);
    return time !== null && time >= from && time < to;
  });
}

/** For each time of the first list, how long until the next of the second. */
function between(a: Value | undefined, b: Value | undefined): Value {
  const [starts, ends] = [numbersOf(isList(a ?? null) ? a : [a ?? null], 'between'), numbersOf(b, 'between')];
  const sorted = ends.toSorted((x, y) => x - y);
  return starts.flatMap((start) => {
    const end = sorted.find((each) => each >= start);
    return end === undefined ? [] : [end - start];
  });
}

function define(
  usage: string,
  arity: FunctionDefinition['arity'],
  run: PureFunction['run'],
  named?: readonly string[],
): [string, PureFunction] {
  return [usage.slice(0, usage.indexOf('(')), { usage, arity, run, ...(named === undefined ? {} : { named }) }];
}

const rounded = (name: string, how: (value: number) => number): PureFunction['run'] => {
  const one = (value: Value): Value => {
    if (isList(value)) return value.map(one);
    const number = numberOf(value, name);
    return number === null ? null : how(number);
  };
  return ({ positional }) => one(positional[0] ?? null);
};

export const PURE_FUNCTIONS: ReadonlyMap<string, PureFunction> = new Map([
  define('count(list)', [1, 1], ({ positional }) => listOf(positional[0], 'count').length),
  define('first(list)', [1, 1], ({ positional }) => listOf(positional[0], 'first')[0] ?? null),
  define('last(list)', [1, 1], ({ positional }) => listOf(positional[0], 'last').at(-1) ?? null),
  define('times(list)', [1, 1], ({ positional }) => numbersOf(positional[0], 'times')),
  define('between(from, to)', [2, 2], ({ positional }) => between(positional[0], positional[1])),
  define('diff(list)', [1, 1], ({ positional }) => {
    const numbers = numbersOf(positional[0], 'diff');
    return numbers.slice(1).map((each, index) => each - (numbers[index] ?? 0));
  }),
  define(
    'min(list)',
    [1, 1],
    statistic('min', (numbers) => numbers[0] ?? 0),
  ),
  define(
    'max(list)',
    [1, 1],
    statistic('max', (numbers) => numbers.at(-1) ?? 0),
  ),
  define('sum(list)', [1, 1], ({ positional }) => sumOf(numbersOf(positional[0], 'sum'))),
  define(
    'mean(list)',
    [1, 1],
    statistic('mean', (numbers) => sumOf(numbers) / numbers.length),
  ),
  define(
    'median(list)',
    [1, 1],
    statistic('median', (numbers) => quantile(numbers, 0.5)),
  ),
  define('percentile(list, percent)', [2, 2], (given) => {
    const percent = numberOf(given.positional[1], 'percentile');
    if (percent === null || percent < 0 || percent > 100) throw new OperationError('a percentile is from 0 to 100');
    return statistic('percentile', (numbers) => quantile(numbers, percent / 100))(given);
  }),
  define('all(list)', [1, 1], quantifier('all', true)),
  define('any(list)', [1, 1], quantifier('any', false)),
  define('sort(list)', [1, 1], ({ positional }) => numbersOf(positional[0], 'sort').toSorted((a, b) => a - b)),
  define('distinct(list)', [1, 1], ({ positional }) => {
    const items = listOf(positional[0], 'distinct');
    return items.filter((item, index) => items.findIndex((other) => equal(other, item)) === index);
  }),
  define('slice(list, from, to)', [2, 3], ({ positional }) => {
    const [from, to] = [numberOf(positional[1], 'slice'), numberOf(positional[2], 'slice')];
    return listOf(positional[0], 'slice').slice(from ?? 0, to ?? undefined);
  }),
  define('abs(number)', [1, 1], rounded('abs', Math.abs)),
  define('round(number)', [1, 1], rounded('round', Math.round)),
  define('within(x, y, tolerance)', [3, 3], (given) => close('within', given, (_, tolerance) => tolerance)),
  define('near(x, y, ratio)', [3, 3], (given) => close('near', given, (y, ratio) => Math.abs(y) * ratio)),
  define(
    'where(list, field=value)',
    [1, 1],
    ({ positional, named }) => {
      return listOf(positional[0], 'where').filter((item) => matchesFilter(item, named));
    },
    ['*'],
  ),
  define('after(list, time)', [2, 2], ({ positional }) => {
    return inTime('after', positional[0], numberOf(positional[1], 'after'), Number.POSITIVE_INFINITY);
  }),
  define('before(list, time)', [2, 2], ({ positional }) => {
    return inTime('before', positional[0], Number.NEGATIVE_INFINITY, numberOf(positional[1], 'before'));
  }),
  define('matches(text, pattern)', [2, 2], ({ positional: [text, pattern] }) => {
    if (text === null || text === undefined) return null;
    if (typeof text !== 'string' || typeof pattern !== 'string') throw new OperationError('matches needs two texts');
    return matchesText(pattern, text);
  }),
  define('quantity(text)', [1, 1], ({ positional: [text = null] }) => {
    if (text === null) return null;
    if (typeof text !== 'string' && typeof text !== 'number')
      throw new OperationError('quantity needs a text as "64Mi"');
    try {
      return quantityMilli(text) / 1000;
    } catch (error) {
      if (error instanceof RangeError) throw new OperationError(error.message);
      throw error;
    }
  }),
]);
