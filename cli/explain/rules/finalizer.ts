// The pod is deleted and its containers have ended: only finalizers keep it.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { containers, isDeleted, isScheduled, podArgument } from '../pod-view.ts';
import { list } from '../words.ts';

export const finalizer: Rule<PodFacts> = {
  name: 'finalizer',
  find: (facts) => {
    const finalizers = facts.pod.metadata.finalizers ?? [];
    const running = containers(facts).some(({ status }) => status?.state?.running !== undefined);
    if (!isDeleted(facts) || finalizers.length === 0 || (running && isScheduled(facts))) return undefined;
    const since = parseRfc3339(facts.pod.metadata.deletionTimestamp);
    const owners = finalizers.map((each) => each.split('/')[0] ?? each);
    return {
      state: 'broken',
      verdict: `it is deleted and has ended, and finalizer ${list(finalizers)} keeps it`,
      chain: [
        { text: 'the pod is being deleted', ...(since === undefined ? {} : { since }) },
        {
          text: `the API server removes it when metadata.finalizers is empty; ${list(owners)} has to take out its own`,
          call: {
            name: 'PATCH pods',
            to: 'the API server',
            with: 'metadata.finalizers',
            answer: 'this call was never made',
          },
        },
      ],
      commands: [
        {
          command: `kubectl patch pod ${podArgument(facts)} --type=merge -p '{"metadata":{"finalizers":null}}'`,
          why: 'removes the finalizers by hand: what they stand for is then left undone',
        },
      ],
    };
  },
};
