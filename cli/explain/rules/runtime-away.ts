// The container runtime of the pod's node does not answer, or says that it is not ready.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { condition, isEnded } from '../pod-view.ts';

export const runtimeAway: Rule<PodFacts> = {
  name: 'runtime-away',
  find: ({ runtime, ...facts }) => {
    if (runtime === undefined || isEnded({ runtime, ...facts })) return undefined;
    const isReady = condition({ runtime, ...facts }, 'Ready')?.status === 'True';
    const check = {
      command: `nodelet crictl --runtime-endpoint ${runtime.endpoint} info`,
      why: 'whether the runtime answers',
    };
    if (runtime.failure !== undefined) {
      return {
        state: 'broken',
        verdict: `the container runtime of its node does not answer${isReady ? '; the pod itself is reported as Ready' : ''}`,
        chain: [
          {
            text: 'nothing is started, ended or looked at without it',
            call: { name: runtime.failure.split(':')[0] ?? '', to: runtime.endpoint, answer: runtime.failure },
          },
        ],
        commands: [check],
      };
    }
    const wrong = runtime.conditions.find(
      ({ type, status }) => !status && (type === 'RuntimeReady' || type === 'NetworkReady'),
    );
    if (wrong === undefined || isReady) return undefined;
    return {
      state: 'broken',
      verdict: `the container runtime of its node reports that ${wrong.type === 'NetworkReady' ? 'its network' : 'it'} is not ready: ${wrong.message || wrong.reason}`,
      chain: [
        {
          text: `condition ${wrong.type} of the runtime is false`,
          call: { name: 'Status', to: runtime.endpoint, answer: `${wrong.reason} ${wrong.message}`.trim() },
        },
      ],
      commands: [check],
    };
  },
};
