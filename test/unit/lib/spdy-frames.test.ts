import { inflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { dataFrame, type Frame, FrameReader, goAway, ping, rstStream, synStream } from '../../../lib/spdy-frames.ts';

/** Z_SYNC_FLUSH: what is there is handed out, though the stream goes on. */
const SYNC_FLUSH = 2;

function headersOf(block: Buffer): Record<string, string> {
  const found: Record<string, string> = {};
  let at = 4;
  const text = (): string => {
    const length = block.readUInt32BE(at);
    at += 4 + length;
    return block.toString('utf8', at - length, at);
  };
  for (let left = block.readUInt32BE(0); left > 0; left--) found[text()] = text();
  return found;
}

test('header blocks of all streams are one zlib stream, flushed after each', () => {
  const long = 'x'.repeat(70_000);
  const frames = [synStream(1, { streamtype: 'error' }, true), synStream(3, { streamtype: 'stdin', long }, false)];
  const blocks = frames.map((frame) => frame.subarray(8 + 10));
  const first = inflateSync(blocks[0] ?? Buffer.alloc(0), { finishFlush: SYNC_FLUSH });
  const both = inflateSync(Buffer.concat(blocks), { finishFlush: SYNC_FLUSH });
  expect(headersOf(first)).toEqual({ streamtype: 'error' });
  expect(headersOf(both.subarray(first.length))).toEqual({ streamtype: 'stdin', long });
  // Go's inflater gives what it has at an empty stored block, and fails when it finds nothing after the last one.
  for (const block of blocks) expect(block.subarray(-5)).toEqual(Buffer.from([0, 0, 0, 0xff, 0xff]));
});

describe('frames', () => {
  const data = Buffer.from('hello');
  const bytes = Buffer.concat([
    dataFrame(3, data, false),
    dataFrame(5, Buffer.alloc(0), true),
    synStream(7, { streamtype: 'x' }, true),
    rstStream(3, 5),
    ping(9),
    goAway(7),
    Buffer.from([0x80, 3, 0, 4, 0, 0, 0, 0]),
  ]);
  const expected: readonly Frame[] = [
    { kind: 'data', stream: 3, fin: false, data },
    { kind: 'data', stream: 5, fin: true, data: Buffer.alloc(0) },
    { kind: 'syn-stream', stream: 7, fin: false, block: synStream(7, { streamtype: 'x' }, true).subarray(18) },
    { kind: 'rst-stream', stream: 3, status: 5 },
    { kind: 'ping', id: 9 },
    { kind: 'goaway' },
    { kind: 'other', type: 4 },
  ];

  test.each([1, 3, 7, 8, 13, 1000])('come out of pieces of %d bytes', (size) => {
    const reader = new FrameReader();
    const frames: Frame[] = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.push(bytes.subarray(at, at + size)));
    expect(frames).toEqual(expected);
  });

  test('large data has its length in three bytes', () => {
    const large = Buffer.alloc(65_536, 1);
    expect(new FrameReader().push(dataFrame(1, large, true))).toEqual([
      { kind: 'data', stream: 1, fin: true, data: large },
    ]);
  });
});
