// Original file: etcd.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { StatusRequest as _etcdserverpb_StatusRequest, StatusRequest__Output as _etcdserverpb_StatusRequest__Output } from '../etcdserverpb/StatusRequest.ts';
import type { StatusResponse as _etcdserverpb_StatusResponse, StatusResponse__Output as _etcdserverpb_StatusResponse__Output } from '../etcdserverpb/StatusResponse.ts';

export interface MaintenanceClient extends grpc.Client {
  Status(argument: _etcdserverpb_StatusRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  Status(argument: _etcdserverpb_StatusRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  Status(argument: _etcdserverpb_StatusRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  Status(argument: _etcdserverpb_StatusRequest, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  status(argument: _etcdserverpb_StatusRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  status(argument: _etcdserverpb_StatusRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  status(argument: _etcdserverpb_StatusRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  status(argument: _etcdserverpb_StatusRequest, callback: grpc.requestCallback<_etcdserverpb_StatusResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface MaintenanceHandlers extends grpc.UntypedServiceImplementation {
  Status: grpc.handleUnaryCall<_etcdserverpb_StatusRequest__Output, _etcdserverpb_StatusResponse>;
  
}

export interface MaintenanceDefinition extends grpc.ServiceDefinition {
  Status: MethodDefinition<_etcdserverpb_StatusRequest, _etcdserverpb_StatusResponse, _etcdserverpb_StatusRequest__Output, _etcdserverpb_StatusResponse__Output>
}
