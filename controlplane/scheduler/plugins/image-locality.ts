// ImageLocality (Score): nodes that have the pod's images are better, the more so the larger the images are, and the more
// nodes have them: so that one node with a rare image does not draw all pods. Pure.

import type { PodInfo } from '../cache/pod-info.ts';
import type { Snapshot } from '../cache/snapshot.ts';
import { StateKey } from '../framework/cycle-state.ts';
import { MAX_NODE_SCORE, type Plugin } from '../framework/plugin.ts';

const MB = 1024 * 1024;
/** Less than this does not count; more than this, for each container, counts no more. Bytes. */
const LEAST = 23 * MB;
const MOST = 1000 * MB;

/** With ":latest" where there is neither a tag nor a digest. */
export function normalizedImage(image: string): string {
  return image.lastIndexOf(':') <= image.lastIndexOf('/') ? `${image}:latest` : image;
}

interface State {
  readonly images: readonly string[];
  readonly snapshot: Snapshot;
}

function imagesOf({ pod: { spec } }: PodInfo): readonly string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  return containers.map(({ image = '' }) => normalizedImage(image));
}

/** `sum`: of the images' sizes in bytes, each by its share of nodes that have it. */
export function imageScore(sum: number, containers: number): number {
  const most = MOST * containers;
  const bounded = Math.min(Math.max(sum, LEAST), most);
  return Math.trunc((MAX_NODE_SCORE * (bounded - LEAST)) / (most - LEAST));
}

const key = new StateKey<State>();

export const imageLocality: Plugin = {
  name: 'ImageLocality',
  preScore: (state, pod, snapshot) => {
    const images = imagesOf(pod);
    if (images.every((image) => snapshot.nodesWithImage(image) === 0)) return 'skip';
    key.write(state, { images, snapshot });
    return undefined;
  },
  score: (state, _pod, node) => {
    const found = key.read(state);
    if (found === undefined) return 0;
    const { images, snapshot } = found;
    const share = (image: string): number => snapshot.nodesWithImage(image) / snapshot.nodes.length;
    const sum = images.reduce((total, image) => total + Math.trunc((node.images.get(image) ?? 0) * share(image)), 0);
    return imageScore(sum, images.length);
  },
  // No event: the plugin rejects no pod.
  worthRetrying: () => false,
};
