// ImagePullBackOff, because the tag is misspelled.

import type { Pod } from '../../../client/types.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, mainContainer, mainStatus, readyFinding } from '../pods.ts';

export interface Facts {
  readonly pods: readonly Pod[];
  /** Names of the images that the runtime has. */
  readonly images: readonly string[];
}

/** "busybox:stable" as a runtime lists it. Pure. */
function isListed(images: readonly string[], image: string): boolean {
  return images.some(
    (name) => name === image || name === `docker.io/library/${image}` || name === `docker.io/${image}`,
  );
}

/** Pure. */
export function evaluate({ pods, images }: Facts): readonly Finding[] {
  const pod = findPod(pods, 'web');
  const image = mainContainer(pod)?.image;
  const id = mainStatus(pod)?.imageID ?? '';
  return [
    finding(
      'image that the pod web names, among those of the runtime (ListImages)',
      image === undefined ? 'there is no such pod' : `${image}: ${isListed(images, image) ? 'there' : 'not there'}`,
      image !== undefined && isListed(images, image),
      'name an image that the runtime has or can pull',
    ),
    finding('image that its container runs', id === '' ? 'none' : id, id !== '', 'the container is to run'),
    readyFinding(pods, 'web'),
  ];
}

export const imagePull: Exercise = {
  name: 'image-pull',
  title: 'ImagePullBackOff: a tag that does not exist',
  lesson:
    'ErrImagePull has the reason, ImagePullBackOff is only the pause after it; a pod’s image can be changed in place.',
  minutes: 5,
  hints: [
    'Find the first event with the runtime’s own message. Which image does it name, exactly?',
    '`crictl images` shows what is there. Compare the tags letter by letter.',
    'Write `busybox:stable` in world.yaml, and apply it.',
  ],
  check: async (machine) => {
    const { images } = await machine.cri.call('ListImages', {});
    return evaluate({ pods: await listPods(machine), images: images.flatMap(({ repo_tags }) => repo_tags) });
  },
};
