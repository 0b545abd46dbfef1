// NodePorts (PreFilter, Filter): the host ports that the pod asks for are free on the node. Pure.

import type { Pod } from '../../../client/types.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import { GO, type Plugin, SKIP } from '../framework/plugin.ts';
import { unschedulable } from '../framework/status.ts';
import { hostPorts, portsConflict } from '../requests.ts';

const TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports");

function conflicts(pod: PodInfo, other: Pod | PodInfo): boolean {
  const taken = 'hostPorts' in other ? other.hostPorts : hostPorts(other);
  return pod.hostPorts.some((port) => taken.some((used) => portsConflict(port, used)));
}

export const nodePorts: Plugin = {
  name: 'NodePorts',
  preFilter: (_state, pod) => (pod.hostPorts.length === 0 ? SKIP : GO),
  filter: (_state, pod, node) => {
    for (const other of node.podsWithPorts.values()) if (conflicts(pod, other)) return TAKEN;
    return undefined;
  },
  worthRetrying: (event, pod) => {
    if (event.resource === 'AssignedPod') return event.action === 'delete' && conflicts(pod, event.object);
    return event.resource === 'Node' && event.action === 'add';
  },
};
