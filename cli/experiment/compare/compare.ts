// Two results side by side: measures with difference and ratio, expectations whose outcome changed, and what only one of them
// has. Pure.

import type { ExpectationResult, ExperimentResult, MeasuredValue, MeasureSpec } from '../model.ts';
import { linesOf, type NumberLine } from '../report/values.ts';
import { parameterText, type Variation, variationsOf } from '../report/variations.ts';

export interface MeasureDifference {
  /** '' where both results have one variation. */
  readonly variation: string;
  readonly measure: MeasureSpec;
  /** Of repeats: their mean, where they are numbers. */
  readonly a: MeasuredValue | undefined;
  readonly b: MeasuredValue | undefined;
  /** b - a and b / a of numbers; of lists of numbers, of the pair that differs most. */
  readonly difference?: number;
  readonly ratio?: number;
  /** Within the tolerance. */
  readonly equal: boolean;
  /** In words, where the numbers do not say it. */
  readonly note: string;
}

export interface OutcomeDifference {
  readonly variation: string;
  readonly that: string;
  /** "met", or "met 2 of 3" of several repeats. */
  readonly a: string;
  readonly b: string;
}

export interface ResultComparison {
  readonly measures: readonly MeasureDifference[];
  /** Those that changed. */
  readonly outcomes: readonly OutcomeDifference[];
  readonly onlyA: readonly string[];
  readonly onlyB: readonly string[];
  /** How the circumstances differ: not counted as a difference. */
  readonly notes: readonly string[];
  readonly equal: boolean;
}

interface Pair {
  readonly label: string;
  readonly a: Variation;
  readonly b: Variation;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** What a variation measured: the mean of its repeats where all are numbers, or lists of as many numbers; else the first's. */
function measured(variation: Variation, name: string): MeasuredValue | undefined {
  const values = variation.runs.flatMap(({ measures }) => {
    const value = new Map(Object.entries(measures)).get(name);
    return value === undefined ? [] : [value];
  });
  const [first] = values;
  if (values.length < 2) return first;
  const numbers = values.flatMap((value) => (typeof value === 'number' ? [value] : []));
  if (numbers.length === values.length) return mean(numbers);
  const lists = values.map(plainNumbers);
  const [list] = lists;
  if (list === undefined || lists.some((each) => each?.length !== list.length)) return first;
  return list.map((_, index) => mean(lists.flatMap((each) => each?.[index] ?? [])));
}

/** A list that has numbers alone. */
function plainNumbers(value: MeasuredValue | undefined): readonly number[] | undefined {
  const [line] = linesOf(value);
  if (line?.by !== 'index' || !Array.isArray(value) || line.points.length !== value.length) return undefined;
  return line.points.map(([, y]) => y);
}

/** How far apart, as a part of the larger: 0 for equal, 1 for one that is zero. */
const distance = (a: number, b: number): number => (a === b ? 0 : Math.abs(b - a) / Math.max(Math.abs(a), Math.abs(b)));

type Numbers = Pick<MeasureDifference, 'difference' | 'ratio'>;

const numbersOf = (a: number, b: number): Numbers => ({ difference: b - a, ...(a === 0 ? {} : { ratio: b / a }) });

/** `tolerance`: a part of the larger of two numbers, 0.1 for a tenth. Pure. */
export function compareValues(
  a: MeasuredValue | undefined,
  b: MeasuredValue | undefined,
  tolerance: number,
): Pick<MeasureDifference, 'equal' | 'note' | 'difference' | 'ratio'> {
  if (typeof a === 'number' && typeof b === 'number') {
    return { ...numbersOf(a, b), equal: distance(a, b) <= tolerance, note: '' };
  }
  const [leftLines, rightLines] = [linesOf(a), linesOf(b)];
  const [[left], [right]] = [leftLines, rightLines];
  if (left !== undefined && right !== undefined && left.by === right.by) {
    if (left.by === 'time') return compareLines(leftLines, rightLines, tolerance);
    if (left.points.length !== right.points.length) {
      return { equal: false, note: `${left.points.length} values against ${right.points.length}` };
    }
    let worst: readonly [number, number, number] = [0, 0, -1];
    for (const [index, [, y]] of left.points.entries()) {
      const other = right.points[index]?.[1] ?? Number.NaN;
      if (worst[2] < 0 || distance(y, other) > distance(worst[0], worst[1])) worst = [y, other, index];
    }
    const equal = distance(worst[0], worst[1]) <= tolerance;
    const where = worst[0] === worst[1] ? '' : `value ${worst[2] + 1} of ${left.points.length} differs most`;
    return { ...numbersOf(worst[0], worst[1]), equal, note: where };
  }
  const equal = JSON.stringify(a) === JSON.stringify(b);
  return { equal, note: equal ? '' : 'different values' };
}

type Points = NumberLine['points'];

/** Series by their labels; the pair that differs most is named. */
function compareLines(
  a: readonly NumberLine[],
  b: readonly NumberLine[],
  tolerance: number,
): Pick<MeasureDifference, 'equal' | 'note' | 'difference' | 'ratio'> {
  const others = new Map(b.map(({ label, points }) => [label, points]));
  const pairs = a.flatMap(({ label, points }) => {
    const other = others.get(label);
    return other === undefined ? [] : [{ label, ...compareLevels(points, other, tolerance) }];
  });
  const [first, ...more] = pairs;
  if (first === undefined || pairs.length < Math.max(a.length, b.length)) {
    const labels = (lines: readonly NumberLine[]): string => lines.map(({ label }) => label || 'one').join(', ');
    return { equal: false, note: `series of ${labels(a)} against ${labels(b)}` };
  }
  const size = ({ difference = 0 }: typeof first): number => Math.abs(difference);
  const { label, ...worst } = more.reduce((most, each) => (size(each) > size(most) ? each : most), first);
  return {
    ...worst,
    equal: pairs.every(({ equal }) => equal),
    note: label === '' || worst.difference === 0 ? worst.note : `${worst.note}; ${label} differs most`,
  };
}

/** Two series over time by their means and largest values: their moments are never the same. */
function compareLevels(
  a: Points,
  b: Points,
  tolerance: number,
): Pick<MeasureDifference, 'equal' | 'note' | 'difference' | 'ratio'> {
  const values = (points: Points): readonly number[] => points.map(([, y]) => y);
  const largest = (points: Points): number => values(points).reduce((most, y) => Math.max(most, y), -Infinity);
  const [meanA, meanB] = [mean(values(a)), mean(values(b))];
  const equal = distance(meanA, meanB) <= tolerance && distance(largest(a), largest(b)) <= tolerance;
  return { ...numbersOf(meanA, meanB), equal, note: 'means over time' };
}

function outcomesOf(variation: Variation): ReadonlyMap<string, string> {
  const all = new Map<string, ExpectationResult['outcome'][]>();
  for (const { expectations } of variation.runs) {
    for (const { that, outcome } of expectations) all.set(that, [...(all.get(that) ?? []), outcome]);
  }
  const text = (outcomes: readonly ExpectationResult['outcome'][]): string => {
    const kinds = [...new Set(outcomes)];
    if (kinds.length === 1) return kinds[0] ?? '';
    return kinds
      .map((kind) => `${kind} ${outcomes.filter((each) => each === kind).length} of ${outcomes.length}`)
      .join(', ');
  };
  return new Map([...all].map(([that, outcomes]) => [that, text(outcomes)]));
}

const failures = ({ runs }: Variation): string => runs.flatMap(({ failure }) => failure ?? []).join('; ');

function notesOf(a: ExperimentResult, b: ExperimentResult): string[] {
  const rows: readonly (readonly [string, string, string])[] = [
    ['experiment', a.experiment.metadata.name, b.experiment.metadata.name],
    ['where', a.world, b.world],
    ['agent', a.agent, b.agent],
    ['verdict', a.verdict, b.verdict],
    ['runs', String(a.runs.length), String(b.runs.length)],
  ];
  return rows.flatMap(([what, left, right]) => (left === right ? [] : [`${what}: ${left} in A, ${right} in B`]));
}

/** `tolerance`: see compareValues. What only one has, and an outcome that changed, are differences whatever the tolerance. */
export function compareResults(a: ExperimentResult, b: ExperimentResult, tolerance: number): ResultComparison {
  const [left, right] = [variationsOf(a), variationsOf(b)];
  // With one variation each, what they measured is compared even where a parameter's value is another.
  const single = left.length === 1 && right.length === 1;
  const partner = (variation: Variation): Variation | undefined =>
    single ? right[0] : right.find(({ key }) => key === variation.key);
  const label = ({ parameters }: Variation): string =>
    single ? '' : parameterText(parameters, Object.keys(parameters));
  const pairs = left.flatMap((variation): Pair[] => {
    const other = partner(variation);
    return other === undefined ? [] : [{ label: label(variation), a: variation, b: other }];
  });
  const measures = [
    ...new Map([...a.experiment.measure, ...b.experiment.measure].map((each) => [each.name, each])).values(),
  ];
  const names = ({ experiment }: ExperimentResult): ReadonlySet<string> =>
    new Set(experiment.measure.map(({ name }) => name));
  const [inA, inB] = [names(a), names(b)];
  const common = measures.filter(({ name }) => inA.has(name) && inB.has(name));
  const differences = pairs.flatMap((pair) =>
    common.map((measure): MeasureDifference => {
      const [valueA, valueB] = [measured(pair.a, measure.name), measured(pair.b, measure.name)];
      return { variation: pair.label, measure, a: valueA, b: valueB, ...compareValues(valueA, valueB, tolerance) };
    }),
  );
  const only = inOneAlone(pairs, left, right, label);
  const onlyA = [...[...inA].filter((name) => !inB.has(name)).map((name) => `measure ${name}`), ...only.a];
  const onlyB = [...[...inB].filter((name) => !inA.has(name)).map((name) => `measure ${name}`), ...only.b];
  const outcomes = [...pairs.flatMap(changedOutcomes), ...pairs.flatMap(changedFailures)];
  const parameters =
    single && left[0]?.key !== right[0]?.key
      ? [`parameters: ${parametersOf(left[0]) || 'none'} in A, ${parametersOf(right[0]) || 'none'} in B`]
      : [];
  return {
    measures: differences,
    outcomes,
    onlyA,
    onlyB,
    notes: [...notesOf(a, b), ...parameters],
    equal: outcomes.length === 0 && onlyA.length === 0 && onlyB.length === 0 && differences.every(({ equal }) => equal),
  };
}

const parametersOf = (variation: Variation | undefined): string =>
  variation === undefined ? '' : parameterText(variation.parameters, Object.keys(variation.parameters));

/** Variations without a partner, and expectations of one side of a pair. */
function inOneAlone(
  pairs: readonly Pair[],
  left: readonly Variation[],
  right: readonly Variation[],
  label: (variation: Variation) => string,
): { readonly a: readonly string[]; readonly b: readonly string[] } {
  const missing = (all: readonly Variation[], paired: ReadonlySet<string>): string[] =>
    all.flatMap((each) => (paired.has(each.key) ? [] : [`variation ${label(each) || parametersOf(each) || '1'}`]));
  const expectations = (from: Variation[], to: Variation[]): string[] => {
    const found = from.flatMap((each, index) => {
      const other = to[index];
      const known = other === undefined ? new Map<string, string>() : outcomesOf(other);
      return [...outcomesOf(each).keys()].filter((that) => !known.has(that)).map((that) => `expectation ${that}`);
    });
    return [...new Set(found)];
  };
  const [as, bs] = [pairs.map(({ a }) => a), pairs.map(({ b }) => b)];
  return {
    a: [...missing(left, new Set(as.map(({ key }) => key))), ...expectations(as, bs)],
    b: [...missing(right, new Set(bs.map(({ key }) => key))), ...expectations(bs, as)],
  };
}

function changedOutcomes({ label, a, b }: Pair): OutcomeDifference[] {
  const other = outcomesOf(b);
  return [...outcomesOf(a)].flatMap(([that, outcome]) => {
    const now = other.get(that);
    return now === undefined || now === outcome ? [] : [{ variation: label, that, a: outcome, b: now }];
  });
}

function changedFailures({ label, a, b }: Pair): OutcomeDifference[] {
  const [before, after] = [failures(a), failures(b)];
  if ((before === '') === (after === '')) return [];
  return [{ variation: label, that: 'all steps are done', a: before || 'met', b: after || 'met' }];
}
