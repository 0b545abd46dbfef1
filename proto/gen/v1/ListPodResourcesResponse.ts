// Original file: pod-resources.proto

import type { PodResources as _v1_PodResources, PodResources__Output as _v1_PodResources__Output } from '../v1/PodResources.ts';

export interface ListPodResourcesResponse {
  'pod_resources'?: (_v1_PodResources)[];
}

export interface ListPodResourcesResponse__Output {
  'pod_resources': (_v1_PodResources__Output)[];
}
