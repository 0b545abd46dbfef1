// The plugins that there are, in the order in which they are enabled by default, with their weights as kube-scheduler's default
// profile has them.

import type { ControllerContext } from '../../runtime.ts';
import type { PluginArgs } from '../config/model.ts';
import type { Plugin } from '../framework/plugin.ts';
import type { AssumedStorage } from '../storage-assumptions.ts';
import type { VolumeWrites } from '../volume-writes.ts';
import { defaultBinder } from './default-binder.ts';
import { defaultPreemption, type PreemptionView } from './default-preemption.ts';
import { imageLocality } from './image-locality.ts';
import { interPodAffinity } from './inter-pod-affinity.ts';
import { nodeAffinity } from './node-affinity.ts';
import { nodeName } from './node-name.ts';
import { nodePorts } from './node-ports.ts';
import { nodeResourcesBalancedAllocation } from './node-resources-balanced-allocation.ts';
import { nodeResourcesFit } from './node-resources-fit.ts';
import { nodeUnschedulable } from './node-unschedulable.ts';
import { nodeVolumeLimits } from './node-volume-limits.ts';
import { type DefaultSelector, podTopologySpread } from './pod-topology-spread.ts';
import { prioritySort } from './priority-sort.ts';
import { schedulingGates } from './scheduling-gates.ts';
import { taintToleration } from './taint-toleration.ts';
import { volumeBinding } from './volume-binding.ts';
import { volumeRestrictions } from './volume-restrictions.ts';
import { volumeZone } from './volume-zone.ts';

/** What plugins read and write beside the snapshot. */
export interface PluginHandle {
  readonly client: Pick<ControllerContext['client'], 'create'>;
  readonly storage: AssumedStorage;
  readonly volumes: Pick<VolumeWrites, 'bind'>;
  readonly preemption: PreemptionView;
  readonly defaultSelector: DefaultSelector;
}

export interface PluginRow {
  readonly name: string;
  /** In scores. */
  readonly weight: number;
  make(args: PluginArgs, handle: PluginHandle): Plugin;
}

const row = (name: string, weight: number, make: PluginRow['make']): PluginRow => ({ name, weight, make });

export const PLUGINS: readonly PluginRow[] = [
  row('SchedulingGates', 1, () => schedulingGates),
  row('PrioritySort', 1, () => prioritySort),
  row('NodeUnschedulable', 1, () => nodeUnschedulable),
  row('NodeName', 1, () => nodeName),
  row('TaintToleration', 3, () => taintToleration),
  row('NodeAffinity', 2, (args) => nodeAffinity(args.NodeAffinity)),
  row('NodePorts', 1, () => nodePorts),
  row('NodeResourcesFit', 1, (args) => nodeResourcesFit(args.NodeResourcesFit)),
  row('VolumeRestrictions', 1, (_args, { storage }) => volumeRestrictions(storage)),
  row('NodeVolumeLimits', 1, (_args, { storage }) => nodeVolumeLimits(storage)),
  row('VolumeBinding', 1, (args, { storage, volumes }) =>
    volumeBinding(storage, volumes, args.VolumeBinding.bindTimeoutSeconds),
  ),
  row('VolumeZone', 1, (_args, { storage }) => volumeZone(storage)),
  row('PodTopologySpread', 2, (args, handle) => podTopologySpread(args.PodTopologySpread, handle.defaultSelector)),
  row('InterPodAffinity', 2, (args) => interPodAffinity(args.InterPodAffinity)),
  row('DefaultPreemption', 1, (args, { preemption }) => defaultPreemption(args.DefaultPreemption, preemption)),
  row('NodeResourcesBalancedAllocation', 1, (args) =>
    nodeResourcesBalancedAllocation(args.NodeResourcesBalancedAllocation.resources),
  ),
  row('ImageLocality', 1, () => imageLocality),
  row('DefaultBinder', 1, (_args, { client }) => defaultBinder(client)),
];
