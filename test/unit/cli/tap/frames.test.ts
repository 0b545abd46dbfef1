// Frames in whatever pieces they come.

import { expect, test } from 'vitest';
import { type FrameHandler, FrameReader } from '../../../../cli/tap/frames.ts';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** What a reader receives, data joined: pieces do not matter. */
function read(bytes: Buffer, size: number): unknown[] {
  const seen: unknown[] = [];
  let data = '';
  const handler: FrameHandler = {
    headers: (stream, fields, end) => seen.push(['headers', stream, fields, end]),
    data: (stream, part, end) => {
      data += part.toString();
      if (end) seen.push(['data', stream, data]);
    },
    reset: (stream, code) => seen.push(['reset', stream, code]),
  };
  const reader = new FrameReader('client', handler);
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return seen;
}

// ":method: GET", ":path: /", from the static table.
const BLOCK = Buffer.from([0x82, 0x84]);
const FIELDS = [
  [':method', 'GET'],
  [':path', '/'],
];
const padded = (content: Buffer, padding: number): Buffer =>
  Buffer.concat([Buffer.from([padding]), content, Buffer.alloc(padding)]);

const ALL = Buffer.concat([
  PREFACE,
  frame(4, 0, 0, Buffer.alloc(12)),
  frame(1, 4, 1, BLOCK),
  frame(8, 0, 0, Buffer.alloc(4)),
  frame(0, 0, 1, Buffer.from('hello ')),
  frame(0, 0, 1, Buffer.alloc(0)),
  frame(0, 1 | 8, 1, padded(Buffer.from('world'), 7)),
  frame(1, 1 | 8 | 0x20, 3, padded(Buffer.concat([Buffer.alloc(5), BLOCK.subarray(0, 1)]), 3)),
  frame(9, 0, 3, Buffer.alloc(0)),
  frame(9, 4, 3, BLOCK.subarray(1)),
  frame(3, 0, 5, Buffer.from([0, 0, 0, 8])),
  frame(0x42, 0xff, 9, Buffer.from('of a type that nobody knows')),
  frame(0, 1, 7, Buffer.alloc(0)),
  frame(0, 1 | 8, 9, padded(Buffer.alloc(0), 2)),
]);

test.each([1, 2, 3, 7, 9, 10, 64, 100_000])('pieces of %i bytes', (size) => {
  expect(read(ALL, size)).toEqual([
    ['headers', 1, FIELDS, false],
    ['data', 1, 'hello world'],
    ['headers', 3, FIELDS, true],
    ['reset', 5, 8],
    ['data', 7, 'hello world'],
    ['data', 9, 'hello world'],
  ]);
});

test.each([
  ['another protocol', Buffer.from('GET / HTTP/1.1\r\n')],
  ['padding longer than the frame', Buffer.concat([PREFACE, frame(0, 8, 1, Buffer.from([9, 0]))])],
  ['padding longer than the headers', Buffer.concat([PREFACE, frame(1, 4 | 8, 1, Buffer.from([9, 0]))])],
  ['CONTINUATION without HEADERS', Buffer.concat([PREFACE, frame(9, 4, 1, BLOCK)])],
  ['DATA inside a header block', Buffer.concat([PREFACE, frame(1, 0, 1, BLOCK), frame(0, 0, 1, BLOCK)])],
  ['a header block of another stream', Buffer.concat([PREFACE, frame(1, 0, 1, BLOCK), frame(9, 4, 3, BLOCK)])],
  ['RST_STREAM without a code', Buffer.concat([PREFACE, frame(3, 0, 1, Buffer.alloc(3))])],
  [
    'a header block without end',
    Buffer.concat([
      PREFACE,
      frame(1, 0, 1, BLOCK),
      ...Array.from({ length: 80 }, () => frame(9, 0, 1, Buffer.alloc(16_000))),
    ]),
  ],
])('%s cannot be read', (_, bytes) => {
  expect(() => read(bytes, bytes.length)).toThrow();
});
