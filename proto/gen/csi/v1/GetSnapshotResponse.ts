// Original file: csi.proto

import type { Snapshot as _csi_v1_Snapshot, Snapshot__Output as _csi_v1_Snapshot__Output } from '../../csi/v1/Snapshot.ts';

export interface GetSnapshotResponse {
  'snapshot'?: (_csi_v1_Snapshot | null);
}

export interface GetSnapshotResponse__Output {
  'snapshot': (_csi_v1_Snapshot__Output | null);
}
