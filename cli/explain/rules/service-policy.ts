// A NetworkPolicy isolates the pods of the Service: which one, to which port, and whom it lets in. A connection that opens shows that
// nothing is denied to that client.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { admits, isolating } from '../policy-view.ts';
import { opensAnyPort, readyPods, targetPort, vantageName } from '../service-view.ts';
import { list, plural } from '../words.ts';

/** How a finding says whom it is about. */
function whom(facts: ServiceFacts, admitted: 'someone' | 'none'): string {
  if (admitted === 'none') return 'lets nothing in';
  return facts.vantage === undefined ? 'lets only some traffic in' : `does not let ${vantageName(facts)} in`;
}

export const servicePolicy: Rule<ServiceFacts> = {
  name: 'service-policy',
  find: (facts) => {
    const { connects, vantage, service } = facts;
    if (connects.length > 0 && !opensAnyPort(facts) && connects.every(({ isOpen }) => isOpen)) return undefined;
    for (const pod of readyPods(facts)) {
      const policies = isolating(facts.policies, pod);
      if (policies.length === 0) continue;
      for (const each of service.spec?.ports ?? []) {
        const port = targetPort(each, pod);
        const protocol = each.protocol ?? 'TCP';
        if (port === undefined) continue;
        const admitted = admits(policies, { pod, protocol, port }, vantage);
        if (admitted === 'everyone') continue;
        const names = policies.map(({ metadata }) => metadata.name);
        const { name, namespace } = pod.metadata;
        return {
          state: 'broken',
          verdict: `NetworkPolicy ${list(names.slice(0, 4))} ${whom(facts, admitted)} to ${protocol} ${port} of pod ${name}`,
          chain: [
            { text: `a pod that a policy selects takes only what some policy allows, and pod ${name} is selected` },
            ...policies.slice(0, 4).map(({ metadata, spec }) => ({
              text: `policy ${metadata.name} has ${plural((spec?.ingress ?? []).length, 'rule')} for incoming traffic`,
            })),
            ...(vantage === undefined
              ? []
              : [{ text: `pod ${vantage.pod.metadata.name} has the labels ${labels(vantage.pod.metadata.labels)}` }]),
          ],
          commands: [
            {
              command: `kubectl -n ${namespace} describe networkpolicy ${names[0]}`,
              why: 'from where and to which ports traffic is allowed',
            },
          ],
        };
      }
    }
    return undefined;
  },
};

function labels(own: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(own ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? '(none)' : pairs.join(',');
}
