// The image's name is not one.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, lastEvent, podArgument, timing, waitingFor } from '../pod-view.ts';

/** What is wrong with it, in words. Pure. */
export function whatIsWrong(image: string): string {
  const path = image.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  if (image.trim() !== image || /\s/.test(image)) return 'it contains a space';
  if (/[A-Z]/.test(path.replace(/^[^/]*[.:][^/]*\//, ''))) return 'repository names are in lower case';
  if (/^https?:\/\//.test(image)) return 'it begins with a scheme: leave out "https://"';
  const tag = /:([^:/@]*)(?:@.*)?$/.exec(image)?.[1];
  if (tag === '') return 'the tag after ":" is empty';
  if (tag !== undefined && !/^\w[\w.-]{0,127}$/.test(tag)) return `"${tag}" is no tag`;
  return 'it has a character that names do not have';
}

export const imageName: Rule<PodFacts> = {
  name: 'image-name',
  find: (facts) => {
    const view = waitingFor(facts, 'InvalidImageName');
    if (view === undefined || isDeleted(facts)) return undefined;
    const { name, image = '' } = view.spec;
    const event = lastEvent(facts, ['InspectFailed']);
    const since = parseRfc3339(facts.pod.status?.startTime);
    return {
      state: 'broken',
      verdict: `container ${name} has no valid image name: "${image}" – ${whatIsWrong(image)}`,
      chain: [
        { text: `container ${name} waits, the reason is InvalidImageName`, ...(since === undefined ? {} : { since }) },
        {
          text: 'the name is checked before any registry is called',
          call: {
            name: 'parsing the image’s name',
            to: `node ${facts.pod.spec.nodeName}`,
            answer: view.status?.state?.waiting?.message ?? '',
          },
          ...timing(event),
        },
      ],
      commands: [
        {
          command: `kubectl set image pod/${facts.pod.metadata.name} -n ${facts.pod.metadata.namespace} ${name}=REGISTRY/NAME:TAG`,
          why: 'another image for the pod that is there',
        },
        {
          command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.containers[*].image}'`,
          why: 'the names of all its images',
        },
      ],
    };
  },
};
