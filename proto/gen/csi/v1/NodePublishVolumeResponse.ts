// Original file: csi.proto


export interface NodePublishVolumeResponse {
}

export interface NodePublishVolumeResponse__Output {
}
