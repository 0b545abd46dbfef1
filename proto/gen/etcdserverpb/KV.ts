// Original file: etcd.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { CompactionRequest as _etcdserverpb_CompactionRequest, CompactionRequest__Output as _etcdserverpb_CompactionRequest__Output } from '../etcdserverpb/CompactionRequest.ts';
import type { CompactionResponse as _etcdserverpb_CompactionResponse, CompactionResponse__Output as _etcdserverpb_CompactionResponse__Output } from '../etcdserverpb/CompactionResponse.ts';
import type { RangeRequest as _etcdserverpb_RangeRequest, RangeRequest__Output as _etcdserverpb_RangeRequest__Output } from '../etcdserverpb/RangeRequest.ts';
import type { RangeResponse as _etcdserverpb_RangeResponse, RangeResponse__Output as _etcdserverpb_RangeResponse__Output } from '../etcdserverpb/RangeResponse.ts';
import type { TxnRequest as _etcdserverpb_TxnRequest, TxnRequest__Output as _etcdserverpb_TxnRequest__Output } from '../etcdserverpb/TxnRequest.ts';
import type { TxnResponse as _etcdserverpb_TxnResponse, TxnResponse__Output as _etcdserverpb_TxnResponse__Output } from '../etcdserverpb/TxnResponse.ts';

export interface KVClient extends grpc.Client {
  Compact(argument: _etcdserverpb_CompactionRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  Compact(argument: _etcdserverpb_CompactionRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  Compact(argument: _etcdserverpb_CompactionRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  Compact(argument: _etcdserverpb_CompactionRequest, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  compact(argument: _etcdserverpb_CompactionRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  compact(argument: _etcdserverpb_CompactionRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  compact(argument: _etcdserverpb_CompactionRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  compact(argument: _etcdserverpb_CompactionRequest, callback: grpc.requestCallback<_etcdserverpb_CompactionResponse__Output>): grpc.ClientUnaryCall;
  
  Range(argument: _etcdserverpb_RangeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  Range(argument: _etcdserverpb_RangeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  Range(argument: _etcdserverpb_RangeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  Range(argument: _etcdserverpb_RangeRequest, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  range(argument: _etcdserverpb_RangeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  range(argument: _etcdserverpb_RangeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  range(argument: _etcdserverpb_RangeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  range(argument: _etcdserverpb_RangeRequest, callback: grpc.requestCallback<_etcdserverpb_RangeResponse__Output>): grpc.ClientUnaryCall;
  
  Txn(argument: _etcdserverpb_TxnRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  Txn(argument: _etcdserverpb_TxnRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  Txn(argument: _etcdserverpb_TxnRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  Txn(argument: _etcdserverpb_TxnRequest, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  txn(argument: _etcdserverpb_TxnRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  txn(argument: _etcdserverpb_TxnRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  txn(argument: _etcdserverpb_TxnRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  txn(argument: _etcdserverpb_TxnRequest, callback: grpc.requestCallback<_etcdserverpb_TxnResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface KVHandlers extends grpc.UntypedServiceImplementation {
  Compact: grpc.handleUnaryCall<_etcdserverpb_CompactionRequest__Output, _etcdserverpb_CompactionResponse>;
  
  Range: grpc.handleUnaryCall<_etcdserverpb_RangeRequest__Output, _etcdserverpb_RangeResponse>;
  
  Txn: grpc.handleUnaryCall<_etcdserverpb_TxnRequest__Output, _etcdserverpb_TxnResponse>;
  
}

export interface KVDefinition extends grpc.ServiceDefinition {
  Compact: MethodDefinition<_etcdserverpb_CompactionRequest, _etcdserverpb_CompactionResponse, _etcdserverpb_CompactionRequest__Output, _etcdserverpb_CompactionResponse__Output>
  Range: MethodDefinition<_etcdserverpb_RangeRequest, _etcdserverpb_RangeResponse, _etcdserverpb_RangeRequest__Output, _etcdserverpb_RangeResponse__Output>
  Txn: MethodDefinition<_etcdserverpb_TxnRequest, _etcdserverpb_TxnResponse, _etcdserverpb_TxnRequest__Output, _etcdserverpb_TxnResponse__Output>
}
