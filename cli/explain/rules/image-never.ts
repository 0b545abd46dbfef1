// The image is not on the node, and imagePullPolicy Never forbids to pull it.

import { crictlCommand } from '../command-text.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, lastEvent, timing, waitingFor } from '../pod-view.ts';

export const imageNever: Rule<PodFacts> = {
  name: 'image-never',
  find: (facts) => {
    const view = waitingFor(facts, 'ErrImageNeverPull');
    if (view === undefined || isDeleted(facts)) return undefined;
    const { name, image = '' } = view.spec;
    const { name: pod, namespace } = facts.pod.metadata;
    return {
      state: 'broken',
      verdict: `image ${image} of container ${name} is not on node ${facts.pod.spec.nodeName}, and imagePullPolicy Never forbids to pull it`,
      chain: [
        {
          text: `container ${name} waits, the reason is ErrImageNeverPull`,
          ...timing(lastEvent(facts, ['ErrImageNeverPull'])),
        },
        {
          text: 'the runtime does not have the image',
          call: { name: 'ImageStatus', to: 'the container runtime', with: image, answer: 'no such image' },
        },
      ],
      commands: [
        { command: crictlCommand(facts.runtime, 'images'), why: 'the images that the node has' },
        {
          command: `kubectl -n ${namespace} delete pod ${pod}`,
          why: 'then make it anew with imagePullPolicy IfNotPresent, or import the image first',
        },
      ],
    };
  },
};
