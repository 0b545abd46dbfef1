// What the page is given. Types only.

import type { Comparison } from '../compare.ts';
import type { LaneId, Owner, Timeline } from '../model.ts';

export interface PageData {
  /** One, or two side by side. */
  readonly timelines: readonly Timeline[];
  /** Of two. */
  readonly comparison: Comparison | undefined;
  /** Where newer data comes from, and the events that announce it (`nodelet ui`): addresses of the page's own server. */
  readonly live?: { readonly data: string; readonly events: string };
  readonly laneColours: Readonly<Record<LaneId, string>>;
  readonly ownerColours: Readonly<Record<Owner, string>>;
}
