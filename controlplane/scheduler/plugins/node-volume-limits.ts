// NodeVolumeLimits (PreFilter, Filter): the number of volumes of a CSI driver that a node can have, as its CSINode says. Pure.

import type { Pod } from '../../../client/types.ts';
import { claimClass, claimNameOf } from '../../storage/objects.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import { GO, type Plugin, SKIP } from '../framework/plugin.ts';
import { unschedulable } from '../framework/status.ts';
import type { StorageView } from '../volumes.ts';

const EXCEEDED = unschedulable('node(s) exceed max volume count');

/** The CSI volumes that a pod's claims are or will be, by driver; the same id for the same volume. */
function csiVolumes(pod: Pod, view: StorageView): readonly (readonly [driver: string, id: string])[] {
  return (pod.spec.volumes ?? []).flatMap((volume): (readonly [string, string])[] => {
    const name = claimNameOf(pod, volume);
    const key = `${pod.metadata.namespace}/${name}`;
    const claim = name === undefined ? undefined : view.claim(key);
    if (claim === undefined) return [];
    const csi = view.volume(claim.spec?.volumeName ?? '')?.spec?.csi;
    if (csi !== undefined) return [[csi.driver, csi.volumeHandle]];
    const provisioner = view.storageClass(claimClass(claim) ?? '')?.provisioner;
    return provisioner === undefined ? [] : [[provisioner, key]];
  });
}

function exceedsVolumeLimit(pod: Pod, node: NodeInfo, view: StorageView): boolean {
  const drivers = view.csiNode(node.name)?.spec.drivers ?? [];
  const limits = new Map(drivers.map(({ name, allocatable }) => [name, allocatable?.count]));
  const wanted = csiVolumes(pod, view).filter(([driver]) => limits.get(driver) !== undefined);
  if (wanted.length === 0) return false;
  const inUse = [...node.pods.values()].flatMap((other) => csiVolumes(other.pod, view));
  return wanted.some(([driver]) => {
    const ids = new Set([...inUse, ...wanted].filter(([other]) => other === driver).map(([, id]) => id));
    const before = new Set(inUse.filter(([other]) => other === driver).map(([, id]) => id));
    // A pod that adds nothing to what is there already is not the one to refuse.
    return ids.size > before.size && ids.size > (limits.get(driver) ?? Number.POSITIVE_INFINITY);
  });
}

export function nodeVolumeLimits(view: StorageView): Plugin {
  return {
    name: 'NodeVolumeLimits',
    preFilter: (_state, { claims }) => (claims.length === 0 ? SKIP : GO),
    filter: (_state, { pod }, node) => (exceedsVolumeLimit(pod, node, view) ? EXCEEDED : undefined),
    worthRetrying: (event) => {
      if (event.resource === 'AssignedPod')
        return event.action === 'delete' && (event.object.spec.volumes ?? []).length > 0;
      if (event.resource === 'CSINode') return event.action !== 'delete';
      return event.resource === 'Node' && event.action === 'add';
    },
  };
}
