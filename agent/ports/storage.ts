// Port of the volumes toward the API server's storage objects. `undefined` is "not found"; anything else that goes wrong
// rejects. Types only; agent/api/storage-api.ts implements it.

import type { PersistentVolume, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { CSIDriver, VolumeAttachment } from 'kubernetes-types/storage/v1';
import type { Stored } from '../../client/types.ts';

export interface StorageObjects {
  claim(namespace: string, name: string): Promise<Stored<PersistentVolumeClaim> | undefined>;
  volume(name: string): Promise<Stored<PersistentVolume> | undefined>;
  /** From a watched copy. */
  csiDriver(name: string): Promise<Stored<CSIDriver> | undefined>;
  /** Calls back with each state of the object, the present one first, until `signal` aborts. */
  followAttachment(
    name: string,
    onState: (attachment: Stored<VolumeAttachment> | undefined) => void,
    signal: AbortSignal,
  ): void;
  followClaim(
    namespace: string,
    name: string,
    onState: (claim: Stored<PersistentVolumeClaim> | undefined) => void,
    signal: AbortSignal,
  ): void;
  /** Merges `status` into the claim as it was read; rejects when the claim has changed since. */
  patchClaimStatus(claim: Stored<PersistentVolumeClaim>, status: object): Promise<Stored<PersistentVolumeClaim>>;
}
