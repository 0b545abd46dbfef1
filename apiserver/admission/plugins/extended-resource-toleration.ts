// ExtendedResourceToleration: a pod that requests a device tolerates the taint of the nodes that are kept for it, whose key is
// the device's name (plugin/pkg/admission/extendedresourcetoleration).

import { isNative } from '../../../lib/resource-names.ts';
import { podOf } from '../../kinds/shapes.ts';
import { type AdmissionPlugin, handlesOnly } from '../plugin.ts';

export const extendedResourceToleration: AdmissionPlugin = {
  name: 'ExtendedResourceToleration',
  handles: handlesOnly('', 'pods', 'CREATE', 'UPDATE'),
  admit: ({ object }) => {
    const spec = object === undefined ? undefined : podOf(object).spec;
    if (spec === undefined) return;
    const requested = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ resources }) =>
      Object.keys(resources?.requests ?? {}).filter((name) => !isNative(name)),
    );
    const own = spec.tolerations ?? [];
    const added = [...new Set(requested)]
      .sort()
      .filter((key) => !own.some((one) => one.key === key && one.operator === 'Exists' && one.effect === 'NoSchedule'))
      .map((key) => ({ key, operator: 'Exists', effect: 'NoSchedule' }));
    if (added.length > 0) spec.tolerations = [...own, ...added];
  },
};
