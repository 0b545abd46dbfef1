import { constants, createDeflate } from 'node:zlib';
import { expect, test } from 'vitest';
import { FrameReader, synStream } from '../../../lib/spdy-frames.ts';
import { HeaderReader, SPDY_DICTIONARY } from '../../../lib/spdy-headers.ts';

function plain(headers: Readonly<Record<string, string>>): Buffer {
  const word = (text: string): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    return Buffer.concat([length, Buffer.from(text)]);
  };
  const count = Buffer.alloc(4);
  count.writeUInt32BE(Object.keys(headers).length);
  return Buffer.concat([count, ...Object.entries(headers).flatMap(([name, value]) => [word(name), word(value)])]);
}

/** As clients in Go write them: one zlib stream with the protocol's dictionary, flushed after each block. */
async function compressed(blocks: readonly Buffer[]): Promise<Buffer[]> {
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY });
  const found: Buffer[] = [];
  let parts: Buffer[] = [];
  deflate.on('data', (chunk: Buffer) => parts.push(chunk));
  for (const block of blocks) {
    deflate.write(block);
    await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, () => resolve()));
    found.push(Buffer.concat(parts));
    parts = [];
  }
  deflate.destroy();
  return found;
}

const HEADERS = [{ streamtype: 'error' }, { streamtype: 'data', port: '80', requestid: '0' }, { streamtype: 'stdin' }];

test('the dictionary is the protocol’s', async () => {
  const [first] = await compressed([plain({ a: 'b' })]);
  // zlib writes its checksum behind the two bytes that say that there is one.
  expect(first?.subarray(0, 6).toString('hex')).toBe('78bbe3c6a7c2');
});

test('blocks of a connection are read one after the other', async () => {
  const reader = new HeaderReader();
  for (const [index, block] of (await compressed(HEADERS.map(plain))).entries()) {
    expect(await reader.read(block)).toEqual(HEADERS[index]);
  }
  reader.close();
});

test('those that need no dictionary as well', async () => {
  const reader = new HeaderReader();
  for (const [index, headers] of HEADERS.entries()) {
    const [frame] = new FrameReader().push(synStream(index * 2 + 1, headers, index === 0));
    if (frame?.kind !== 'syn-stream') throw new Error('no stream');
    expect(await reader.read(frame.block)).toEqual(headers);
  }
  reader.close();
});

test('what is no block is refused', async () => {
  await expect(new HeaderReader().read(Buffer.from('nonsense'))).rejects.toThrow();
  const cut = new HeaderReader();
  const [block] = await compressed([plain({ a: 'b' }).subarray(0, 9)]);
  await expect(cut.read(block ?? Buffer.alloc(0))).rejects.toThrow();
});
