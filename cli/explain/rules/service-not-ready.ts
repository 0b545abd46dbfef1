// The Service selects pods, and none of them is Ready.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyPods, selectedPods } from '../service-view.ts';
import { list, plural } from '../words.ts';

export const serviceNotReady: Rule<ServiceFacts> = {
  name: 'service-not-ready',
  find: (facts) => {
    const selected = selectedPods(facts);
    if (selected.length === 0 || readyPods(facts).length > 0 || facts.service.spec?.publishNotReadyAddresses === true)
      return undefined;
    const { namespace } = facts.service.metadata;
    const names = selected.map(({ metadata }) => metadata.name);
    const [first = ''] = names;
    return {
      state: 'broken',
      verdict: `it has no ready endpoints: it selects ${plural(names.length, 'pod')} (${list(names.slice(0, 4))}), and none is Ready`,
      chain: [
        { text: 'traffic goes to Ready pods only' },
        ...selected.slice(0, 4).map(({ metadata, status }) => {
          const ready = status?.conditions?.find(({ type }) => type === 'Ready');
          return { text: `pod ${metadata.name} is ${status?.phase ?? 'Pending'}: ${ready?.message ?? 'not Ready'}` };
        }),
      ],
      commands: [{ command: `nodelet explain pod ${namespace}/${first}`, why: 'why it is not Ready' }],
    };
  },
};
