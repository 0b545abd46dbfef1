// A static pod runs, and the API server does not show it: its agent has not made the mirror pod.

import type { GonePodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';

export const mirrorMissing: Rule<GonePodFacts> = {
  name: 'mirror-missing',
  find: ({ runtime, namespace, node }) => {
    const sandbox = runtime.sandboxes.find(({ ready, source }) => ready && (source === 'file' || source === 'http'));
    if (sandbox === undefined) return undefined;
    return {
      state: 'broken',
      verdict: `it is a static pod that runs on node ${node}, and the API server does not show it: it has no mirror pod`,
      chain: [
        {
          text: `the runtime has a sandbox of it, which the agent made from a ${sandbox.source}`,
          since: sandbox.created,
        },
        {
          text: 'the agent makes a mirror pod for each static pod, where the API server lets it',
          call: {
            name: 'POST pods',
            to: 'the API server',
            with: `namespace ${namespace}`,
            answer: 'there is no such pod',
          },
        },
      ],
      commands: [
        { command: `kubectl get namespace ${namespace}`, why: 'without the namespace there is no mirror pod' },
        { command: 'journalctl -u kubelet -n 50', why: 'on the node: why the agent could not make it' },
      ],
    };
  },
};
