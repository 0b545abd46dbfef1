// Original file: etcd.proto

import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from '../etcdserverpb/ResponseHeader.ts';
import type { Long } from '@grpc/proto-loader';

export interface StatusResponse {
  'header'?: (_etcdserverpb_ResponseHeader | null);
  'version'?: (string);
  'dbSize'?: (number | string | Long);
}

export interface StatusResponse__Output {
  'header': (_etcdserverpb_ResponseHeader__Output | null);
  'version': (string);
  'dbSize': (string);
}
