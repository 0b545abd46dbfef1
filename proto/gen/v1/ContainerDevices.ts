// Original file: pod-resources.proto

import type { TopologyInfo as _v1_TopologyInfo, TopologyInfo__Output as _v1_TopologyInfo__Output } from '../v1/TopologyInfo.ts';

export interface ContainerDevices {
  'resource_name'?: (string);
  'device_ids'?: (string)[];
  'topology'?: (_v1_TopologyInfo | null);
}

export interface ContainerDevices__Output {
  'resource_name': (string);
  'device_ids': (string)[];
  'topology': (_v1_TopologyInfo__Output | null);
}
