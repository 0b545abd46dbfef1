// The node takes no new pods because it is cordoned.

import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';

export const nodeCordoned: Rule<NodeFacts> = {
  name: 'node-cordoned',
  find: ({ node }) => {
    if (node.spec?.unschedulable !== true) return undefined;
    return {
      state: 'broken',
      verdict: 'it is cordoned: no scheduler puts new pods there',
      chain: [{ text: 'spec.unschedulable is true, as "kubectl cordon" and "kubectl drain" set it' }],
      commands: [{ command: `kubectl uncordon ${node.metadata.name}`, why: 'lets pods onto the node again' }],
    };
  },
};
