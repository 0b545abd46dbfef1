// Original file: device-plugin.proto

import type { ContainerAllocateRequest as _v1beta1_ContainerAllocateRequest, ContainerAllocateRequest__Output as _v1beta1_ContainerAllocateRequest__Output } from '../v1beta1/ContainerAllocateRequest.ts';

export interface AllocateRequest {
  'container_requests'?: (_v1beta1_ContainerAllocateRequest)[];
}

export interface AllocateRequest__Output {
  'container_requests': (_v1beta1_ContainerAllocateRequest__Output)[];
}
