// Original file: device-plugin.proto

import type { ContainerPreferredAllocationRequest as _v1beta1_ContainerPreferredAllocationRequest, ContainerPreferredAllocationRequest__Output as _v1beta1_ContainerPreferredAllocationRequest__Output } from '../v1beta1/ContainerPreferredAllocationRequest.ts';

export interface PreferredAllocationRequest {
  'container_requests'?: (_v1beta1_ContainerPreferredAllocationRequest)[];
}

export interface PreferredAllocationRequest__Output {
  'container_requests': (_v1beta1_ContainerPreferredAllocationRequest__Output)[];
}
