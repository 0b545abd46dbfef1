// What the page is given. Types only.

import type { Comparison } from '../compare.ts';
import type { LaneId, Owner, Timeline } from '../model.ts';

export interface PageData {
  /** One, or two side by side. */
  readonly timelines: readonly Timeline[];
  /** Of two. */
  readonly comparison: Comparison | undefined;
  readonly laneColours: Readonly<Record<LaneId, string>>;
  readonly ownerColours: Readonly<Record<Owner, string>>;
}
