// Original file: cri.proto


export interface UpdatePodSandboxResourcesResponse {
}

export interface UpdatePodSandboxResourcesResponse__Output {
}
