// Original file: csi.proto


export interface CreateSnapshotRequest {
  'source_volume_id'?: (string);
  'name'?: (string);
  'secrets'?: ({[key: string]: string});
  'parameters'?: ({[key: string]: string});
}

export interface CreateSnapshotRequest__Output {
  'source_volume_id': (string);
  'name': (string);
  'secrets': ({[key: string]: string});
  'parameters': ({[key: string]: string});
}
