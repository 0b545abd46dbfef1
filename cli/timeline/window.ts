// The part of a timeline that is shown. Pure.

import type { Bar, Timeline } from './model.ts';

/** ms since the origin. */
export interface TimeWindow {
  readonly start: number;
  readonly end: number;
}

/** Beyond the end of the critical path, what follows from it can be seen. */
const MARGIN = 0.04;

/** From create to Ready, with a little after it, of the longest; everything where there is no critical path, or on request. */
export function shownWindow(timelines: readonly Timeline[], everything: boolean): TimeWindow {
  const ends = timelines.map(({ critical, end }) =>
    everything || critical === undefined
      ? Math.max(end, 1)
      : critical.end + Math.max((critical.end - critical.start) * MARGIN, 1),
  );
  return { start: 0, end: Math.max(...ends) };
}

/** The bars that have any part in the window. */
export function clip(bars: readonly Bar[], { start, end }: TimeWindow): readonly Bar[] {
  return bars.filter((bar) => bar.end >= start && bar.start <= end);
}
