// Original file: containerd-tasks.proto

import type { Timestamp as _google_protobuf_Timestamp, Timestamp__Output as _google_protobuf_Timestamp__Output } from '../../google/protobuf/Timestamp.ts';

export interface TaskDelete {
  'container_id'?: (string);
  'pid'?: (number);
  'exit_status'?: (number);
  'exited_at'?: (_google_protobuf_Timestamp | null);
  'id'?: (string);
}

export interface TaskDelete__Output {
  'container_id': (string);
  'pid': (number);
  'exit_status': (number);
  'exited_at': (_google_protobuf_Timestamp__Output | null);
  'id': (string);
}
