// VolumeRestrictions (PreFilter, Filter): a claim of access mode ReadWriteOncePod has one pod in the whole cluster, and a disk of
// the volume types that can be attached once has one user on a node. Pure.

import type { Volume } from 'kubernetes-types/core/v1';
import type { PodInfo } from '../cache/pod-info.ts';
import { StateKey } from '../framework/cycle-state.ts';
import { GO, type Plugin, SKIP } from '../framework/plugin.ts';
import { unschedulable } from '../framework/status.ts';
import type { StorageView } from '../volumes.ts';

const IN_USE = unschedulable(
  'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
);
const NO_DISK = unschedulable('node(s) had no available disk');

interface Disk {
  readonly id: string;
  readonly readOnly: boolean;
  /** Several read-only users may share it. */
  readonly sharedReadOnly: boolean;
}

/** The disks behind volumes that name one themselves, as a text for each that is the same for the same disk. */
function disksOf({ gcePersistentDisk, awsElasticBlockStore, iscsi, rbd }: Volume): readonly Disk[] {
  if (gcePersistentDisk !== undefined) {
    const { pdName, readOnly = false } = gcePersistentDisk;
    return [{ id: `gce ${pdName}`, readOnly, sharedReadOnly: true }];
  }
  if (awsElasticBlockStore !== undefined) {
    return [{ id: `ebs ${awsElasticBlockStore.volumeID}`, readOnly: false, sharedReadOnly: false }];
  }
  if (iscsi !== undefined)
    return [{ id: `iscsi ${iscsi.iqn}`, readOnly: iscsi.readOnly === true, sharedReadOnly: true }];
  if (rbd !== undefined) {
    const { monitors, image, pool = 'rbd', readOnly = false } = rbd;
    return monitors.map((monitor) => ({ id: `rbd ${monitor} ${pool} ${image}`, readOnly, sharedReadOnly: true }));
  }
  return [];
}

const disks = ({ pod }: PodInfo): readonly Disk[] => (pod.spec.volumes ?? []).flatMap(disksOf);

function conflict(a: readonly Disk[], b: readonly Disk[]): boolean {
  return a.some((one) =>
    b.some((other) => one.id === other.id && !(one.sharedReadOnly && one.readOnly && other.readOnly)),
  );
}

interface State {
  readonly disks: readonly Disk[];
  /** The pod's claims for one pod alone. */
  readonly exclusive: readonly string[];
  /** Pods that use them now. */
  users: number;
}

export function volumeRestrictions(view: StorageView): Plugin {
  const key = new StateKey<State>((state) => ({ ...state }));
  const exclusiveClaims = (pod: PodInfo): readonly string[] =>
    pod.claims.filter((claim) => view.claim(claim)?.spec?.accessModes?.includes('ReadWriteOncePod') === true);
  const users = ({ exclusive }: State, other: PodInfo): number =>
    exclusive.filter((claim) => other.claims.includes(claim)).length;
  return {
    name: 'VolumeRestrictions',
    preFilter: (state, pod, snapshot) => {
      const [own, exclusive] = [disks(pod), exclusiveClaims(pod)];
      if (own.length === 0 && exclusive.length === 0) return SKIP;
      const inUse = exclusive.reduce((sum, claim) => sum + snapshot.usesOfClaim(claim), 0);
      key.write(state, { disks: own, exclusive, users: inUse });
      return GO;
    },
    addPod: (state, _pod, added) => {
      const found = key.read(state);
      if (found !== undefined) found.users += users(found, added);
    },
    removePod: (state, _pod, removed) => {
      const found = key.read(state);
      if (found !== undefined) found.users -= users(found, removed);
    },
    filter: (state, _pod, node) => {
      const found = key.read(state);
      if (found === undefined) return undefined;
      if (found.disks.length > 0) {
        for (const other of node.pods.values()) if (conflict(found.disks, disks(other))) return NO_DISK;
      }
      return found.users > 0 ? IN_USE : undefined;
    },
    worthRetrying: (event, pod) => {
      if (event.resource === 'AssignedPod')
        return event.action === 'delete' && (event.object.spec.volumes ?? []).length > 0;
      if (event.resource === 'PersistentVolumeClaim') {
        return pod.claims.includes(`${event.object.metadata.namespace}/${event.object.metadata.name}`);
      }
      return event.resource === 'Node' && event.action === 'add';
    },
  };
}
