// The driver's records, one JSON file each. Types only.

import type { EpochMs } from '../../lib/clock.ts';
import type { Capability } from './capability.ts';
import type { Allocation } from './names.ts';

/** Where a volume's first content came from. */
export type Source = { readonly type: 'snapshot' | 'volume'; readonly id: string };

export interface Attachment {
  readonly readonly: boolean;
  readonly capability: Capability;
}

/** volumes/<id>/volume.json: written when the image beside it is complete. */
export interface VolumeRecord {
  readonly id: string;
  readonly name: string;
  readonly capacityBytes: number;
  /** The volume_capabilities of CreateVolume: the volume can be used in each of these ways. */
  readonly capabilities: readonly Capability[];
  readonly allocation: Allocation;
  readonly source?: Source;
  /** Inline volumes are made by NodePublishVolume and go with NodeUnpublishVolume. */
  readonly ephemeral?: true;
  /** The filesystem in the image and how large it was made or grown to, bytes. Absent until it is formatted. */
  readonly filesystem?: { readonly type: string; readonly bytes: number };
  /** mkfs was started and its end is not recorded: the image contains no user data yet. */
  readonly formatting?: string;
  readonly attachments?: Readonly<Record<string, Attachment>>;
}

/** snapshots/<id>/snapshot.json. */
export interface SnapshotRecord {
  readonly id: string;
  readonly name: string;
  readonly sourceVolumeId: string;
  readonly sizeBytes: number;
  /** Epoch ms. */
  readonly createdAt: EpochMs;
  readonly capabilities: readonly Capability[];
  readonly filesystem?: { readonly type: string; readonly bytes: number };
}

/** One place where a volume is published. Written before the work begins, so that a crash leaves nothing unknown. */
export interface Publication {
  readonly target: string;
  readonly capability: Capability;
  readonly readonly: boolean;
  /** False while the work is under way, or was when the driver died. */
  readonly done: boolean;
}

export interface Staging {
  readonly path: string;
  readonly capability: Capability;
  readonly readonly: boolean;
  readonly done: boolean;
}

/** node/<volume id>.json: what the node side has made of one volume. */
export interface NodeRecord {
  readonly volumeId: string;
  readonly staging?: Staging;
  readonly publications: readonly Publication[];
  /** The filesystem is frozen for a copy. */
  readonly frozen?: true;
}

export const NOTHING_ON_NODE = (volumeId: string): NodeRecord => ({ volumeId, publications: [] });
