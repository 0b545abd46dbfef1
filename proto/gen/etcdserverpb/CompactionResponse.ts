// Original file: etcd.proto

import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from '../etcdserverpb/ResponseHeader.ts';

export interface CompactionResponse {
  'header'?: (_etcdserverpb_ResponseHeader | null);
}

export interface CompactionResponse__Output {
  'header': (_etcdserverpb_ResponseHeader__Output | null);
}
