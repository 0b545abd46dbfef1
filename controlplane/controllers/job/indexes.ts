// Sets of completion indexes, as a job's status writes them: "1,3-5,7". Ordered intervals, so that a million indexes that
// are done cost a few bytes. Pure.

export interface Interval {
  readonly first: number;
  readonly last: number;
}

/** In increasing order, with a gap between any two. */
export type Indexes = readonly Interval[];

export const NO_INDEXES: Indexes = [];

const NUMBER = /^[+-]?\d+$/;

/** What the text names below `completions`. Parts that cannot be read are passed over, as upstream does. */
export function parseIndexes(text: string, completions: number): Indexes {
  const intervals: Interval[] = [];
  for (const part of text.split(',')) {
    const [from = '', to = from] = part.split('-');
    if (!NUMBER.test(from)) continue;
    const first = Number(from);
    // Ordered: nothing behind it is below.
    if (first >= completions) break;
    if (NUMBER.test(to)) intervals.push({ first, last: Math.min(Number(to), completions - 1) });
  }
  return union(intervals, NO_INDEXES);
}

/** Two neighbours are written as two numbers, three and more as a range. */
export function formatIndexes(indexes: Indexes): string {
  const text = ({ first, last }: Interval): string => {
    if (first === last) return String(first);
    return last === first + 1 ? `${first},${last}` : `${first}-${last}`;
  };
  return indexes.map(text).join(',');
}

export function indexesOf(numbers: Iterable<number>): Indexes {
  return union(
    [...numbers].map((each) => ({ first: each, last: each })),
    NO_INDEXES,
  );
}

export function union(a: readonly Interval[], b: readonly Interval[]): Indexes {
  const merged: Interval[] = [];
  for (const next of [...a, ...b].sort((one, other) => one.first - other.first)) {
    const before = merged.at(-1);
    if (before === undefined || next.first > before.last + 1) merged.push(next);
    else merged[merged.length - 1] = { first: before.first, last: Math.max(before.last, next.last) };
  }
  return merged;
}

export function countIndexes(indexes: Indexes): number {
  return indexes.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

export function hasIndex(indexes: Indexes, index: number): boolean {
  return indexes.some(({ first, last }) => first <= index && index <= last);
}

/** How many indexes both have. */
export function countCommon(a: Indexes, b: Indexes): number {
  return countIndexes(a) + countIndexes(b) - countIndexes(union(a, b));
}

/** The lowest indexes below `completions` that are not in `taken`, `count` of them at most. */
export function lowestMissing(taken: Indexes, count: number, completions: number): readonly number[] {
  const found: number[] = [];
  let next = 0;
  for (const { first, last } of [...taken, { first: completions, last: completions }]) {
    for (; next < first && next < completions && found.length < count; next++) found.push(next);
    next = Math.max(next, last + 1);
  }
  return found;
}
