// The Service has ready endpoints, and as far as can be seen something listens on its ports.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyPods, selectedPods } from '../service-view.ts';
import { plural } from '../words.ts';

export const serviceReady: Rule<ServiceFacts> = {
  name: 'service-ready',
  find: (facts) => {
    const count = readyPods(facts).length;
    const endpoints = facts.slices.reduce(
      (sum, slice) => sum + slice.endpoints.filter(({ conditions }) => conditions?.ready !== false).length,
      0,
    );
    if (count === 0 && endpoints === 0) return undefined;
    const selected = selectedPods(facts).length;
    const some = selected > count ? ` (of ${selected} that it selects)` : '';
    const checked = facts.listening.length > 0 ? ', and they listen on its ports' : '';
    const unpublished = count > 0 && endpoints === 0 && facts.slices.length === 0;
    return {
      state: 'ready',
      verdict: `${plural(Math.max(count, endpoints), 'ready pod')}${some} can answer${checked}`,
      chain: unpublished
        ? [
            {
              text: 'there is no EndpointSlice: in a cluster without an endpoints controller and kube-proxy (such as the lab) its address leads nowhere, and pods are reached by their own',
            },
          ]
        : [],
      commands: [],
    };
  },
};
