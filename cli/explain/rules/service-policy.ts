// A NetworkPolicy isolates the pods of the Service: which one, and whom it lets in.

import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyPods } from '../service-view.ts';
import { list } from '../words.ts';

export const servicePolicy: Rule<ServiceFacts> = {
  name: 'service-policy',
  find: (facts) => {
    const pods = readyPods(facts);
    const isolating = facts.policies.filter(({ spec }) => {
      const types = spec?.policyTypes ?? ['Ingress'];
      return (
        types.includes('Ingress') &&
        pods.some((pod) => matchesLabelSelector(spec?.podSelector ?? {}, pod.metadata.labels ?? {}))
      );
    });
    if (isolating.length === 0) return undefined;
    const names = isolating.map(({ metadata }) => metadata.name);
    const open = isolating.some(({ spec }) =>
      (spec?.ingress ?? []).some(({ from = [], ports = [] }) => from.length === 0 && ports.length === 0),
    );
    if (open) return undefined;
    const closed = isolating.every(({ spec }) => (spec?.ingress ?? []).length === 0);
    const { namespace } = facts.service.metadata;
    return {
      state: 'broken',
      verdict: closed
        ? `NetworkPolicy ${list(names)} lets nothing in to its pods`
        : `NetworkPolicy ${list(names)} lets only some traffic in to its pods`,
      chain: [
        { text: 'a pod that a policy selects takes only what some policy allows' },
        ...isolating.slice(0, 4).map(({ metadata, spec }) => ({
          text: `policy ${metadata.name} has ${(spec?.ingress ?? []).length} rules for incoming traffic`,
        })),
      ],
      commands: [
        {
          command: `kubectl -n ${namespace} describe networkpolicy ${names[0]}`,
          why: 'from where and to which ports traffic is allowed',
        },
      ],
    };
  },
};
