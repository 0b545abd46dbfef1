// Original file: csi.proto


export interface GroupControllerGetCapabilitiesRequest {
}

export interface GroupControllerGetCapabilitiesRequest__Output {
}
