// Original file: etcd.proto

import type { Long } from '@grpc/proto-loader';

export interface WatchCreateRequest {
  'key'?: (Buffer | Uint8Array | string);
  'range_end'?: (Buffer | Uint8Array | string);
  'start_revision'?: (number | string | Long);
  'progress_notify'?: (boolean);
  'prev_kv'?: (boolean);
  'watch_id'?: (number | string | Long);
  'fragment'?: (boolean);
}

export interface WatchCreateRequest__Output {
  'key': (Buffer);
  'range_end': (Buffer);
  'start_revision': (string);
  'progress_notify': (boolean);
  'prev_kv': (boolean);
  'watch_id': (string);
  'fragment': (boolean);
}
