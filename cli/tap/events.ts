// What the messages of a runtime's streams of events are about: CRI's GetContainerEvents, and containerd's own bus, whose events
// are packed twice. For rules that lose some of them. Pure.

import { decodeEnvelope } from '../../agent/runtime/events/containerd-events.ts';
import { loadProto } from '../../proto/load.ts';
import { decodeOrShow } from './decoded.ts';
import type { EventToJudge } from './fault-rules.ts';
import { type Names, textIn } from './names.ts';
import type { MethodType } from './schema.ts';

/** Undefined for a message of another stream, and for an event of the bus that is about no container as a whole. */
export function eventIn(message: Buffer, type: MethodType, names: Names): EventToJudge | undefined {
  if (type.name === 'GetContainerEvents') {
    const event = decodeOrShow(message, type.response);
    const kind = textIn(event, 'container_event_type');
    return kind === undefined ? undefined : { event: kind, subject: names.subject(event) };
  }
  if (type.name !== 'Subscribe') return undefined;
  const { Events } = loadProto('containerd-events').containerd.services.events.v1;
  const envelope = Events.service.Subscribe.responseDeserialize(message);
  const event = decodeEnvelope(envelope);
  return event === undefined
    ? undefined
    : {
        event: envelope.topic,
        subject: names.subject({ container_id: event.id, id: event.id, pod_sandbox_id: event.id }),
      };
}
