// A controller has made its pods, and they are not Ready: each of them can be explained.

import { isPodReady } from '../../../agent/model/pod-ready.ts';
import type { WorkloadFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { list, plural } from '../words.ts';

export const podsUnready: Rule<WorkloadFacts> = {
  name: 'pods-unready',
  find: ({ counts, pods, workload }) => {
    const waiting = pods
      .filter((pod) => !isPodReady(pod) && pod.status?.phase !== 'Succeeded')
      .map(({ metadata }) => metadata.name);
    const [first] = waiting;
    if (first === undefined || counts.ready >= counts.wanted) return undefined;
    return {
      state: 'broken',
      verdict: `${plural(waiting.length, 'pod')} of it ${waiting.length === 1 ? 'is' : 'are'} not Ready: ${list(waiting.slice(0, 3))}`,
      chain: [{ text: `${counts.ready} of ${counts.wanted} pods are Ready` }],
      commands: [{ command: `nodelet explain pod ${workload.namespace}/${first}`, why: 'why it is not' }],
    };
  },
};
