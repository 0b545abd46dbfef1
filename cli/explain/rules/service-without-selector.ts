// A Service without a selector: its endpoints are made by hand or by another controller.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { selectorOf } from '../service-view.ts';

export const serviceWithoutSelector: Rule<ServiceFacts> = {
  name: 'service-without-selector',
  find: (facts) => {
    const { service, slices } = facts;
    const { name, namespace } = service.metadata;
    const external = service.spec?.type === 'ExternalName' ? service.spec.externalName : undefined;
    if (external !== undefined) {
      return {
        state: 'ready',
        verdict: `it is only a DNS name for ${external}: there are no endpoints`,
        chain: [],
        commands: [{ command: `getent hosts ${external}`, why: 'whether that name is there' }],
      };
    }
    const endpoints = slices.reduce((sum, slice) => sum + slice.endpoints.length, 0);
    if (selectorOf(facts).length > 0 || endpoints > 0) return undefined;
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
