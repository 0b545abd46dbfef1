// Whether a volume that a driver made is to be deleted by it now. Pure.

import { ANNOTATIONS, annotation, type PersistentVolume, type VolumeAttachment } from '../storage/objects.ts';
import { hasFinalizer } from '../storage/write.ts';
import { PROVISIONER_FINALIZER } from './request.ts';

/** Ours, not wanted by any claim, and meant to go with it. */
export function shouldDelete(volume: PersistentVolume, driver: string): boolean {
  if (annotation(volume, ANNOTATIONS.provisionedBy) !== driver || volume.spec?.csi?.driver !== driver) return false;
  if (volume.spec.persistentVolumeReclaimPolicy !== 'Delete') return false;
  const phase = volume.status?.phase;
  if (volume.metadata.deletionTimestamp === undefined) return phase === 'Released';
  // Someone deleted the object; while our finalizer holds it, what it stands for has not been deleted.
  return hasFinalizer(volume, PROVISIONER_FINALIZER) && phase !== 'Bound';
}

/** What our finalizer on a volume of ours should be made to be. */
export function finalizerDecision(volume: PersistentVolume, driver: string): 'add' | 'remove' | 'keep' {
  if (annotation(volume, ANNOTATIONS.provisionedBy) !== driver) return 'keep';
  const wanted = volume.spec?.persistentVolumeReclaimPolicy === 'Delete';
  const present = hasFinalizer(volume, PROVISIONER_FINALIZER);
  if (wanted === present) return 'keep';
  if (wanted) return volume.metadata.deletionTimestamp === undefined ? 'add' : 'keep';
  return 'remove';
}

/** The node where it still is attached, if anywhere. */
export function attachedTo(volume: PersistentVolume, attachments: readonly VolumeAttachment[]): string | undefined {
  return attachments.find((one) => one.spec.source.persistentVolumeName === volume.metadata.name)?.spec.nodeName;
}
