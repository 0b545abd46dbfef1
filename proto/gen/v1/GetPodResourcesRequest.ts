// Original file: pod-resources.proto


export interface GetPodResourcesRequest {
  'pod_name'?: (string);
  'pod_namespace'?: (string);
}

export interface GetPodResourcesRequest__Output {
  'pod_name': (string);
  'pod_namespace': (string);
}
