// Nothing is wrong: the pod is Ready.

import { elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { condition, containers, isDeleted } from '../pod-view.ts';
import { duration, plural } from '../words.ts';

export const ready: Rule<PodFacts> = {
  name: 'ready',
  find: (facts) => {
    const found = condition(facts, 'Ready');
    if (isDeleted(facts) || found?.status !== 'True') return undefined;
    const since = parseRfc3339(found.lastTransitionTime);
    const restarts = containers(facts).reduce((sum, { status }) => sum + (status?.restartCount ?? 0), 0);
    return {
      state: 'ready',
      verdict: `it is Ready${since === undefined ? '' : `, for ${duration(elapsedMs(since, facts.now))}`}${restarts === 0 ? '' : ` (${plural(restarts, 'restart')} before)`}`,
      chain: [],
      commands: [],
    };
  },
};
