// containerd's own event bus, decoded: the only event-driven source on containerd 1.6. Pure; the protobuf readers come
// from proto/. An exit is announced here some
// 50 ms before containerd's CRI part has taken note of it: the task is torn down in between.

import { type EpochMs, epochMs, ZERO_TIME } from '../../../lib/clock.ts';
import type { Envelope__Output } from '../../../proto/gen/containerd/types/Envelope.ts';
import type { Timestamp__Output } from '../../../proto/gen/google/protobuf/Timestamp.ts';
import { loadProto } from '../../../proto/load.ts';
import type { RuntimeEvent } from './runtime-event.ts';

/** containerd's namespace for everything that CRI made. */
const NAMESPACE = 'k8s.io';

/** Filters of Subscribe: any of them lets an event through. */
function filters(...topics: readonly string[]): readonly string[] {
  return topics.map((topic) => `namespace=="${NAMESPACE}",topic=="${topic}"`);
}

export const CONTAINERD_FILTERS = filters('/tasks/start', '/tasks/exit', '/tasks/oom', '/containers/delete');
/** What the bus has sooner than CRI's stream, or alone. */
export const CONTAINERD_END_FILTERS = filters('/tasks/exit', '/tasks/oom');

function toMs(timestamp: Timestamp__Output | null): EpochMs {
  if (timestamp === null) return ZERO_TIME;
  return epochMs(Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1e6));
}

/** Undefined for other events: other topics, and processes run by exec. */
export function decodeEnvelope(envelope: Envelope__Output): RuntimeEvent | undefined {
  const { event } = envelope;
  if (event === null || envelope.namespace !== NAMESPACE) return undefined;
  const types = loadProto('containerd-tasks').containerd.events;
  const at = toMs(envelope.timestamp);
  // A type URL may carry a prefix: "type.googleapis.com/containerd.events.TaskExit".
  switch (event.type_url.slice(event.type_url.lastIndexOf('/') + 1)) {
    case 'containerd.events.TaskStart':
      return { kind: 'started', id: types.TaskStart.deserialize(event.value).container_id, at };
    case 'containerd.events.TaskExit': {
      const exit = types.TaskExit.deserialize(event.value);
      if (exit.id !== exit.container_id) return undefined;
      const exitedAt = toMs(exit.exited_at);
      const { container_id, exit_status } = exit;
      return { kind: 'exited', id: container_id, at: exitedAt === ZERO_TIME ? at : exitedAt, exitCode: exit_status };
    }
    case 'containerd.events.TaskOOM':
      return { kind: 'oom', id: types.TaskOOM.deserialize(event.value).container_id, at };
    case 'containerd.events.ContainerDelete':
      return { kind: 'removed', id: types.ContainerDelete.deserialize(event.value).id, at };
    default:
      return undefined;
  }
}
