// Original file: pod-resources.proto

import type { ContainerResources as _v1_ContainerResources, ContainerResources__Output as _v1_ContainerResources__Output } from '../v1/ContainerResources.ts';
import type { ContainerMemory as _v1_ContainerMemory, ContainerMemory__Output as _v1_ContainerMemory__Output } from '../v1/ContainerMemory.ts';
import type { Long } from '@grpc/proto-loader';

export interface PodResources {
  'name'?: (string);
  'namespace'?: (string);
  'containers'?: (_v1_ContainerResources)[];
  'cpu_ids'?: (number | string | Long)[];
  'memory'?: (_v1_ContainerMemory)[];
}

export interface PodResources__Output {
  'name': (string);
  'namespace': (string);
  'containers': (_v1_ContainerResources__Output)[];
  'cpu_ids': (string)[];
  'memory': (_v1_ContainerMemory__Output)[];
}
