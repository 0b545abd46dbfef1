// Original file: csi.proto


export interface ControllerUnpublishVolumeResponse {
}

export interface ControllerUnpublishVolumeResponse__Output {
}
