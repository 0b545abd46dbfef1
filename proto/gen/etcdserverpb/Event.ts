// Original file: etcd.proto

import type { KeyValue as _etcdserverpb_KeyValue, KeyValue__Output as _etcdserverpb_KeyValue__Output } from '../etcdserverpb/KeyValue.ts';

// Original file: etcd.proto

export const _etcdserverpb_Event_EventType = {
  PUT: 'PUT',
  DELETE: 'DELETE',
} as const;

export type _etcdserverpb_Event_EventType =
  | 'PUT'
  | 0
  | 'DELETE'
  | 1

export type _etcdserverpb_Event_EventType__Output = typeof _etcdserverpb_Event_EventType[keyof typeof _etcdserverpb_Event_EventType]

export interface Event {
  'type'?: (_etcdserverpb_Event_EventType);
  'kv'?: (_etcdserverpb_KeyValue | null);
  'prev_kv'?: (_etcdserverpb_KeyValue | null);
}

export interface Event__Output {
  'type': (_etcdserverpb_Event_EventType__Output);
  'kv': (_etcdserverpb_KeyValue__Output | null);
  'prev_kv': (_etcdserverpb_KeyValue__Output | null);
}
