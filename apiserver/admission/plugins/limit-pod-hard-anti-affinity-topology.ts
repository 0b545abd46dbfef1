// LimitPodHardAntiAffinityTopology: required anti-affinity keeps pods off nodes, and off no larger place
// (plugin/pkg/admission/antiaffinity).

import { podOf } from '../../kinds/shapes.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const HOSTNAME = 'kubernetes.io/hostname';

export const limitPodHardAntiAffinityTopology: AdmissionPlugin = {
  name: 'LimitPodHardAntiAffinityTopology',
  handles: handlesOnly('', 'pods', 'CREATE', 'UPDATE'),
  validate: ({ object }) => {
    const affinity = object === undefined ? undefined : podOf(object).spec?.affinity?.podAntiAffinity;
    const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const other = terms.find(({ topologyKey }) => topologyKey !== HOSTNAME);
    if (other === undefined) return;
    throw new AdmissionForbidden(
      `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${other.topologyKey ?? ''} but only key ${HOSTNAME} is allowed`,
    );
  },
};
