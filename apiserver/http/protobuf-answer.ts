// Answers and watch events in protobuf, made of the JSON that they are for everyone else. Loaded with the first client that takes
// nothing but protobuf.

import { nextTurn } from '../../lib/turns.ts';
import { reviewKind } from '../auth/reviews.ts';
import { noProtobuf } from '../errors.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { apiVersionOf, type Registry } from '../registry/registry.ts';
import type { Form } from './negotiate.ts';
import { encodeItems, encodeListFrame, encodeProtobuf, encodeWatchEvent, hasMessage } from './protobuf-encode.ts';
import { PROTOBUF_TYPE } from './protobuf-messages.ts';
import type { ResourceRequest } from './request.ts';
import type { LongAnswer } from './resources.ts';
import type { WatchEncoding } from './watch.ts';

/** What of a list is encoded in one turn: some milliseconds' work, more for the first of them. */
const TURN_BYTES = 16 * 1024;

function objectOf(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new RangeError('the answer is not an object');
  return value;
}

/** Throws 406 for a request about a kind that has no message. */
function check(registry: Registry, request: ResourceRequest, as: Form['as']): void {
  const { group, version, resource, subresource } = request;
  // The metadata of every kind has one, and a scale is the same kind everywhere.
  if (as !== 'object' || subresource === 'scale') return;
  const row = registry.row(group, version, resource);
  if (row?.custom !== undefined) throw noProtobuf('*unstructured.Unstructured');
  const kind = row?.kind ?? reviewKind(group, version, resource);
  // Without a kind there is nothing: 404.
  if (kind !== undefined && !hasMessage(apiVersionOf({ group, version }), kind))
    throw noProtobuf(`*${version}.${kind}`);
}

/** The items of a list as so many bytes to a turn of the event loop. */
async function itemsInTurns(list: JsonObject, items: readonly unknown[]): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  let turn: Buffer[] = [];
  let length = 0;
  for (const item of items) {
    const bytes = encodeItems(list, [item]);
    turn.push(bytes);
    length += bytes.length;
    if (length < TURN_BYTES) continue;
    parts.push(Buffer.concat(turn));
    turn = [];
    length = 0;
    await nextTurn();
  }
  parts.push(Buffer.concat(turn));
  return parts;
}

function framed(list: JsonObject, parts: readonly Buffer[]): Buffer[] {
  const { head, tail } = encodeListFrame(
    list,
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  return [head, ...parts, tail];
}

/** An answer of one part: an object, a Status or a list. */
export async function protobufOf(text: string): Promise<Buffer> {
  const { items, ...rest } = objectOf(text);
  if (!Array.isArray(items)) return encodeProtobuf(rest);
  return Buffer.concat(framed(rest, await itemsInTurns(rest, items)));
}

/** A long list. */
export async function longProtobufOf({ head, items, tail }: LongAnswer): Promise<Buffer[]> {
  const list = objectOf(`${head}${tail}`);
  const parts: Buffer[] = [];
  for (const json of items) {
    const text = json.toString();
    const some: unknown = JSON.parse(`[${text.startsWith(',') ? text.slice(1) : text}]`);
    if (!Array.isArray(some)) throw new RangeError('the items of the answer are not a list');
    parts.push(...(await itemsInTurns(list, some)));
    await nextTurn();
  }
  return framed(list, parts);
}

const FRAMES: WatchEncoding = {
  contentType: `${PROTOBUF_TYPE};stream=watch`,
  event: (type, object) => encodeWatchEvent(type, encodeProtobuf(objectOf(object))),
};

/**
 * How a watch of the request is encoded. Throws 406 for one about a kind that has no message, and is called for every request: before it
 * is carried out, not after that.
 */
export function framesFor(registry: Registry, request: ResourceRequest, { as }: Form): WatchEncoding {
  check(registry, request, as);
  return FRAMES;
}
