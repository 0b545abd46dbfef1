// What happens in the cluster that can make a pod schedulable, as the plugins' hints see it. What has changed of a node or
// pod is worked out once here. Pure.

import type { Node, Pod } from '../../client/types.ts';
import { sameJson } from '../../lib/same-json.ts';
import type {
  CsiDriver,
  CsiNode,
  CsiStorageCapacity,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../storage/objects.ts';

export type NodeChange = 'allocatable' | 'labels' | 'taints' | 'conditions' | 'annotations';
export type PodChange = 'labels' | 'requests' | 'tolerations' | 'gates' | 'other';

type Stored<Resource extends string, T> =
  | { readonly resource: Resource; readonly action: 'add' | 'delete'; readonly object: T }
  | { readonly resource: Resource; readonly action: 'update'; readonly object: T; readonly old: T };

export type ClusterEvent =
  | { readonly resource: 'Node'; readonly action: 'add' | 'delete'; readonly object: Node }
  | {
      readonly resource: 'Node';
      readonly action: 'update';
      readonly object: Node;
      readonly old: Node;
      readonly changed: ReadonlySet<NodeChange>;
    }
  /** A pod that has a node: it came there, changed, or has ended. */
  | { readonly resource: 'AssignedPod'; readonly action: 'add' | 'delete'; readonly object: Pod }
  | {
      readonly resource: 'AssignedPod';
      readonly action: 'update';
      readonly object: Pod;
      readonly old: Pod;
      readonly changed: ReadonlySet<PodChange>;
    }
  /** The waiting pod itself. */
  | {
      readonly resource: 'Self';
      readonly action: 'update';
      readonly object: Pod;
      readonly old: Pod;
      readonly changed: ReadonlySet<PodChange>;
    }
  | Stored<'PersistentVolumeClaim', PersistentVolumeClaim>
  | Stored<'PersistentVolume', PersistentVolume>
  | Stored<'StorageClass', StorageClass>
  | Stored<'CSINode', CsiNode>
  | Stored<'CSIDriver', CsiDriver>
  | Stored<'CSIStorageCapacity', CsiStorageCapacity>
  /** Labels of a namespace have changed. */
  | { readonly resource: 'Namespace'; readonly action: 'update'; readonly name: string };

/** What a heartbeat changes is not among it, so that it wakes no pod. */
export function nodeChanges(old: Node, now: Node): ReadonlySet<NodeChange> {
  const changed = new Set<NodeChange>();
  if (!sameJson(old.status?.allocatable, now.status?.allocatable)) changed.add('allocatable');
  if (!sameJson(old.metadata.labels, now.metadata.labels)) changed.add('labels');
  if (!sameJson(old.metadata.annotations, now.metadata.annotations)) changed.add('annotations');
  if (!sameJson(old.spec?.taints, now.spec?.taints) || old.spec?.unschedulable !== now.spec?.unschedulable) {
    changed.add('taints');
  }
  const conditions = (node: Node): unknown => node.status?.conditions?.map(({ type, status }) => [type, status]);
  if (!sameJson(conditions(old), conditions(now))) changed.add('conditions');
  return changed;
}

export function podChanges(old: Pod, now: Pod): ReadonlySet<PodChange> {
  const changed = new Set<PodChange>();
  if (!sameJson(old.metadata.labels, now.metadata.labels)) changed.add('labels');
  const requests = ({ spec }: Pod): unknown =>
    [...spec.containers, ...(spec.initContainers ?? [])].map(({ resources }) => resources?.requests);
  if (!sameJson(requests(old), requests(now))) changed.add('requests');
  if (!sameJson(old.spec.tolerations, now.spec.tolerations)) changed.add('tolerations');
  if (!sameJson(old.spec.schedulingGates, now.spec.schedulingGates)) changed.add('gates');
  if (changed.size === 0 && !sameJson(old.spec, now.spec)) changed.add('other');
  return changed;
}

/** In the order in which kube-scheduler looks at what has changed. */
const NODE_UPDATES: readonly (readonly [NodeChange, string])[] = [
  ['allocatable', 'Allocatable'],
  ['labels', 'Label'],
  ['taints', 'Taint'],
  ['conditions', 'Condition'],
  ['annotations', 'Annotation'],
];
const POD_UPDATES: readonly (readonly [PodChange, string])[] = [
  ['labels', 'PodLabel'],
  ['requests', 'PodScaleDown'],
  ['gates', 'PodSchedulingGatesEliminated'],
  ['tolerations', 'PodToleration'],
];
const IN_GROUP = new Set(['StorageClass', 'CSINode', 'CSIDriver', 'CSIStorageCapacity']);

function podLabel(resource: string, changed: ReadonlySet<PodChange>): string {
  return `${resource}Update${POD_UPDATES.find(([change]) => changed.has(change))?.[1] ?? ''}`;
}

/** The event as kube-scheduler's metrics name it: "NodeAdd", "NodeUpdateNodeTaint". */
export function eventLabel(event: ClusterEvent): string {
  const { resource, action } = event;
  if (resource === 'Self') return podLabel('UnschedulablePod', event.changed);
  if (action === 'update' && resource === 'AssignedPod') return podLabel(resource, event.changed);
  if (action === 'update' && resource === 'Node') {
    return `NodeUpdateNode${NODE_UPDATES.find(([change]) => event.changed.has(change))?.[1] ?? ''}`;
  }
  const group = IN_GROUP.has(resource) ? 'storage.k8s.io/' : '';
  return `${group}${resource}${action === 'add' ? 'Add' : action === 'delete' ? 'Delete' : 'Update'}`;
}

/** A node that pods may fit on where they did not before: it is new, or is not what it was. */
export function isNodeChange(event: ClusterEvent, ...changes: readonly NodeChange[]): boolean {
  if (event.resource !== 'Node') return false;
  return event.action === 'update' ? changes.some((change) => event.changed.has(change)) : event.action === 'add';
}
