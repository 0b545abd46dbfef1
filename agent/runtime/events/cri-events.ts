// CRI's event stream (GetContainerEvents, KEP-3386), decoded. Pure.

import type { ContainerEventResponse__Output } from '../../../proto/gen/runtime/v1/ContainerEventResponse.ts';
import { nanosToMs } from '../convert.ts';
import type { RuntimeEvent } from './runtime-event.ts';

const KINDS = {
  CONTAINER_CREATED_EVENT: undefined,
  CONTAINER_STARTED_EVENT: 'started',
  CONTAINER_STOPPED_EVENT: 'exited',
  CONTAINER_DELETED_EVENT: 'removed',
} as const;

/** Undefined for a creation, which changes nothing that a worker waits for. */
export function decodeContainerEvent(event: ContainerEventResponse__Output): RuntimeEvent | undefined {
  const kind = KINDS[event.container_event_type];
  if (kind === undefined) return undefined;
  return { kind, id: event.container_id, at: nanosToMs(event.created_at) };
}
