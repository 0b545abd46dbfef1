// The critical path: from the last bar backwards in time, at each moment the bar that the rest had to wait for. Within a bar, the
// one inside it that ended last; before a bar, the cause that ended last, or else the bar that it began in. Pure.

import type { Bar, Segment } from './model.ts';
import { gapTime, ownTime } from './waits.ts';

export interface PathInputs {
  readonly bars: readonly Bar[];
  /** Causes of a bar that do not contain it, by id. */
  readonly links: ReadonlyMap<string, readonly string[]>;
  /** What a gap before the first known bar is: between creation and the first thing that is recorded. */
  readonly beginning: Pick<Segment, 'owner' | 'text'>;
}

/** Shorter pieces are rounding. */
const NOTHING_MS = 1e-6;

class Walk {
  readonly segments: Segment[] = [];
  readonly visited = new Set<string>();
  readonly #inputs: PathInputs;
  readonly #byId: ReadonlyMap<string, Bar>;
  readonly #inside = new Map<string, Bar[]>();
  readonly #from: number;

  constructor(inputs: PathInputs, from: number) {
    this.#inputs = inputs;
    this.#from = from;
    this.#byId = new Map(inputs.bars.map((bar) => [bar.id, bar]));
    for (const bar of inputs.bars) {
      if (bar.parent === undefined) continue;
      const siblings = this.#inside.get(bar.parent);
      if (siblings === undefined) this.#inside.set(bar.parent, [bar]);
      else siblings.push(bar);
    }
  }

  /** `offset`: not later than the end of `last`. */
  run(last: Bar, offset: number): void {
    let bar: Bar | undefined = last;
    while (bar !== undefined && offset > this.#from) {
      const inner = this.#lastInside(bar, offset);
      if (inner !== undefined) {
        this.#add(inner.end, offset, ownTime(bar), bar.id);
        offset = inner.end;
        this.visited.add(inner.id);
        bar = inner;
        continue;
      }
      const begin = Math.min(offset, bar.start);
      this.#add(begin, offset, ownTime(bar), bar.id);
      offset = begin;
      const before: Bar | undefined = this.#before(bar, offset);
      if (before !== undefined && before.end < offset) {
        this.#add(before.end, offset, gapTime(before, bar));
        offset = before.end;
      }
      if (before !== undefined) this.visited.add(before.id);
      bar = before;
    }
    this.#add(this.#from, offset, this.#inputs.beginning);
    this.segments.reverse();
  }

  #add(start: number, end: number, named: Pick<Segment, 'owner' | 'text'>, bar?: string): void {
    const from = Math.max(start, this.#from);
    if (end - from <= NOTHING_MS) return;
    this.segments.push({ start: from, end, ...named, ...(bar === undefined ? {} : { bar }) });
  }

  /** Of those inside `bar`, the one that ended last before `offset` and was not on the path yet. A mere moment takes no time. */
  #lastInside(bar: Bar, offset: number): Bar | undefined {
    return latest(
      (this.#inside.get(bar.id) ?? []).filter(
        (each) => each.end <= offset && each.end > each.start && !this.visited.has(each.id),
      ),
    );
  }

  #before(bar: Bar, offset: number): Bar | undefined {
    const causes = (this.#inputs.links.get(bar.id) ?? []).flatMap((id) => this.#byId.get(id) ?? []);
    const cause = latest(causes.filter((each) => each.start <= offset && !this.visited.has(each.id)));
    if (cause !== undefined) {
      // What it began may have gone on beside it, and is what was waited for.
      const inside = cause.end < offset ? this.#lastInside(cause, offset) : undefined;
      return inside !== undefined && inside.end > cause.end ? inside : cause;
    }
    const parent = bar.parent === undefined ? undefined : this.#byId.get(bar.parent);
    // An action goes on beside the round that began it; what ended between the two is inside that round as well.
    if (parent !== undefined && parent.start <= offset)
      return parent.end >= offset ? parent : (this.#lastInside(parent, offset) ?? parent);
    return latest(this.#inputs.bars.filter((each) => each.end <= offset && !this.visited.has(each.id)));
  }
}

function latest(bars: readonly Bar[]): Bar | undefined {
  return bars.reduce<Bar | undefined>(
    (last, bar) => (last === undefined || bar.end > last.end ? bar : last),
    undefined,
  );
}

/** The path from `from` to the end of `last`, or to `to` where that is earlier; ms since the origin. */
export function criticalPath(inputs: PathInputs, last: Bar, from: number, to: number): readonly Segment[] {
  const walk = new Walk(inputs, from);
  walk.visited.add(last.id);
  walk.run(last, Math.min(to, last.end));
  return walk.segments;
}
