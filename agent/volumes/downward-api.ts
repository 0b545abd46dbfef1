// downwardAPI volumes: the pod's own metadata and resources as files.

import { type ContentPlan, contentPlan, mountContent, updateContent } from './content-volume.ts';
import type { VolumeType } from './volume-type.ts';

const plugin = 'kubernetes.io/downward-api';

export const downwardAPIVolume: VolumeType<ContentPlan> = {
  plugin,
  plan(input) {
    const { items = [], defaultMode } = input.volume.downwardAPI ?? {};
    return contentPlan(input, plugin, 'memory', [{ kind: 'downwardAPI', items }], defaultMode);
  },
  mount: mountContent,
  update: updateContent,
};
