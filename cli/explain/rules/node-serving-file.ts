// A file of the configured serving certificate is missing: the agent does not start then.

import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { symptom } from '../node-view.ts';

export const nodeServingFile: Rule<NodeFacts> = {
  name: 'node-serving-file',
  find: (facts) => {
    const { servingProblem } = facts;
    if (servingProblem === undefined) return undefined;
    const [field = ''] = servingProblem.split(' ');
    return {
      state: 'broken',
      verdict: `the serving certificate of its agent cannot be read: ${servingProblem}`,
      chain: [
        symptom(facts),
        {
          text: 'an agent does not start without the files that its configuration names',
          call: { name: 'open', to: 'the agent’s files', with: field, answer: servingProblem },
        },
      ],
      commands: [{ command: 'grep tls /var/lib/kubelet/config.yaml', why: 'on the node: the files that are named' }],
    };
  },
};
