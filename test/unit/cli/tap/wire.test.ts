// Messages by the names of the CRI, and what no .proto file knows.

import { expect, test } from 'vitest';
import { loadSchema } from '../../../../cli/tap/schema.ts';
import { decodeMessage, lengthField, readFields, rewriteTexts, WireError } from '../../../../cli/tap/wire.ts';
import { METHODS, requestBytes, responseBytes } from './messages.ts';

const schema = loadSchema();
const type = (path: string) => {
  const found = schema.method(path);
  if (found === undefined) throw new Error(`no ${path}`);
  return found;
};

test('fields of every kind have their CRI names', () => {
  const bytes = requestBytes('CreateContainer', {
    pod_sandbox_id: 'p',
    config: {
      metadata: { name: 'main', attempt: 3 },
      command: ['sh', '-c'],
      envs: [{ key: 'A', value: '' }],
      mounts: [{ container_path: '/x', readonly: true, propagation: 'PROPAGATION_BIDIRECTIONAL' }],
      labels: { one: '1', constructor: '2' },
      linux: {
        resources: { cpu_quota: -1, memory_limit_in_bytes: '9007199254740993' },
        security_context: { run_as_user: { value: 0 }, supplemental_groups: [1, 2] },
      },
    },
  });
  expect(decodeMessage(bytes, type(METHODS.CreateContainer.path).request)).toEqual({
    pod_sandbox_id: 'p',
    config: {
      metadata: { name: 'main', attempt: 3 },
      command: ['sh', '-c'],
      envs: [{ key: 'A' }],
      mounts: [{ container_path: '/x', readonly: true, propagation: 'PROPAGATION_BIDIRECTIONAL' }],
      labels: { one: '1', constructor: '2' },
      linux: {
        resources: { cpu_quota: -1, memory_limit_in_bytes: '9007199254740993' },
        security_context: { run_as_user: {}, supplemental_groups: [1, 2] },
      },
    },
  });
});

test('fields that the types lack are kept and have their number', () => {
  const extra = Buffer.concat([lengthField(777, Buffer.from('new')), Buffer.from([0xf8, 0x30, 5])]);
  const decoded = decodeMessage(
    Buffer.concat([responseBytes('Version', { version: '1' }), extra]),
    type(METHODS.Version.path).response,
  );
  expect(decoded).toEqual({ version: '1', '#777': 'new', '#783': 5 });
  expect(decodeMessage(extra, undefined)).toEqual({ '#777': 'new', '#783': 5 });
});

test('texts are rewritten in their places, and all other bytes stay', () => {
  const extra = lengthField(777, Buffer.from('abc'));
  const bytes = Buffer.concat([
    requestBytes('CreateContainer', { pod_sandbox_id: 'abc', config: { labels: { k: 'xabcx' } } }),
    extra,
  ]);
  const { request } = type(METHODS.CreateContainer.path);
  expect(rewriteTexts(bytes, request, (text) => text)).toEqual(bytes);
  const rewritten = rewriteTexts(bytes, request, (text) => text.replaceAll('abc', 'longer than before'));
  expect(decodeMessage(rewritten, request)).toMatchObject({
    pod_sandbox_id: 'longer than before',
    config: { labels: { k: 'xlonger than beforex' } },
  });
  expect(rewritten.subarray(-extra.length)).toEqual(extra);
});

test.each([
  ['a length beyond the end', '0a 05 61'],
  ['a number without end', '08 ff ff ff ff ff ff ff ff ff ff ff'],
  ['field 0', '00 00'],
  ['a group', '0b'],
  ['a fixed-size number that is cut off', '09 00 00'],
])('%s is no message', (_, hex) => {
  expect(() => readFields(Buffer.from(hex.replaceAll(' ', ''), 'hex'))).toThrow(WireError);
});

test('nesting without end is refused', () => {
  let bytes: Buffer = Buffer.alloc(0);
  const { request } = type(METHODS.Version.path);
  const self = { name: 'Self', isMapEntry: false, fields: new Map(request.fields) };
  self.fields.set(1, {
    name: 'self',
    number: 1,
    kind: 'message' as const,
    repeated: false,
    message: () => self,
    enumNames: new Map(),
  });
  for (let depth = 0; depth < 200; depth++) bytes = lengthField(1, bytes);
  expect(() => decodeMessage(bytes, self)).toThrow('nested deeper');
});
