// Storage objects and empty stores of them, for tests of the control plane.

import { Store } from '../../client/store.ts';
import type { Pod } from '../../client/types.ts';
import type {
  CsiDriver,
  CsiNode,
  CsiStorageCapacity,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeAttachment,
} from '../../controlplane/storage/objects.ts';

export function storageStores() {
  return {
    persistentVolumes: new Store<PersistentVolume>(),
    persistentVolumeClaims: new Store<PersistentVolumeClaim>(),
    storageClasses: new Store<StorageClass>(),
    csiDrivers: new Store<CsiDriver>(),
    csiNodes: new Store<CsiNode>(),
    volumeAttachments: new Store<VolumeAttachment>(),
    csiStorageCapacities: new Store<CsiStorageCapacity>(),
  };
}

let version = 1;

interface Meta {
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly finalizers?: string[];
  readonly deletionTimestamp?: string;
  readonly creationTimestamp?: string;
  readonly ownerReferences?: NonNullable<PersistentVolumeClaim['metadata']['ownerReferences']>;
}

function meta(name: string, more: Meta = {}) {
  return { name, uid: `uid-${name}`, resourceVersion: String(version++), ...more };
}

/** Asks for 1Gi, ReadWriteOnce, of class "fast". */
export function makeClaim(
  name: string,
  spec: NonNullable<PersistentVolumeClaim['spec']> = {},
  metadata: Meta = {},
  status: NonNullable<PersistentVolumeClaim['status']> = { phase: 'Pending' },
): PersistentVolumeClaim {
  return {
    metadata: { ...meta(name, metadata), namespace: 'demo' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      ...spec,
    },
    status,
  };
}

/** Has 1Gi, ReadWriteOnce, of class "fast", and is available. */
export function makeVolume(
  name: string,
  spec: NonNullable<PersistentVolume['spec']> = {},
  metadata: Meta = {},
  phase = 'Available',
): PersistentVolume {
  return {
    metadata: meta(name, metadata),
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: 'csi.test', volumeHandle: `handle-${name}` },
      ...spec,
    },
    status: { phase },
  };
}

export function claimRef(claim: PersistentVolumeClaim): NonNullable<NonNullable<PersistentVolume['spec']>['claimRef']> {
  const { name, namespace = '', uid } = claim.metadata;
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, namespace, uid };
}

export function makeClass(name: string, fields: Partial<StorageClass> = {}, metadata: Meta = {}): StorageClass {
  return {
    metadata: meta(name, metadata),
    provisioner: 'csi.test',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    ...fields,
  };
}

export function podWithClaims(name: string, claims: readonly string[], node?: string, metadata: Meta = {}): Pod {
  return {
    metadata: { ...meta(name, metadata), namespace: 'demo' },
    spec: {
      containers: [{ name: 'c' }],
      volumes: claims.map((claimName, index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName } })),
      ...(node === undefined ? {} : { nodeName: node }),
    },
  };
}
