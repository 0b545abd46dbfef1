// Original file: csi.proto


export interface NodeGetInfoRequest {
}

export interface NodeGetInfoRequest__Output {
}
