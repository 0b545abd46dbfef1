// Whether a volume that a driver made is to be deleted by it now. Pure.

import { ANNOTATIONS, annotation, type PersistentVolume, type VolumeAttachment } from '../../storage/objects.ts';
import { hasFinalizer } from '../../storage/write.ts';
import { PROVISIONER_FINALIZER } from './request.ts';

/** Provisioned here, not bound to any claim, and with reclaim policy Delete. */
export function shouldDelete(volume: PersistentVolume, driver: string): boolean {
  if (annotation(volume, ANNOTATIONS.provisionedBy) !== driver || volume.spec?.csi?.driver !== driver) return false;
  if (volume.spec.persistentVolumeReclaimPolicy !== 'Delete') return false;
  const phase = volume.status?.phase;
  if (volume.metadata.deletionTimestamp === undefined) return phase === 'Released';
  // The object was deleted; our finalizer keeps it until the volume is deleted.
  return hasFinalizer(volume, PROVISIONER_FINALIZER) && phase !== 'Bound';
}

/** Whether our finalizer on a volume of this driver is to be added, removed or kept. */
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
