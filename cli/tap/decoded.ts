// A recorded call with its messages decoded and the names of what it is about. Where a message cannot be decoded the call
// says so, and the message is shown as bytes.

import { isMessage, type Names, type Subject } from './names.ts';
import type { RecordedCall, RecordedMessage } from './recording.ts';
import type { MethodType, Schema } from './schema.ts';
import { decodeMessage, type JsonMessage, type MessageType, WireError } from './wire.ts';

/** gRPC's status codes by number. */
const STATUS_NAMES: readonly string[] = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
];

export function statusNumber(name: string): number | undefined {
  const index = STATUS_NAMES.indexOf(name);
  return index < 0 ? undefined : index;
}

export interface DecodedMessage {
  readonly at: number;
  readonly message: JsonMessage;
}

export interface DecodedCall {
  readonly call: RecordedCall;
  readonly type: MethodType | undefined;
  /** "RunPodSandbox"; a method that no .proto file describes keeps its whole path. */
  readonly name: string;
  readonly subject: Subject;
  readonly requests: readonly DecodedMessage[];
  readonly responses: readonly DecodedMessage[];
  readonly status: string;
}

/** "OK", a code's name, or how else the call ended. */
export function statusOf({ end }: RecordedCall): string {
  if (end === undefined) return 'open';
  if (end.reset !== undefined) return end.reset === 'client' ? 'cancelled by the client' : 'reset by the runtime';
  if (end.connection !== undefined) return 'connection closed';
  return end.status === undefined ? 'no status' : (STATUS_NAMES[end.status] ?? String(end.status));
}

export function decodeOrShow(bytes: Buffer, type: MessageType | undefined): JsonMessage {
  try {
    return decodeMessage(bytes, type);
  } catch (error) {
    if (error instanceof WireError) return { 'not decoded': error.message, base64: bytes.toString('base64') };
    throw error;
  }
}

const decodeAll = (messages: readonly RecordedMessage[], type: MessageType | undefined): DecodedMessage[] =>
  messages.map(({ at, bytes }) => ({ at, message: decodeOrShow(bytes, type) }));

/** Calls have to come in the order in which they ended: names are learned from each for the next. */
export function decodeCall(call: RecordedCall, schema: Schema, names: Names): DecodedCall {
  const type = schema.method(call.method);
  const requests = decodeAll(call.requests, type?.request);
  const responses = decodeAll(call.responses, type?.response);
  const name = type?.name ?? call.method;
  const request = requests[0]?.message;
  if (call.end?.status === 0 || type?.responseStream === true)
    for (const { message } of responses) names.learn(name, request, message);
  return { call, type, name, subject: names.subject(request), requests, responses, status: statusOf(call) };
}

/** The value with every text replaced; keys of messages stay. */
export function mapTexts<T extends JsonMessage>(message: T, map: (text: string) => string): JsonMessage {
  const visit = (value: JsonMessage[string]): JsonMessage[string] => {
    if (typeof value === 'string') return map(value);
    if (Array.isArray(value)) return value.map(visit);
    return isMessage(value) ? mapTexts(value, map) : value;
  };
  return Object.fromEntries(Object.entries(message).map(([key, value]) => [key, visit(value)]));
}
