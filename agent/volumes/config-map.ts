// configMap volumes: a ConfigMap's keys as files, in a directory on disk.

import { type ContentPlan, contentPlan, mountContent, updateContent } from './content-volume.ts';
import type { VolumeType } from './volume-type.ts';

const plugin = 'kubernetes.io/configmap';

export const configMapVolume: VolumeType<ContentPlan> = {
  plugin,
  plan(input) {
    const { name = '', items, optional = false, defaultMode } = input.volume.configMap ?? {};
    return contentPlan(input, plugin, 'disk', [{ kind: 'configMap', name, items, optional }], defaultMode);
  },
  mount: mountContent,
  update: updateContent,
};
