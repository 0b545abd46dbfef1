// All containers are ready, and a readiness gate of the pod is not true.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { condition, isDeleted, podArgument } from '../pod-view.ts';

export const readinessGate: Rule<PodFacts> = {
  name: 'readiness-gate',
  find: (facts) => {
    if (isDeleted(facts) || condition(facts, 'ContainersReady')?.status !== 'True') return undefined;
    const gate = (facts.pod.spec.readinessGates ?? []).find(
      ({ conditionType }) => condition(facts, conditionType)?.status !== 'True',
    );
    if (gate === undefined) return undefined;
    const type = gate.conditionType;
    const found = condition(facts, type);
    const since = parseRfc3339(condition(facts, 'Ready')?.lastTransitionTime);
    return {
      state: 'broken',
      verdict: `its containers are ready, and its readiness gate ${type} is ${found === undefined ? 'not set' : found.status}`,
      chain: [
        {
          text: 'a pod with readiness gates is Ready when all their conditions are True',
          ...(since === undefined ? {} : { since }),
        },
        {
          text: `the controller that sets condition ${type} ${found === undefined ? 'has not set it' : `has set it to ${found.status}${found.message ? `: ${found.message}` : ''}`}`,
          call: {
            name: 'PATCH pods/status',
            to: 'the API server',
            with: `condition ${type}`,
            answer: found === undefined ? 'this call was never made' : `${found.status} ${found.reason ?? ''}`.trim(),
          },
        },
      ],
      commands: [
        {
          command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.status.conditions}'`,
          why: `who sets ${type}, often a load balancer’s controller, has to be looked at`,
        },
      ],
    };
  },
};
