// Original file: pod-resources.proto


export interface ListPodResourcesRequest {
}

export interface ListPodResourcesRequest__Output {
}
