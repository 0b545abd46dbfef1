// Original file: etcd.proto

import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from '../etcdserverpb/ResponseHeader.ts';
import type { KeyValue as _etcdserverpb_KeyValue, KeyValue__Output as _etcdserverpb_KeyValue__Output } from '../etcdserverpb/KeyValue.ts';
import type { Long } from '@grpc/proto-loader';

export interface RangeResponse {
  'header'?: (_etcdserverpb_ResponseHeader | null);
  'kvs'?: (_etcdserverpb_KeyValue)[];
  'more'?: (boolean);
  'count'?: (number | string | Long);
}

export interface RangeResponse__Output {
  'header': (_etcdserverpb_ResponseHeader__Output | null);
  'kvs': (_etcdserverpb_KeyValue__Output)[];
  'more': (boolean);
  'count': (string);
}
