// The pod has scheduling gates: no scheduler considers it before they are removed.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { created, isScheduled, podArgument } from '../pod-view.ts';
import { list } from '../words.ts';

export const schedulingGate: Rule<PodFacts> = {
  name: 'scheduling-gate',
  find: (facts) => {
    const gates = (facts.pod.spec.schedulingGates ?? []).map(({ name }) => name);
    if (isScheduled(facts) || gates.length === 0) return undefined;
    const since = created(facts);
    return {
      state: 'broken',
      verdict: `it waits for scheduling ${gates.length === 1 ? 'gate' : 'gates'} ${list(gates)} to be removed`,
      chain: [
        { text: 'the pod has no node', ...(since === undefined ? {} : { since }) },
        {
          text: `no scheduler looks at a pod with spec.schedulingGates; whoever set ${list(gates)} has to remove ${gates.length === 1 ? 'it' : 'them'}`,
        },
      ],
      commands: [
        {
          command: `kubectl patch pod ${podArgument(facts)} --type=json -p='[{"op":"remove","path":"/spec/schedulingGates"}]'`,
          why: 'removes the gates by hand, instead of the controller that set them',
        },
      ],
    };
  },
};
