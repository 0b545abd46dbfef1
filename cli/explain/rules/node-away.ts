// The agent of the pod's node is away: it starts, ends and reports nothing there.

import { elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, isEnded, isScheduled, podArgument } from '../pod-view.ts';
import { duration } from '../words.ts';

export const nodeAway: Rule<PodFacts> = {
  name: 'node-away',
  find: (facts) => {
    if (!isScheduled(facts) || isEnded(facts) || facts.nodes.length === 0) return undefined;
    const name = facts.pod.spec.nodeName ?? '';
    const node = facts.nodes.find(({ metadata }) => metadata.name === name);
    const look = { command: `nodelet explain node ${name}`, why: 'what is wrong with the node' };
    if (node === undefined) {
      return {
        state: 'broken',
        verdict: `its node ${name} does not exist (any more)`,
        chain: [
          {
            text: 'no agent takes care of the pod',
            call: { name: `GET nodes/${name}`, to: 'the API server', answer: 'not found' },
          },
        ],
        commands: [{ command: 'kubectl get nodes', why: 'the nodes that there are' }],
      };
    }
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
    // An agent that reports False is there: the pod's own failure says more.
    if (ready?.status === 'True' || ready?.status === 'False') return undefined;
    const since = parseRfc3339(ready?.lastTransitionTime);
    const renewed = parseRfc3339(facts.lease?.spec?.renewTime);
    const silent = renewed === undefined ? undefined : elapsedMs(renewed, facts.now);
    return {
      state: 'broken',
      verdict: `${isDeleted(facts) ? 'it is being deleted, and no agent ends it: ' : ''}its node ${name} is not Ready: ${ready?.message ?? 'it has never reported'}`,
      chain: [
        {
          text: `node ${name} is not Ready, ${ready?.reason ?? 'no condition'}`,
          ...(since === undefined ? {} : { since }),
        },
        ...(silent === undefined ? [] : [{ text: `its agent renewed its lease ${duration(silent)} ago` }]),
      ],
      commands: isDeleted(facts)
        ? [
            look,
            {
              command: `kubectl delete pod ${podArgument(facts)} --grace-period=0 --force`,
              why: 'forgets the pod; only where the machine is off for good, or its containers would go on',
            },
          ]
        : [look],
    };
  },
};
