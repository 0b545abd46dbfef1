// Original file: etcd.proto

import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from '../etcdserverpb/ResponseHeader.ts';

export interface PutResponse {
  'header'?: (_etcdserverpb_ResponseHeader | null);
}

export interface PutResponse__Output {
  'header': (_etcdserverpb_ResponseHeader__Output | null);
}
