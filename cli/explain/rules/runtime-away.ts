// The container runtime of the pod's node does not answer, or says that it is not ready.

import { elapsedMs } from '../../../lib/clock.ts';
import { crictlCommand } from '../command-text.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { condition, isDeleted, isEnded } from '../pod-view.ts';
import { duration } from '../words.ts';

export const runtimeAway: Rule<PodFacts> = {
  name: 'runtime-away',
  find: (facts) => {
    const { runtime, open, now } = facts;
    if (runtime === undefined || isEnded(facts)) return undefined;
    const isReady = !isDeleted(facts) && condition(facts, 'Ready')?.status === 'True';
    const check = {
      command: crictlCommand(runtime, 'info'),
      why: 'whether the runtime answers',
    };
    if (runtime.failure !== undefined) {
      const deleting = isDeleted(facts) ? 'it is being deleted, and ' : '';
      const waits: readonly Cause[] = open
        .filter(({ kind }) => kind === 'cri')
        .slice(0, 3)
        .map(({ name, start }) => ({
          text: `the agent waits for ${name}`,
          call: { name, to: 'the container runtime', answer: `none yet, after ${duration(elapsedMs(start, now))}` },
          since: start,
        }));
      return {
        state: 'broken',
        verdict: `${deleting}the container runtime of its node does not answer${isReady ? '; the pod itself is reported as Ready' : ''}`,
        chain: [
          {
            text: 'nothing is started, ended or looked at without it',
            call: { name: runtime.failure.split(':')[0] ?? '', to: runtime.endpoint, answer: runtime.failure },
          },
          ...waits,
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
