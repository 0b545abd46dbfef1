// A Service without a selector: its endpoints are made by hand or by another controller.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { selectorOf } from '../service-view.ts';

export const serviceWithoutSelector: Rule<ServiceFacts> = {
  name: 'service-without-selector',
  find: (facts) => {
    const { service } = facts;
    const { name, namespace } = service.metadata;
    const endpoints = facts.slices.flatMap((slice) => slice.endpoints ?? []);
    if (service.spec?.type === 'ExternalName' || selectorOf(facts).length > 0 || endpoints.length > 0) return undefined;
    return {
      state: 'broken',
      verdict: 'it has no selector and no endpoints: traffic leads nowhere',
      chain: [
        { text: 'without spec.selector, endpoints are made by hand or by another controller, and there are none' },
      ],
      commands: [
        {
          command: `kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${name}`,
          why: 'the endpoints',
        },
      ],
    };
  },
};
