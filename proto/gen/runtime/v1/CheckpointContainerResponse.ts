// Original file: cri.proto


export interface CheckpointContainerResponse {
}

export interface CheckpointContainerResponse__Output {
}
