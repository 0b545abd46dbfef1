// What is known of the room in a pod's volumes and of their health, as the stats API shows it (stats/v1alpha1
// VolumeStats). Types only.

import type { EpochMs } from '../../lib/clock.ts';

export interface VolumeStats {
  readonly podUid: string;
  /** The volume's name in the pod. */
  readonly name: string;
  readonly pvcRef?: { readonly name: string; readonly namespace: string };
  /** Bytes. */
  readonly capacityBytes?: number;
  readonly availableBytes?: number;
  readonly usedBytes?: number;
  readonly inodes?: number;
  readonly inodesFree?: number;
  readonly inodesUsed?: number;
  /** The volume's health, where the driver reports it. */
  readonly condition?: { readonly abnormal: boolean; readonly message: string };
  /** When it was read, epoch ms. */
  readonly at: EpochMs;
}

/** Figures of the volumes that pods have; unknown ones are left out. */
export type ReadVolumeStats = () => Promise<readonly VolumeStats[]>;
