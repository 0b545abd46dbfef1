// SchedulingGates (PreEnqueue): a pod with gates is not considered until all are removed (KEP-3521). Pure.

import type { Plugin } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';

export const schedulingGates: Plugin = {
  name: 'SchedulingGates',
  preEnqueue: ({ pod }) => {
    const gates = (pod.spec.schedulingGates ?? []).map(({ name }) => name);
    return gates.length === 0 ? undefined : unresolvable(`waiting for scheduling gates: [${gates.join(' ')}]`);
  },
  worthRetrying: (event) => event.resource === 'Self' && event.action === 'update' && event.changed.has('gates'),
};
