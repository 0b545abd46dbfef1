// The API objects of the lab's CSI driver: its CSIDriver and the storage classes. Created once; an existing object stays,
// since a user may have changed it.

import type { ApiClient } from '../../client/api.ts';
import { isAlreadyExists } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { DRIVER_NAME } from '../../csi/driver/names.ts';
import type { LabState } from './state.ts';

const GROUP = 'storage.k8s.io/v1';

/** loop is the default: ext4. */
export const STORAGE_CLASSES = ['loop', 'loop-xfs'] as const;

function storageClass(name: (typeof STORAGE_CLASSES)[number]) {
  return {
    apiVersion: GROUP,
    kind: 'StorageClass',
    metadata: {
      name,
      ...(name === 'loop' ? { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } : {}),
    },
    provisioner: DRIVER_NAME,
    parameters: { 'csi.storage.k8s.io/fstype': name === 'loop' ? 'ext4' : 'xfs' },
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    // A volume is on one node's disk: which one is known when its pod has a node.
    volumeBindingMode: 'WaitForFirstConsumer',
  };
}

/** The objects as they are made. Pure. */
export function csiObjects(csi: NonNullable<LabState['csi']>) {
  const driver = {
    apiVersion: GROUP,
    kind: 'CSIDriver',
    metadata: { name: DRIVER_NAME },
    spec: {
      attachRequired: csi.flags.includes('--attach'),
      podInfoOnMount: true,
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      fsGroupPolicy: 'File',
      storageCapacity: true,
    },
  };
  return [
    { path: resourcePath(GROUP, 'csidrivers'), object: driver },
    ...STORAGE_CLASSES.map((name) => ({ path: resourcePath(GROUP, 'storageclasses'), object: storageClass(name) })),
  ];
}

export async function applyCsiObjects(client: ApiClient, csi: NonNullable<LabState['csi']>): Promise<void> {
  for (const { path, object } of csiObjects(csi)) {
    try {
      await client.create(path, object);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
