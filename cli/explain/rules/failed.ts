// The pod has failed for good: a container ended with an error, and restartPolicy starts none again.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { logDetails } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { containers, isDeleted, podArgument } from '../pod-view.ts';
import { exitCode } from '../words.ts';

export const failed: Rule<PodFacts> = {
  name: 'failed',
  find: (facts) => {
    const { spec, status } = facts.pod;
    if (isDeleted(facts) || status?.phase !== 'Failed') return undefined;
    const ended = containers(facts).find((view) => (view.status?.state?.terminated?.exitCode ?? 0) !== 0);
    const terminated = ended?.status?.state?.terminated;
    if (ended === undefined || terminated === undefined) {
      return {
        state: 'ended',
        verdict: `it has failed${status.reason === undefined ? '' : `, the reason is ${status.reason}`}`,
        chain: [{ text: status.message ?? 'the pod’s status has no message' }],
        commands: [],
      };
    }
    const { name } = ended.spec;
    const since = parseRfc3339(terminated.finishedAt);
    return {
      state: 'ended',
      verdict: `container ${name} failed with ${exitCode(terminated.exitCode, terminated.signal)}, and restartPolicy ${spec.restartPolicy} does not start it again`,
      chain: [
        {
          text: `container ${name} ended, ${terminated.reason ?? 'Error'}${terminated.message ? `: ${terminated.message.trim()}` : ''}`,
          ...(since === undefined ? {} : { at: since }),
        },
      ],
      details: logDetails(facts, name),
      commands: [{ command: `kubectl logs ${podArgument(facts)} -c ${name}`, why: 'all that the container wrote' }],
    };
  },
};
