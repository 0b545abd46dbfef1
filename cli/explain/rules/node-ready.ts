// The node is Ready.

import { elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyOf } from '../node-view.ts';
import { duration } from '../words.ts';

export const nodeReady: Rule<NodeFacts> = {
  name: 'node-ready',
  find: (facts) => {
    const ready = readyOf(facts);
    if (ready?.status !== 'True') return undefined;
    const since = parseRfc3339(ready.lastTransitionTime);
    const age = since === undefined ? '' : `, for ${duration(elapsedMs(since, facts.now))}`;
    return { state: 'ready', verdict: `it is Ready${age}`, chain: [], commands: [] };
  },
};
