// The agent of the node is away: it renews its Lease no more, and the control plane has given up on it.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyOf, silence } from '../node-view.ts';
import { duration, plural } from '../words.ts';

/** The lease of a node lasts so long, unless it says otherwise. s */
const LEASE_SECONDS = 40;

export const nodeSilent: Rule<NodeFacts> = {
  name: 'node-silent',
  find: (facts) => {
    const { node, lease, pods } = facts;
    const ready = readyOf(facts);
    const silent = silence(facts);
    const limit = (lease?.spec?.leaseDurationSeconds ?? LEASE_SECONDS) * 1000;
    if (ready?.status !== 'Unknown' && (silent === undefined || silent <= limit)) return undefined;
    const since = parseRfc3339(ready?.lastTransitionTime);
    return {
      state: 'broken',
      verdict: `its agent is away: ${silent === undefined ? 'it has no lease' : `it last renewed its lease ${duration(silent)} ago`}`,
      chain: [
        {
          text: `the node is ${ready?.status === 'Unknown' ? 'Unknown' : 'about to become Unknown'}: ${ready?.message ?? ''}`,
          ...(since === undefined ? {} : { since }),
        },
        {
          text: 'the agent does not run, hangs, or cannot reach the API server; a wrong clock on the node looks the same',
          call: {
            name: `PUT leases/${node.metadata.name}`,
            to: 'the API server',
            answer:
              silent === undefined
                ? 'never made'
                : `last made ${duration(silent)} ago; it is due every ${Math.round(limit / 4000)} s`,
          },
        },
        { text: `${plural(pods.length, 'pod')} on it: they go on running, but nothing starts, ends or reports them` },
      ],
      commands: [
        {
          command: 'journalctl -u kubelet -n 50',
          why: 'on the node: the agent’s log (in a lab: logs/agent.log below its root)',
        },
        { command: 'date', why: 'on the node: whether its clock is right' },
      ],
    };
  },
};
