// Original file: device-plugin.proto

import type { Long } from '@grpc/proto-loader';

export interface NUMANode {
  'ID'?: (number | string | Long);
}

export interface NUMANode__Output {
  'ID': (string);
}
