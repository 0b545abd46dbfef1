// image volumes: the files of an OCI image, mounted read-only by the container runtime itself (KEP-4639). Here is only
// the request for one; the image is pulled where containers' images are, and nothing is mounted by the agent.

import { getOwn } from '../../lib/own-property.ts';
import type { RuntimeVersion } from '../ports/runtime.ts';
import { type VolumePlan, type VolumeType, volumeDir } from './volume-type.ts';

const plugin = 'kubernetes.io/image';

export interface ImagePlan extends VolumePlan {
  readonly image: { readonly reference: string; readonly pullPolicy: string | undefined };
}

/** The first releases that take an image for a mount. */
const SINCE: Readonly<Record<string, readonly [major: number, minor: number]>> = {
  containerd: [2, 1],
  'cri-o': [1, 31],
};

/** Why this runtime cannot mount images, or undefined when it can or is not known. Pure. */
export function imageVolumeProblem({ name, version }: Pick<RuntimeVersion, 'name' | 'version'>): string | undefined {
  const since = getOwn(SINCE, name.toLowerCase());
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (since === undefined || major === undefined) return undefined;
  const [wantedMajor, wantedMinor] = since;
  const able = Number(major) > wantedMajor || (Number(major) === wantedMajor && Number(minor) >= wantedMinor);
  return able ? undefined : `${name} ${version} cannot mount images, ${wantedMajor}.${wantedMinor} or newer is needed`;
}

export const imageVolume: VolumeType<ImagePlan> = {
  plugin,
  plan({ volume, podDir }) {
    const { reference = '', pullPolicy } = volume.image ?? {};
    if (reference === '') throw new Error('image volume without a reference');
    return {
      path: volumeDir(podDir, plugin, volume.name),
      readOnly: true,
      managed: false,
      image: { reference, pullPolicy: pullPolicy === '' ? undefined : pullPolicy },
    };
  },
  async mount(_plan, _pod, { imageVolumeProblem: problem }) {
    const why = await problem?.();
    // The kubelet's message where it has no such volumes.
    if (why !== undefined) throw new Error(`no volume plugin matched: ${why}`);
  },
};
