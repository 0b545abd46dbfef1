// The pod has done its work: all containers ended with exit code 0.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted } from '../pod-view.ts';

export const succeeded: Rule<PodFacts> = {
  name: 'succeeded',
  find: (facts) => {
    if (isDeleted(facts) || facts.pod.status?.phase !== 'Succeeded') return undefined;
    const policy = facts.pod.spec.restartPolicy ?? 'Always';
    return {
      state: 'ended',
      verdict: 'it has finished: all containers ended with exit code 0, and none is started again',
      chain: [{ text: `the phase is Succeeded, and restartPolicy is ${policy}` }],
      commands: [],
    };
  },
};
