// Original file: etcd.proto

import type { ResponseHeader as _etcdserverpb_ResponseHeader, ResponseHeader__Output as _etcdserverpb_ResponseHeader__Output } from '../etcdserverpb/ResponseHeader.ts';
import type { Event as _etcdserverpb_Event, Event__Output as _etcdserverpb_Event__Output } from '../etcdserverpb/Event.ts';
import type { Long } from '@grpc/proto-loader';

export interface WatchResponse {
  'header'?: (_etcdserverpb_ResponseHeader | null);
  'watch_id'?: (number | string | Long);
  'created'?: (boolean);
  'canceled'?: (boolean);
  'compact_revision'?: (number | string | Long);
  'cancel_reason'?: (string);
  'fragment'?: (boolean);
  'events'?: (_etcdserverpb_Event)[];
}

export interface WatchResponse__Output {
  'header': (_etcdserverpb_ResponseHeader__Output | null);
  'watch_id': (string);
  'created': (boolean);
  'canceled': (boolean);
  'compact_revision': (string);
  'cancel_reason': (string);
  'fragment': (boolean);
  'events': (_etcdserverpb_Event__Output)[];
}
