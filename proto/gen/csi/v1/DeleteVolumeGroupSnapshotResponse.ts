// Original file: csi.proto


export interface DeleteVolumeGroupSnapshotResponse {
}

export interface DeleteVolumeGroupSnapshotResponse__Output {
}
