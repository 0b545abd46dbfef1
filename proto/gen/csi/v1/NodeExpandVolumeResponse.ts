// Original file: csi.proto

import type { Long } from '@grpc/proto-loader';

export interface NodeExpandVolumeResponse {
  'capacity_bytes'?: (number | string | Long);
}

export interface NodeExpandVolumeResponse__Output {
  'capacity_bytes': (string);
}
