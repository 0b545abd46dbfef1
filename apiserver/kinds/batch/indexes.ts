// Lists of indexes in jobs, "1,3-5,7": how many they name, what is wrong with them, and whether two overlap.

export type Indexes = { readonly count: number } | { readonly wrong: string };
interface Interval {
  readonly first: number;
  readonly last: number;
}

function parseIndex(text: string, completions: number): number | string {
  if (!/^[+-]?\d+$/.test(text)) return `cannot convert string to integer for index: ${JSON.stringify(text)}`;
  const index = Number(text);
  return index >= completions ? `too large index: ${JSON.stringify(text)}` : index;
}

function parseInterval(text: string, completions: number): Interval | string {
  const parts = text.split('-');
  const [from = '', to] = parts;
  if (parts.length > 2) {
    return `the fragment ${JSON.stringify(text)} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  const first = parseIndex(from, completions);
  if (typeof first === 'string') return first;
  if (to === undefined) return { first, last: first };
  const last = parseIndex(to, completions);
  if (typeof last === 'string') return last;
  return first >= last ? `non-increasing order, previous: ${first}, current: ${last}` : { first, last };
}

export function parseIndexes(text: string, completions: number): Indexes {
  if (text === '') return { count: 0 };
  let [count, previous] = [0, -1];
  for (const part of text.split(',')) {
    const interval = parseInterval(part, completions);
    if (typeof interval === 'string') return { wrong: interval };
    if (previous >= interval.first) {
      return { wrong: `non-increasing order, previous: ${previous}, current: ${interval.first}` };
    }
    count += interval.last - interval.first + 1;
    previous = interval.last;
  }
  return { count };
}

/** The first index that both have; parts that cannot be read are passed over. */
export function overlap(completed: string, failed: string, completions: number): number | undefined {
  const intervals = (text: string): Interval[] =>
    text === '' ? [] : text.split(',').flatMap((part) => readable(parseInterval(part, completions)));
  const [left, right] = [intervals(completed), intervals(failed)];
  let [i, j] = [0, 0];
  for (;;) {
    const [a, b] = [left[i], right[j]];
    if (a === undefined || b === undefined) return undefined;
    if (a.first <= b.last && b.first <= a.last) return Math.max(a.first, b.first);
    if (a.first <= b.first) i++;
    else j++;
  }
}

function readable(interval: Interval | string): Interval[] {
  return typeof interval === 'string' ? [] : [interval];
}
