// Original file: etcd.proto

import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from '../etcdserverpb/ResponseHeader.ts';
import type { ResponseOp as _etcdserverpb_ResponseOp, ResponseOp__Output as _etcdserverpb_ResponseOp__Output } from '../etcdserverpb/ResponseOp.ts';

export interface TxnResponse {
  'header'?: (_etcdserverpb_ResponseHeader | null);
  'succeeded'?: (boolean);
  'responses'?: (_etcdserverpb_ResponseOp)[];
}

export interface TxnResponse__Output {
  'header': (_etcdserverpb_ResponseHeader__Output | null);
  'succeeded': (boolean);
  'responses': (_etcdserverpb_ResponseOp__Output)[];
}
