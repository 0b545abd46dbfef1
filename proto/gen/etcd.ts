import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { CompactionRequest as _etcdserverpb_CompactionRequest, CompactionRequest__Output as _etcdserverpb_CompactionRequest__Output } from './etcdserverpb/CompactionRequest.ts';
import type { CompactionResponse as _etcdserverpb_CompactionResponse, CompactionResponse__Output as _etcdserverpb_CompactionResponse__Output } from './etcdserverpb/CompactionResponse.ts';
import type { Compare as _etcdserverpb_Compare, Compare__Output as _etcdserverpb_Compare__Output } from './etcdserverpb/Compare.ts';
import type { DeleteRangeRequest as _etcdserverpb_DeleteRangeRequest, DeleteRangeRequest__Output as _etcdserverpb_DeleteRangeRequest__Output } from './etcdserverpb/DeleteRangeRequest.ts';
import type { DeleteRangeResponse as _etcdserverpb_DeleteRangeResponse, DeleteRangeResponse__Output as _etcdserverpb_DeleteRangeResponse__Output } from './etcdserverpb/DeleteRangeResponse.ts';
import type { Event as _etcdserverpb_Event, Event__Output as _etcdserverpb_Event__Output } from './etcdserverpb/Event.ts';
import type { KVClient as _etcdserverpb_KVClient, KVDefinition as _etcdserverpb_KVDefinition } from './etcdserverpb/KV.ts';
import type { KeyValue as _etcdserverpb_KeyValue, KeyValue__Output as _etcdserverpb_KeyValue__Output } from './etcdserverpb/KeyValue.ts';
import type { LeaseClient as _etcdserverpb_LeaseClient, LeaseDefinition as _etcdserverpb_LeaseDefinition } from './etcdserverpb/Lease.ts';
import type { LeaseGrantRequest as _etcdserverpb_LeaseGrantRequest, LeaseGrantRequest__Output as _etcdserverpb_LeaseGrantRequest__Output } from './etcdserverpb/LeaseGrantRequest.ts';
import type { LeaseGrantResponse as _etcdserverpb_LeaseGrantResponse, LeaseGrantResponse__Output as _etcdserverpb_LeaseGrantResponse__Output } from './etcdserverpb/LeaseGrantResponse.ts';
import type { MaintenanceClient as _etcdserverpb_MaintenanceClient, MaintenanceDefinition as _etcdserverpb_MaintenanceDefinition } from './etcdserverpb/Maintenance.ts';
import type { PutRequest as _etcdserverpb_PutRequest, PutRequest__Output as _etcdserverpb_PutRequest__Output } from './etcdserverpb/PutRequest.ts';
import type { PutResponse as _etcdserverpb_PutResponse, PutResponse__Output as _etcdserverpb_PutResponse__Output } from './etcdserverpb/PutResponse.ts';
import type { RangeRequest as _etcdserverpb_RangeRequest, RangeRequest__Output as _etcdserverpb_RangeRequest__Output } from './etcdserverpb/RangeRequest.ts';
import type { RangeResponse as _etcdserverpb_RangeResponse, RangeResponse__Output as _etcdserverpb_RangeResponse__Output } from './etcdserverpb/RangeResponse.ts';
import type { RequestOp as _etcdserverpb_RequestOp, RequestOp__Output as _etcdserverpb_RequestOp__Output } from './etcdserverpb/RequestOp.ts';
import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from './etcdserverpb/ResponseHeader.ts';
import type { ResponseOp as _etcdserverpb_ResponseOp, ResponseOp__Output as _etcdserverpb_ResponseOp__Output } from './etcdserverpb/ResponseOp.ts';
import type { StatusRequest as _etcdserverpb_StatusRequest, StatusRequest__Output as _etcdserverpb_StatusRequest__Output } from './etcdserverpb/StatusRequest.ts';
import type { StatusResponse as _etcdserverpb_StatusResponse, StatusResponse__Output as _etcdserverpb_StatusResponse__Output } from './etcdserverpb/StatusResponse.ts';
import type { TxnRequest as _etcdserverpb_TxnRequest, TxnRequest__Output as _etcdserverpb_TxnRequest__Output } from './etcdserverpb/TxnRequest.ts';
import type { TxnResponse as _etcdserverpb_TxnResponse, TxnResponse__Output as _etcdserverpb_TxnResponse__Output } from './etcdserverpb/TxnResponse.ts';
import type { WatchClient as _etcdserverpb_WatchClient, WatchDefinition as _etcdserverpb_WatchDefinition } from './etcdserverpb/Watch.ts';
import type { WatchCancelRequest as _etcdserverpb_WatchCancelRequest, WatchCancelRequest__Output as _etcdserverpb_WatchCancelRequest__Output } from './etcdserverpb/WatchCancelRequest.ts';
import type { WatchCreateRequest as _etcdserverpb_WatchCreateRequest, WatchCreateRequest__Output as _etcdserverpb_WatchCreateRequest__Output } from './etcdserverpb/WatchCreateRequest.ts';
import type { WatchProgressRequest as _etcdserverpb_WatchProgressRequest, WatchProgressRequest__Output as _etcdserverpb_WatchProgressRequest__Output } from './etcdserverpb/WatchProgressRequest.ts';
import type { WatchRequest as _etcdserverpb_WatchRequest, WatchRequest__Output as _etcdserverpb_WatchRequest__Output } from './etcdserverpb/WatchRequest.ts';
import type { WatchResponse as _etcdserverpb_WatchResponse, WatchResponse__Output as _etcdserverpb_WatchResponse__Output } from './etcdserverpb/WatchResponse.ts';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  etcdserverpb: {
    CompactionRequest: MessageTypeDefinition<_etcdserverpb_CompactionRequest, _etcdserverpb_CompactionRequest__Output>
    CompactionResponse: MessageTypeDefinition<_etcdserverpb_CompactionResponse, _etcdserverpb_CompactionResponse__Output>
    Compare: MessageTypeDefinition<_etcdserverpb_Compare, _etcdserverpb_Compare__Output>
    DeleteRangeRequest: MessageTypeDefinition<_etcdserverpb_DeleteRangeRequest, _etcdserverpb_DeleteRangeRequest__Output>
    DeleteRangeResponse: MessageTypeDefinition<_etcdserverpb_DeleteRangeResponse, _etcdserverpb_DeleteRangeResponse__Output>
    Event: MessageTypeDefinition<_etcdserverpb_Event, _etcdserverpb_Event__Output>
    KV: SubtypeConstructor<typeof grpc.Client, _etcdserverpb_KVClient> & { service: _etcdserverpb_KVDefinition }
    KeyValue: MessageTypeDefinition<_etcdserverpb_KeyValue, _etcdserverpb_KeyValue__Output>
    Lease: SubtypeConstructor<typeof grpc.Client, _etcdserverpb_LeaseClient> & { service: _etcdserverpb_LeaseDefinition }
    LeaseGrantRequest: MessageTypeDefinition<_etcdserverpb_LeaseGrantRequest, _etcdserverpb_LeaseGrantRequest__Output>
    LeaseGrantResponse: MessageTypeDefinition<_etcdserverpb_LeaseGrantResponse, _etcdserverpb_LeaseGrantResponse__Output>
    Maintenance: SubtypeConstructor<typeof grpc.Client, _etcdserverpb_MaintenanceClient> & { service: _etcdserverpb_MaintenanceDefinition }
    PutRequest: MessageTypeDefinition<_etcdserverpb_PutRequest, _etcdserverpb_PutRequest__Output>
    PutResponse: MessageTypeDefinition<_etcdserverpb_PutResponse, _etcdserverpb_PutResponse__Output>
    RangeRequest: MessageTypeDefinition<_etcdserverpb_RangeRequest, _etcdserverpb_RangeRequest__Output>
    RangeResponse: MessageTypeDefinition<_etcdserverpb_RangeResponse, _etcdserverpb_RangeResponse__Output>
    RequestOp: MessageTypeDefinition<_etcdserverpb_RequestOp, _etcdserverpb_RequestOp__Output>
    ResponseHeader: MessageTypeDefinition<_etcdserverpb_ResponseHeader, _etcdserverpb_ResponseHeader__Output>
    ResponseOp: MessageTypeDefinition<_etcdserverpb_ResponseOp, _etcdserverpb_ResponseOp__Output>
    StatusRequest: MessageTypeDefinition<_etcdserverpb_StatusRequest, _etcdserverpb_StatusRequest__Output>
    StatusResponse: MessageTypeDefinition<_etcdserverpb_StatusResponse, _etcdserverpb_StatusResponse__Output>
    TxnRequest: MessageTypeDefinition<_etcdserverpb_TxnRequest, _etcdserverpb_TxnRequest__Output>
    TxnResponse: MessageTypeDefinition<_etcdserverpb_TxnResponse, _etcdserverpb_TxnResponse__Output>
    Watch: SubtypeConstructor<typeof grpc.Client, _etcdserverpb_WatchClient> & { service: _etcdserverpb_WatchDefinition }
    WatchCancelRequest: MessageTypeDefinition<_etcdserverpb_WatchCancelRequest, _etcdserverpb_WatchCancelRequest__Output>
    WatchCreateRequest: MessageTypeDefinition<_etcdserverpb_WatchCreateRequest, _etcdserverpb_WatchCreateRequest__Output>
    WatchProgressRequest: MessageTypeDefinition<_etcdserverpb_WatchProgressRequest, _etcdserverpb_WatchProgressRequest__Output>
    WatchRequest: MessageTypeDefinition<_etcdserverpb_WatchRequest, _etcdserverpb_WatchRequest__Output>
    WatchResponse: MessageTypeDefinition<_etcdserverpb_WatchResponse, _etcdserverpb_WatchResponse__Output>
  }
}

