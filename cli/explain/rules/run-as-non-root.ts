// runAsNonRoot is set, and the image's user is root, or a name that may be root's.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, lastEvent, podArgument, timing, waitingFor } from '../pod-view.ts';

export const runAsNonRoot: Rule<PodFacts> = {
  name: 'run-as-non-root',
  find: (facts) => {
    const view = waitingFor(facts, 'CreateContainerConfigError');
    const message = view?.status?.state?.waiting?.message ?? '';
    if (view === undefined || isDeleted(facts) || !/runAsNonRoot/.test(message)) return undefined;
    const { name, image = '' } = view.spec;
    const user = /non-numeric user \(([^)]+)\)/.exec(message)?.[1];
    const runAsUser = view.spec.securityContext?.runAsUser ?? facts.pod.spec.securityContext?.runAsUser;
    const why =
      user !== undefined
        ? `the user of image ${image} is the name ${user}, which may be root`
        : runAsUser === 0
          ? 'runAsUser is 0, which is root'
          : `image ${image} would run as root`;
    return {
      state: 'broken',
      verdict: `container ${name} may not run as root (runAsNonRoot), and ${why}`,
      chain: [
        {
          text: `container ${name} waits, the reason is CreateContainerConfigError`,
          ...timing(lastEvent(facts, ['Failed'])),
        },
        {
          text: 'the agent does not create a container that would break runAsNonRoot',
          call: { name: 'the check of runAsNonRoot', to: `node ${facts.pod.spec.nodeName}`, answer: message },
        },
      ],
      commands: [
        {
          command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.securityContext}{.spec.containers[*].securityContext}'`,
          why: 'what the pod demands. It needs securityContext.runAsUser with a number other than 0, or an image with such a user',
        },
      ],
    };
  },
};
