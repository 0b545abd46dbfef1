// The kinds of storage that a pod's volume and a PersistentVolume name by the same field.

/** Those that need no other object of the API; azureFile, csi and glusterfs do. */
export const STORAGE_SOURCES = [
  'awsElasticBlockStore',
  'azureDisk',
  'cephfs',
  'cinder',
  'fc',
  'flexVolume',
  'flocker',
  'gcePersistentDisk',
  'hostPath',
  'iscsi',
  'nfs',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'rbd',
  'scaleIO',
  'storageos',
  'vsphereVolume',
] as const;
