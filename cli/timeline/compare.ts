// Two timelines side by side: which step of one is which of the other, what took longer, what only one of them has. Names that
// differ from run to run (ids, veth links, random suffixes) count as equal. Pure.

import type { Bar, LaneId, Owner, Timeline } from './model.ts';
import { timeByOwner } from './owners.ts';

export type Verdict = 'same' | 'slower' | 'faster' | 'only A' | 'only B';

/** One step, in both or in one. `slower` and `faster`: B against A. */
export interface Difference {
  readonly lane: LaneId;
  /** As A calls it, or B where A has none. */
  readonly name: string;
  readonly a: string | undefined;
  readonly b: string | undefined;
  /** ms; undefined where it is missing. */
  readonly msA: number | undefined;
  readonly msB: number | undefined;
  readonly verdict: Verdict;
}

export interface Comparison {
  /** By lane, and in the order of A. */
  readonly differences: readonly Difference[];
  readonly owners: readonly { readonly owner: Owner; readonly msA: number; readonly msB: number }[];
  /** Of the critical paths, ms. */
  readonly totalA: number | undefined;
  readonly totalB: number | undefined;
}

/** Less is noise: ms, and as a part of the longer one. */
const NOISE_MS = 2;
const NOISE_PART = 0.2;

/** Without what is random in it. */
export function stableName(name: string): string {
  return name
    .replace(/\b(veth|cali|nl-)[0-9a-f]+\b/g, '$1*')
    .replace(/\b(kube-api-access)-[a-z0-9]{5}\b/g, '$1-*')
    .replace(/\bnodelet-[0-9a-f]{8}\b/g, 'nodelet-*')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '*')
    .replace(/\b[0-9a-f]{12,64}\b/g, '*');
}

/** Steps by lane, name and how often that was there before. */
function keyed(bars: readonly Bar[]): Map<string, Bar> {
  const counts = new Map<string, number>();
  const steps = new Map<string, Bar>();
  for (const bar of bars) {
    const name = `${bar.lane} ${stableName(bar.name)}`;
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    steps.set(`${name} ${count}`, bar);
  }
  return steps;
}

export function verdictOf(msA: number, msB: number): Verdict {
  const delta = msB - msA;
  if (Math.abs(delta) <= Math.max(NOISE_MS, NOISE_PART * Math.max(msA, msB))) return 'same';
  return delta > 0 ? 'slower' : 'faster';
}

const duration = ({ start, end }: Bar): number => end - start;

/** How long a container lives is no part of a start, and depends on when the recording ended. */
const isCompared = ({ lane }: Bar): boolean => lane !== 'containers';

/** The steps within the critical path's time; all where there is none. */
function stepsOf({ bars, critical }: Timeline): readonly Bar[] {
  return bars.filter((bar) => isCompared(bar) && (critical === undefined || bar.start <= critical.end));
}

export function compareTimelines(a: Timeline, b: Timeline): Comparison {
  const [stepsA, stepsB] = [keyed(stepsOf(a)), keyed(stepsOf(b))];
  const differences: Difference[] = [];
  for (const [key, bar] of stepsA) {
    const other = stepsB.get(key);
    const msA = duration(bar);
    const msB = other === undefined ? undefined : duration(other);
    const verdict = msB === undefined ? 'only A' : verdictOf(msA, msB);
    differences.push({ lane: bar.lane, name: bar.name, a: bar.id, b: other?.id, msA, msB, verdict });
  }
  for (const [key, bar] of stepsB) {
    if (stepsA.has(key)) continue;
    const msB = duration(bar);
    differences.push({
      lane: bar.lane,
      name: bar.name,
      a: undefined,
      b: bar.id,
      msA: undefined,
      msB,
      verdict: 'only B',
    });
  }
  const [ownersA, ownersB] = [a, b].map(({ critical }) => new Map(critical === undefined ? [] : timeByOwner(critical)));
  const owners = [...new Set([...(ownersA?.keys() ?? []), ...(ownersB?.keys() ?? [])])];
  const total = ({ critical }: Timeline): number | undefined =>
    critical === undefined ? undefined : critical.end - critical.start;
  return {
    differences,
    owners: owners.map((owner) => ({ owner, msA: ownersA?.get(owner) ?? 0, msB: ownersB?.get(owner) ?? 0 })),
    totalA: total(a),
    totalB: total(b),
  };
}

/** A step is slower or faster than its counterpart in the other timeline: for a bar of A (0), the other way round. */
export function verdictIn(pane: number, verdict: Verdict): Verdict {
  if (pane !== 0 || (verdict !== 'slower' && verdict !== 'faster')) return verdict;
  return verdict === 'slower' ? 'faster' : 'slower';
}

/** By how much they differ, the most first; what only one has counts with its whole time. */
export function byWeight(differences: readonly Difference[]): readonly Difference[] {
  const weight = ({ msA = 0, msB = 0 }: Difference): number => Math.abs(msB - msA);
  return differences.filter(({ verdict }) => verdict !== 'same').sort((x, y) => weight(y) - weight(x));
}
