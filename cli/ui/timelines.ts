// The timelines of open pages. Each is built from what is kept of its pod alone, once for all pages that show it, and again only
// after something new of that pod.

import { type Clock, elapsedMs } from '../../lib/clock.ts';
import { buildTimeline } from '../timeline/build.ts';
import type { Timeline } from '../timeline/model.ts';
import { isNamed, type StoreChange, type UiStore } from './store.ts';

/** The ones used last are kept. */
const MAX_KEPT = 16;
/** A page is shown anew no more often than this, ms; one with everything, which takes the browser longer, less often. */
export const PAUSE_MS = 250;
const PAUSE_OF_ALL_MS = 2_000;
/** To build the timeline of a page takes no more than this part of the time. */
const BUSY_PART = 1 / 20;

/** The page of everything. */
const ALL = '';

interface Kept {
  readonly timeline: Timeline;
  /** There is something new of the pod. */
  isOld: boolean;
  /** How long the last build took, ms. */
  readonly costMs: number;
}

/** Whether the page of a pod shows what has changed. */
export function concerns(pod: string, change: StoreChange): boolean {
  if (pod === ALL || change === 'problems') return true;
  return change !== 'node' && isNamed(change.pod, pod);
}

export class Timelines {
  readonly #store: UiStore;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #kept = new Map<string, Kept>();

  constructor(store: UiStore, clock: Pick<Clock, 'monotonic'>) {
    this.#store = store;
    this.#clock = clock;
    store.changed.subscribe((change) => {
      for (const [pod, kept] of this.#kept) if (concerns(pod, change)) kept.isOld = true;
    });
  }

  /** Of the newest pod of this name, or of everything. Throws UserError when nothing is known of the pod. */
  of(pod: string | undefined): Timeline {
    const name = pod ?? ALL;
    const known = this.#kept.get(name);
    const kept = known === undefined || known.isOld ? this.#build(pod) : known;
    this.#kept.delete(name);
    this.#kept.set(name, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return kept.timeline;
  }

  #build(pod: string | undefined): Kept {
    const begin = this.#clock.monotonic();
    const timeline = buildTimeline(this.#store.evidence(pod), pod === undefined ? {} : { pod });
    return { timeline, isOld: false, costMs: elapsedMs(begin, this.#clock.monotonic()) };
  }

  /** Between two looks of a page with these pods, or with everything, ms: the longer, the more there is to build. */
  pauseMs(pods: readonly string[]): number {
    const names = pods.length === 0 ? [ALL] : pods;
    const costMs = names.reduce((sum, name) => sum + (this.#kept.get(name)?.costMs ?? 0), 0);
    return Math.max(pods.length === 0 ? PAUSE_OF_ALL_MS : PAUSE_MS, costMs / BUSY_PART);
  }
}
