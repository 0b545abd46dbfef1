// Original file: csi.proto


export interface GetPluginInfoRequest {
}

export interface GetPluginInfoRequest__Output {
}
