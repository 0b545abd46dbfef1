// Original file: pod-resources.proto


export interface AllocatableResourcesRequest {
}

export interface AllocatableResourcesRequest__Output {
}
