// Original file: etcd.proto

import type { RangeRequest as _etcdserverpb_RangeRequest, RangeRequest__Output as _etcdserverpb_RangeRequest__Output } from '../etcdserverpb/RangeRequest.ts';
import type { PutRequest as _etcdserverpb_PutRequest, PutRequest__Output as _etcdserverpb_PutRequest__Output } from '../etcdserverpb/PutRequest.ts';
import type { DeleteRangeRequest as _etcdserverpb_DeleteRangeRequest, DeleteRangeRequest__Output as _etcdserverpb_DeleteRangeRequest__Output } from '../etcdserverpb/DeleteRangeRequest.ts';

export interface RequestOp {
  'request_range'?: (_etcdserverpb_RangeRequest | null);
  'request_put'?: (_etcdserverpb_PutRequest | null);
  'request_delete_range'?: (_etcdserverpb_DeleteRangeRequest | null);
  'request'?: "request_range"|"request_put"|"request_delete_range";
}

export interface RequestOp__Output {
  'request_range'?: (_etcdserverpb_RangeRequest__Output | null);
  'request_put'?: (_etcdserverpb_PutRequest__Output | null);
  'request_delete_range'?: (_etcdserverpb_DeleteRangeRequest__Output | null);
  'request'?: "request_range"|"request_put"|"request_delete_range";
}
