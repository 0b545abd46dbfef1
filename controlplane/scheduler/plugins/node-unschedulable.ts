// NodeUnschedulable (Filter): a cordoned node takes only pods that tolerate the taint of one. Pure.

import type { Taint } from 'kubernetes-types/core/v1';
import { toleratesTaint } from '../affinity.ts';
import { isNodeChange } from '../events.ts';
import type { Plugin } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';

const CORDONED: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
const UNSCHEDULABLE = unresolvable('node(s) were unschedulable');

export const nodeUnschedulable: Plugin = {
  name: 'NodeUnschedulable',
  filter: (_state, { pod }, { node }) =>
    node.spec?.unschedulable === true && !toleratesTaint(pod, CORDONED) ? UNSCHEDULABLE : undefined,
  worthRetrying: (event, { pod }) => {
    if (event.resource === 'Self') return event.changed.has('tolerations') && toleratesTaint(pod, CORDONED);
    return (
      isNodeChange(event, 'taints') &&
      'object' in event &&
      event.resource === 'Node' &&
      event.object.spec?.unschedulable !== true
    );
  },
};
