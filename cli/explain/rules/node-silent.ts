// The agent of the node is away: it renews its Lease no more, and the control plane has given up on it, or is about to.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { NodeFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { leaseLimit, readyOf, silence } from '../node-view.ts';
import { duration, plural } from '../words.ts';

/** States of /proc/PID/stat in which a process does nothing. */
const STOPPED = new Set(['T', 't']);

/** What is known of the agent's process: the beginning of the verdict, and a link of the chain. */
function processOf({ agent, kubeletApi }: NodeFacts): { readonly verdict: string; readonly text: string } {
  if (agent === undefined) {
    const text =
      'the agent does not run, hangs, or cannot reach the API server; a wrong clock on the node looks the same';
    return { verdict: 'its agent is away', text };
  }
  if (agent.process === undefined) {
    return { verdict: 'its agent does not run', text: `no process here uses the kubeconfig ${agent.kubeconfig}` };
  }
  const { pid, state } = agent.process;
  if (STOPPED.has(state)) {
    return {
      verdict: `its agent is stopped (process ${pid})`,
      text: `process ${pid} is stopped, by SIGSTOP or a debugger`,
    };
  }
  const serves = kubeletApi?.state === 'serves' ? 'and its own server answers' : 'and its own server does not answer';
  return { verdict: 'its agent is away', text: `its process ${pid} runs (state ${state}), ${serves}` };
}

export const nodeSilent: Rule<NodeFacts> = {
  name: 'node-silent',
  find: (facts) => {
    const { node, pods, agent, kubeletApi } = facts;
    const ready = readyOf(facts);
    const silent = silence(facts);
    const limit = leaseLimit(facts);
    const isGone = agent !== undefined && agent.process === undefined && kubeletApi?.state === 'refused';
    const isLate = silent !== undefined && silent > limit;
    if (ready?.status !== 'Unknown' && !isLate && !isGone) return undefined;
    const since = parseRfc3339(ready?.lastTransitionTime);
    const { verdict, text } = processOf(facts);
    const shown = ready?.status === 'Unknown' ? 'Unknown' : isLate || isGone ? 'about to become Unknown' : 'Unknown';
    const listening: readonly Cause[] =
      isGone && kubeletApi !== undefined
        ? [
            {
              text: 'nothing serves the agent’s API',
              call: { name: 'connect', to: kubeletApi.address, answer: kubeletApi.answer },
            },
          ]
        : [];
    return {
      state: 'broken',
      verdict: `${verdict}: ${silent === undefined ? 'it has no lease' : `it last renewed its lease ${duration(silent)} ago`}`,
      chain: [
        { text: `the node is ${shown}: ${ready?.message ?? ''}`, ...(since === undefined ? {} : { since }) },
        {
          text,
          call: {
            name: `PUT leases/${node.metadata.name}`,
            to: 'the API server',
            answer:
              silent === undefined
                ? 'never made'
                : `last made ${duration(silent)} ago; it is due every ${duration(limit / 4)}`,
          },
        },
        ...listening,
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
