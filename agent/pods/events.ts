// What the workers' events are about. The references themselves are shared with the probes.

export { containerReference, type EventObject, podReference } from '../model/event-reference.ts';
