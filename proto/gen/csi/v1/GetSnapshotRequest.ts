// Original file: csi.proto


export interface GetSnapshotRequest {
  'snapshot_id'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface GetSnapshotRequest__Output {
  'snapshot_id': (string);
  'secrets': ({[key: string]: string});
}
