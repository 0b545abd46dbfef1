// SPDY/3.1 frames, as far as exec, attach and port-forward need them: streams that the client opens, their data, pings and
// ends, for clients and servers. Pure.
//
// Header blocks are zlib streams. Ours are written as stored (uncompressed) blocks of one stream, which every inflater
// reads and which needs no dictionary. A frame has its block as it came: spdy-headers.ts reads it.

export const FLAG_FIN = 0x01;

const TYPES = { 1: 'syn-stream', 2: 'syn-reply', 3: 'rst-stream', 6: 'ping', 7: 'goaway' } as const;

export type Frame =
  | { readonly kind: 'data'; readonly stream: number; readonly fin: boolean; readonly data: Buffer }
  | {
      readonly kind: 'syn-stream' | 'syn-reply';
      readonly stream: number;
      readonly fin: boolean;
      readonly block: Buffer;
    }
  | { readonly kind: 'rst-stream'; readonly stream: number; readonly status: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'goaway' }
  /** SETTINGS, HEADERS, WINDOW_UPDATE and whatever else: nothing is done about them. */
  | { readonly kind: 'other'; readonly type: number };

function controlFrame(type: number, flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(0x8003, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(((flags << 24) | payload.length) >>> 0, 4);
  return Buffer.concat([head, payload]);
}

function uint32(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) buffer.writeUInt32BE(value >>> 0, at * 4);
  return buffer;
}

/** zlib's two bytes in front of a stream that names no dictionary. */
const ZLIB_HEAD = Buffer.from([0x78, 0x01]);
const STORED_MAX = 0xffff;
/** What a flush writes: Go's inflater hands out what it has when it sees this, and else asks for more than there is. */
const EMPTY_BLOCK = Buffer.from([0, 0, 0, 0xff, 0xff]);

function storedBlocks(plain: Buffer): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < plain.length; at += STORED_MAX) {
    const part = plain.subarray(at, at + STORED_MAX);
    const head = Buffer.alloc(5);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(~part.length & 0xffff, 3);
    blocks.push(head, part);
  }
  return Buffer.concat([...blocks, EMPTY_BLOCK]);
}

function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([uint32(Buffer.byteLength(value)), Buffer.from(value)]);
  const entries = Object.entries(headers);
  return Buffer.concat([uint32(entries.length), ...entries.flatMap(([name, value]) => [text(name), text(value)])]);
}

/** Opens a stream; names in lower case. `first`: the first one of its connection, which begins the zlib stream. */
export function synStream(stream: number, headers: Readonly<Record<string, string>>, first: boolean): Buffer {
  const block = storedBlocks(headerBlock(headers));
  // Stream, associated stream, then priority and slot.
  const fixed = Buffer.concat([uint32(stream, 0), Buffer.alloc(2)]);
  return controlFrame(1, 0, Buffer.concat([fixed, ...(first ? [ZLIB_HEAD] : []), block]));
}

/** Accepts a stream, without headers. `first`: the first reply of its connection, which begins the zlib stream. */
export function synReply(stream: number, first: boolean): Buffer {
  return controlFrame(
    2,
    0,
    Buffer.concat([uint32(stream), ...(first ? [ZLIB_HEAD] : []), storedBlocks(headerBlock({}))]),
  );
}

export function dataFrame(stream: number, data: Buffer, fin: boolean): Buffer {
  return Buffer.concat([uint32(stream, ((fin ? FLAG_FIN << 24 : 0) | data.length) >>> 0), data]);
}

export function ping(id: number): Buffer {
  return controlFrame(6, 0, uint32(id));
}

export function goAway(lastStream: number): Buffer {
  return controlFrame(7, 0, uint32(lastStream, 0));
}

export function rstStream(stream: number, status: number): Buffer {
  return controlFrame(3, 0, uint32(stream, status));
}

function readFrame(head: Buffer, payload: Buffer): Frame {
  const fin = ((head[4] ?? 0) & FLAG_FIN) !== 0;
  if (((head[0] ?? 0) & 0x80) === 0) return { kind: 'data', stream: head.readUInt32BE(0), fin, data: payload };
  const type = head.readUInt16BE(2);
  const kind = type in TYPES ? TYPES[type as keyof typeof TYPES] : undefined;
  const word = (offset: number): number =>
    payload.length >= offset + 4 ? payload.readUInt32BE(offset) & 0x7fffffff : 0;
  if (kind === 'syn-stream') return { kind, stream: word(0), fin, block: payload.subarray(10) };
  if (kind === 'syn-reply') return { kind, stream: word(0), fin, block: payload.subarray(4) };
  if (kind === 'rst-stream') return { kind, stream: word(0), status: word(4) };
  if (kind === 'ping') return { kind, id: payload.length >= 4 ? payload.readUInt32BE(0) : 0 };
  return kind === 'goaway' ? { kind } : { kind: 'other', type };
}

/** Cuts a byte stream into frames. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #size = 0;

  /** The frames that end in `chunk`. */
  push(chunk: Buffer): readonly Frame[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    const frames: Frame[] = [];
    for (let length = this.#frameLength(); length !== undefined; length = this.#frameLength()) {
      const whole = this.#chunks.length === 1 ? (this.#chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#chunks);
      frames.push(readFrame(whole.subarray(0, 8), whole.subarray(8, length)));
      this.#chunks = [whole.subarray(length)];
      this.#size -= length;
    }
    return frames;
  }

  /** Of the next frame with its head, once all of it is there. */
  #frameLength(): number | undefined {
    if (this.#size < 8) return undefined;
    let head = this.#chunks[0] ?? Buffer.alloc(0);
    if (head.length < 8) {
      head = Buffer.concat(this.#chunks);
      this.#chunks = [head];
    }
    const length = 8 + (head.readUInt32BE(4) & 0xffffff);
    return this.#size < length ? undefined : length;
  }
}
