// The agent itself reports that its node is not Ready.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { crictlCommand } from '../command-text.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyOf } from '../node-view.ts';

/** The kubelet's messages, and what they mean. */
function meaning(message: string, { runtime }: NodeFacts): { readonly verdict: string; readonly hint: string } {
  if (/network plugin|NetworkReady=false|cni plugin|network not ready|network config/i.test(message)) {
    return { verdict: 'its network is not ready', hint: 'ls -l /etc/cni/net.d' };
  }
  if (
    /container runtime is down|PLEG is not healthy|runtime.*(not ready|unavailable|unreachable)|RuntimeReady=false/i.test(
      message,
    )
  ) {
    return { verdict: 'its container runtime does not work', hint: crictlCommand(runtime, 'info') };
  }
  if (/CSINode/.test(message)) return { verdict: 'its CSINode could not be written', hint: 'kubectl get csinodes' };
  if (/shutting down/i.test(message)) return { verdict: 'it is shutting down', hint: 'kubectl get nodes' };
  return { verdict: 'its agent reports that it is not ready', hint: 'journalctl -u kubelet -n 50' };
}

export const nodeNotReady: Rule<NodeFacts> = {
  name: 'node-not-ready',
  find: (facts) => {
    const ready = readyOf(facts);
    if (ready?.status !== 'False') return undefined;
    const { name } = facts.node.metadata;
    const message = ready.message ?? '';
    const { verdict, hint } = meaning(message, facts);
    const since = parseRfc3339(ready.lastTransitionTime);
    return {
      state: 'broken',
      verdict: `${verdict}: ${message}`,
      chain: [
        { text: 'the node is not Ready, and gets no new pods', ...(since === undefined ? {} : { since }) },
        {
          text: `its agent reports ${ready.reason ?? 'no reason'}`,
          call: { name: 'PATCH nodes/status', to: 'the API server', with: 'Ready=False', answer: message },
        },
      ],
      commands: [
        { command: hint, why: 'on the node' },
        { command: `kubectl describe node ${name}`, why: 'its conditions and events' },
      ],
    };
  },
};
