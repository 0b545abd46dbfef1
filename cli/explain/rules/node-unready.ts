// The agent of the pod's node reports that the node is not Ready, and the pod itself shows no other reason.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { condition, isEnded, isScheduled } from '../pod-view.ts';

export const nodeUnready: Rule<PodFacts> = {
  name: 'node-unready',
  find: (facts) => {
    if (!isScheduled(facts) || isEnded(facts) || condition(facts, 'Ready')?.status === 'True') return undefined;
    const name = facts.pod.spec.nodeName ?? '';
    const node = facts.nodes.find(({ metadata }) => metadata.name === name);
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status !== 'False') return undefined;
    const since = parseRfc3339(ready.lastTransitionTime);
    return {
      state: 'broken',
      verdict: `its node ${name} is not Ready: ${ready.message ?? ready.reason}`,
      chain: [
        {
          text: `the agent of node ${name} reports ${ready.reason}`,
          call: { name: 'PATCH nodes/status', to: 'the API server', with: 'Ready=False', answer: ready.message ?? '' },
          ...(since === undefined ? {} : { since }),
        },
      ],
      commands: [{ command: `nodelet explain node ${name}`, why: 'what is wrong with the node' }],
    };
  },
};
