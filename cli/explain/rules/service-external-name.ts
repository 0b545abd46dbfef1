// A Service that is only another name in DNS. Whether that name is found is the rule service-dns' business.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';

export const serviceExternalName: Rule<ServiceFacts> = {
  name: 'service-external-name',
  find: ({ service: { spec } }) => {
    if (spec?.type !== 'ExternalName') return undefined;
    const { externalName = '' } = spec;
    return {
      state: 'ready',
      verdict: `it is only a DNS name for ${externalName}: there are no endpoints`,
      chain: [],
      commands: [{ command: `getent hosts ${externalName}`, why: 'whether that name is there' }],
    };
  },
};
