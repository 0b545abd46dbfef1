// How a plugin's scores are brought to 0…100. Pure, but for changing the scores in place.

import { MAX_NODE_SCORE } from './plugin.ts';

/** The highest becomes 100, and with `reverse` 0. All zero: no node is better, which reversed is 100 for all. */
export function normalizeByMaximum(scores: number[], reverse: boolean): void {
  let max = 0;
  for (const score of scores) max = Math.max(max, score);
  for (const [index, score] of scores.entries()) {
    if (max === 0) scores[index] = reverse ? MAX_NODE_SCORE : score;
    else {
      const scaled = Math.trunc((MAX_NODE_SCORE * score) / max);
      scores[index] = reverse ? MAX_NODE_SCORE - scaled : scaled;
    }
  }
}
