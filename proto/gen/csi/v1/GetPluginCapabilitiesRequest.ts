// Original file: csi.proto


export interface GetPluginCapabilitiesRequest {
}

export interface GetPluginCapabilitiesRequest__Output {
}
