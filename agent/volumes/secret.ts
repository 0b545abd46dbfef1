// secret volumes: a Secret's keys as files, in memory only.

import { type ContentPlan, contentPlan, mountContent, updateContent } from './content-volume.ts';
import type { VolumeType } from './volume-type.ts';

const plugin = 'kubernetes.io/secret';

export const secretVolume: VolumeType<ContentPlan> = {
  plugin,
  plan(input) {
    const { secretName: name = '', items, optional = false, defaultMode } = input.volume.secret ?? {};
    return contentPlan(input, plugin, 'memory', [{ kind: 'secret', name, items, optional }], defaultMode);
  },
  mount: mountContent,
  update: updateContent,
};
