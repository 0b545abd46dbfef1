// Original file: csi.proto

import type { Long } from '@grpc/proto-loader';

export interface GetMetadataAllocatedRequest {
  'snapshot_id'?: (string);
  'starting_offset'?: (number | string | Long);
  'max_results'?: (number);
  'secrets'?: ({[key: string]: string});
}

export interface GetMetadataAllocatedRequest__Output {
  'snapshot_id': (string);
  'starting_offset': (string);
  'max_results': (number);
  'secrets': ({[key: string]: string});
}
