// Clients that take nothing but protobuf, over real connections: objects, short and long lists, failures, watches, and what they
// cannot have.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { decodeProtobuf } from '../../../../apiserver/http/protobuf.ts';
import { encodeProtobuf } from '../../../../apiserver/http/protobuf-encode.ts';
import { PROTOBUF_TYPE } from '../../../../apiserver/http/protobuf-messages.ts';
import { isObject, type JsonObject } from '../../../../apiserver/patch/json-value.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const MAGIC = 'k8s\0';
let stand: TestApiServer;

beforeAll(async () => {
  stand = await TestApiServer.start();
  await stand.admit('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  });
});
afterAll(() => stand.stop());

interface Sent {
  readonly code: number;
  readonly type: string | undefined;
  readonly bytes: Buffer;
}

async function open(path: string, more: { method?: string; body?: Buffer; accept?: string } = {}) {
  const { method = 'GET', body, accept = PROTOBUF_TYPE } = more;
  const { cert, key } = stand.admin;
  const tls = { ca: stand.server.pki.ca.cert, ...(cert && key ? { cert, key } : {}) };
  const sent = request(`${stand.server.url}${path}`, {
    ...{ method, ...tls, agent: false },
    headers: { accept, ...(body === undefined ? {} : { 'content-type': PROTOBUF_TYPE }) },
  });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

async function send(path: string, more: { method?: string; body?: Buffer; accept?: string } = {}): Promise<Sent> {
  const response = await open(path, more);
  const bytes = Buffer.concat(await response.toArray());
  return { code: response.statusCode ?? 0, type: response.headers['content-type'], bytes };
}

/** Of small messages whose lengths take one byte each, or of any: the fields in order, by their number. */
function fieldsOf(bytes: Buffer): { readonly number: number; readonly value: Buffer }[] {
  const fields: { number: number; value: Buffer }[] = [];
  let place = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes.readUInt8(place++);
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (place < bytes.length) {
    const tag = varint();
    const length = tag % 8 === 2 ? varint() : 0;
    if (tag % 8 === 0) varint();
    fields.push({ number: Math.floor(tag / 8), value: bytes.subarray(place, place + length) });
    place += length;
  }
  return fields;
}

const fieldOf = (bytes: Buffer, wanted: number): Buffer =>
  fieldsOf(bytes).find(({ number }) => number === wanted)?.value ?? Buffer.alloc(0);

/** apiVersion, kind, resourceVersion and the names of the items of a list. */
function listOf(bytes: Buffer): { readonly type: string[]; readonly revision: string; readonly names: string[] } {
  expect(bytes.subarray(0, 4).toString()).toBe(MAGIC);
  const envelope = bytes.subarray(4);
  const raw = fieldOf(envelope, 2);
  const items = fieldsOf(raw).filter(({ number }) => number === 2);
  return {
    type: fieldsOf(fieldOf(envelope, 1)).map(({ value }) => value.toString()),
    revision: fieldOf(fieldOf(raw, 1), 2).toString(),
    names: items.map(({ value }) => fieldOf(fieldOf(value, 1), 1).toString()),
  };
}

const mapNamed = (name: string, data: JsonObject = {}): Buffer =>
  encodeProtobuf({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data });

it('an object is created, read and changed, and its managers are kept', async () => {
  const created = await send(`${MAPS}?fieldManager=one`, { method: 'POST', body: mapNamed('a', { k: 'v' }) });
  expect([created.code, created.type]).toEqual([201, PROTOBUF_TYPE]);
  const read = await send(`${MAPS}/a`);
  const json = (await stand.call({ path: `${MAPS}/a`, as: stand.admin })).json;
  expect(decodeProtobuf(read.bytes)).toEqual(json);
  const object = decodeProtobuf(read.bytes);
  const body = encodeProtobuf({ ...object, data: { k: 'v', l: 'w' } });
  const changed = await send(`${MAPS}/a?fieldManager=two`, { method: 'PUT', body });
  const entries = at(decodeProtobuf(changed.bytes), 'metadata', 'managedFields');
  expect(Array.isArray(entries) && entries.map((entry) => [at(entry, 'manager'), at(entry, 'fieldsV1')])).toEqual([
    ['one', { 'f:data': { '.': {}, 'f:k': {} } }],
    ['two', { 'f:data': { 'f:l': {} } }],
  ]);
  const deleted = await send(`${MAPS}/a`, { method: 'DELETE' });
  expect(decodeProtobuf(deleted.bytes)).toMatchObject({ kind: 'Status', status: 'Success', details: { name: 'a' } });
});

it('a list has its metadata and its items, also where it takes several turns, and as metadata alone', async () => {
  const names = Array.from({ length: 40 }, (_, index) => `long-${String(index).padStart(2, '0')}`);
  await send(MAPS, { method: 'POST', body: mapNamed('short') });
  const short = listOf((await send(`${MAPS}?fieldSelector=metadata.name=short`)).bytes);
  expect(short).toMatchObject({ type: ['v1', 'ConfigMapList'], names: ['short'] });
  expect(Number(short.revision)).toBeGreaterThan(0);
  for (const name of names) {
    const body = { metadata: { name, labels: { long: 'yes' } }, data: { text: 'ü'.repeat(15_000) } };
    await stand.admit('POST', MAPS, body);
  }
  const long = await send(`${MAPS}?labelSelector=long=yes`);
  expect([long.code, long.type]).toEqual([200, PROTOBUF_TYPE]);
  expect(listOf(long.bytes)).toMatchObject({ type: ['v1', 'ConfigMapList'], names });
  const partial = await send(`${MAPS}?labelSelector=long=yes`, {
    accept: `${PROTOBUF_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`,
  });
  expect(listOf(partial.bytes)).toMatchObject({ type: ['meta.k8s.io/v1', 'PartialObjectMetadataList'], names });
});

it('a failure is a Status in protobuf, and JSON for a client that has named JSON too', async () => {
  const missing = await send(`${MAPS}/none`);
  expect([missing.code, missing.type]).toEqual([404, PROTOBUF_TYPE]);
  expect(decodeProtobuf(missing.bytes)).toMatchObject({
    kind: 'Status',
    reason: 'NotFound',
    details: { name: 'none' },
  });
  const both = await send(`${MAPS}/none`, { accept: `${PROTOBUF_TYPE},application/json` });
  expect(both.type).toBe('application/json');
});

it('a custom resource is refused before anything is done, its metadata is not', async () => {
  const widget = { kind: 'Widget', apiVersion: 'example.com/v1', metadata: { name: 'w' } };
  await vi.waitFor(() => stand.admit('POST', WIDGETS, widget));
  const refused = await send(`${WIDGETS}/w`, { method: 'DELETE' });
  expect(decodeProtobuf(refused.bytes)).toMatchObject({
    ...{ code: 406, reason: 'NotAcceptable' },
    message:
      'object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message',
  });
  const accept = `${PROTOBUF_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
  const partial = await send(`${WIDGETS}/w`, { accept });
  expect(decodeProtobuf(partial.bytes)).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'w' } });
});

it('a watch is frames of events and bookmarks', async () => {
  const query = 'watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  await send(MAPS, { method: 'POST', body: mapNamed('seen') });
  const watch = await open(`${MAPS}?${query}&fieldSelector=metadata.name=seen`);
  expect(watch.headers['content-type']).toBe(`${PROTOBUF_TYPE};stream=watch`);
  let unread = Buffer.alloc(0);
  const events: [string, JsonObject][] = [];
  watch.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    while (unread.length >= 4 && unread.length >= 4 + unread.readUInt32BE()) {
      const event = unread.subarray(4, 4 + unread.readUInt32BE());
      events.push([fieldOf(event, 1).toString(), decodeProtobuf(fieldOf(fieldOf(event, 2), 1))]);
      unread = unread.subarray(4 + event.length);
    }
  });
  await vi.waitFor(() => expect(events.map(([type]) => type)).toEqual(['ADDED', 'BOOKMARK']));
  await send(`${MAPS}/seen`, { method: 'PUT', body: mapNamed('seen', { k: 'v' }) });
  await send(`${MAPS}/seen`, { method: 'DELETE' });
  await vi.waitFor(() => expect(events).toHaveLength(4));
  watch.destroy();
  expect(events.map(([type, { kind, data }]) => [type, kind, data])).toEqual([
    ['ADDED', 'ConfigMap', undefined],
    ['BOOKMARK', 'ConfigMap', undefined],
    ['MODIFIED', 'ConfigMap', { k: 'v' }],
    ['DELETED', 'ConfigMap', { k: 'v' }],
  ]);
  const annotations = events.map(([, { metadata }]) => (isObject(metadata) ? metadata['annotations'] : undefined));
  expect(annotations[1]).toEqual({ 'k8s.io/initial-events-end': 'true' });
});
