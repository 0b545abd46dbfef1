// Original file: etcd.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { LeaseGrantRequest as _etcdserverpb_LeaseGrantRequest, LeaseGrantRequest__Output as _etcdserverpb_LeaseGrantRequest__Output } from '../etcdserverpb/LeaseGrantRequest.ts';
import type { LeaseGrantResponse as _etcdserverpb_LeaseGrantResponse, LeaseGrantResponse__Output as _etcdserverpb_LeaseGrantResponse__Output } from '../etcdserverpb/LeaseGrantResponse.ts';

export interface LeaseClient extends grpc.Client {
  LeaseGrant(argument: _etcdserverpb_LeaseGrantRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  LeaseGrant(argument: _etcdserverpb_LeaseGrantRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  LeaseGrant(argument: _etcdserverpb_LeaseGrantRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  LeaseGrant(argument: _etcdserverpb_LeaseGrantRequest, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  leaseGrant(argument: _etcdserverpb_LeaseGrantRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  leaseGrant(argument: _etcdserverpb_LeaseGrantRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  leaseGrant(argument: _etcdserverpb_LeaseGrantRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  leaseGrant(argument: _etcdserverpb_LeaseGrantRequest, callback: grpc.requestCallback<_etcdserverpb_LeaseGrantResponse__Output>): grpc.ClientUnaryCall;
  
}

export interface LeaseHandlers extends grpc.UntypedServiceImplementation {
  LeaseGrant: grpc.handleUnaryCall<_etcdserverpb_LeaseGrantRequest__Output, _etcdserverpb_LeaseGrantResponse>;
  
}

export interface LeaseDefinition extends grpc.ServiceDefinition {
  LeaseGrant: MethodDefinition<_etcdserverpb_LeaseGrantRequest, _etcdserverpb_LeaseGrantResponse, _etcdserverpb_LeaseGrantRequest__Output, _etcdserverpb_LeaseGrantResponse__Output>
}
