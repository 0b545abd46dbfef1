// Original file: cri.proto


export interface RuntimeConfigRequest {
}

export interface RuntimeConfigRequest__Output {
}
