// The container runtime of this machine's node does not answer, or reports that it or its network is not ready.

import { crictlCommand } from '../command-text.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { symptom } from '../node-view.ts';

export const nodeRuntime: Rule<NodeFacts> = {
  name: 'node-runtime',
  find: (facts) => {
    const { runtime } = facts;
    if (runtime === undefined) return undefined;
    const commands = [
      {
        command: crictlCommand(runtime, 'info'),
        why: 'what the runtime says about itself',
      },
    ];
    if (runtime.failure !== undefined) {
      const [call = ''] = runtime.failure.split(':');
      return {
        state: 'broken',
        verdict: 'its container runtime does not answer',
        chain: [
          symptom(facts),
          {
            text: 'the runtime is stopped, hangs, or listens elsewhere',
            call: { name: call, to: runtime.endpoint, answer: runtime.failure },
          },
        ],
        commands: [...commands, { command: 'systemctl status containerd', why: 'on the node: whether it runs' }],
      };
    }
    const wrong = runtime.conditions.find(({ status }) => !status);
    if (wrong === undefined) return undefined;
    const isNetwork = wrong.type === 'NetworkReady';
    return {
      state: 'broken',
      verdict: `its container runtime reports that ${isNetwork ? 'its network' : 'it'} is not ready: ${wrong.message || wrong.reason}`,
      chain: [
        symptom(facts),
        {
          text: `condition ${wrong.type} of the runtime is false`,
          call: { name: 'Status', to: runtime.endpoint, answer: `${wrong.reason}: ${wrong.message}` },
        },
        ...(isNetwork ? [{ text: 'the runtime waits for a network configuration in its conf dir' }] : []),
      ],
      commands: isNetwork
        ? [
            { command: 'ls -l /etc/cni/net.d', why: 'the network configuration (in a lab: cni/net.d below its root)' },
            ...commands,
          ]
        : commands,
    };
  },
};
