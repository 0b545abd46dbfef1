// Reads the frames of one direction of an HTTP/2 connection (RFC 9113, section 4) from whatever pieces its bytes come in.
// It only listens: nothing here answers, changes or keeps the bytes of DATA.

import { type HeaderField, HpackDecoder } from './hpack.ts';

export class FrameError extends Error {
  override name = 'FrameError';
}

export interface FrameHandler {
  /** A whole header block, with its continuations. */
  headers(stream: number, fields: readonly HeaderField[], endStream: boolean): void;
  /** A piece of a stream's data, without padding; `endStream` with the last piece of the last frame. May be empty then. */
  data(stream: number, bytes: Buffer, endStream: boolean): void;
  /** RST_STREAM, with its error code. */
  reset(stream: number, code: number): void;
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const HEADER_BYTES = 9;
/** Of a header block with its continuations; gRPC's own limit is 16 KiB unless it is raised. */
const MAX_BLOCK_BYTES = 1024 * 1024;

const DATA = 0x0;
const HEADERS = 0x1;
const RST_STREAM = 0x3;
const PUSH_PROMISE = 0x5;
const CONTINUATION = 0x9;

const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;

interface Block {
  readonly stream: number;
  readonly endStream: boolean;
  readonly parts: Buffer[];
  size: number;
}

export class FrameReader {
  readonly #handler: FrameHandler;
  readonly #hpack = new HpackDecoder();
  /** Bytes of the client's preface that are still to come; 0 for a server's direction. */
  #preface: number;
  /** What has come of a frame's header, or of a payload that is read as a whole. */
  readonly #pending: Buffer[] = [];
  #pendingSize = 0;
  #inPayload = false;
  #type = 0;
  #flags = 0;
  #stream = 0;
  /** Of the present frame, bytes still to come. */
  #left = 0;
  /** Of the present DATA frame; undefined until its first byte has come. */
  #padding: number | undefined;
  #block: Block | undefined;

  constructor(from: 'client' | 'server', handler: FrameHandler) {
    this.#handler = handler;
    this.#preface = from === 'client' ? PREFACE.length : 0;
  }

  /** Throws FrameError or HpackError; this direction then cannot be read any further. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#preface > 0) at = this.#readPreface(chunk, at);
      else if (!this.#inPayload) at = this.#readHeader(chunk, at);
      else if (this.#type === DATA) at = this.#readData(chunk, at);
      else at = this.#readPayload(chunk, at);
    }
  }

  #readPreface(chunk: Buffer, at: number): number {
    const from = PREFACE.length - this.#preface;
    const count = Math.min(this.#preface, chunk.length - at);
    if (chunk.compare(PREFACE, from, from + count, at, at + count) !== 0)
      throw new FrameError('the connection is not HTTP/2');
    this.#preface -= count;
    return at + count;
  }

  /** `size` bytes in one piece as soon as they are there, else undefined and what came is kept. */
  #gather(chunk: Buffer, at: number, size: number): { readonly bytes: Buffer | undefined; readonly at: number } {
    const end = Math.min(chunk.length, at + size - this.#pendingSize);
    const part = chunk.subarray(at, end);
    if (this.#pendingSize + part.length < size) {
      this.#pending.push(part);
      this.#pendingSize += part.length;
      return { bytes: undefined, at: end };
    }
    const bytes = this.#pendingSize === 0 ? part : Buffer.concat([...this.#pending, part], size);
    this.#pending.length = 0;
    this.#pendingSize = 0;
    return { bytes, at: end };
  }

  #readHeader(chunk: Buffer, start: number): number {
    const { bytes, at } = this.#gather(chunk, start, HEADER_BYTES);
    if (bytes === undefined) return at;
    this.#left = bytes.readUIntBE(0, 3);
    this.#type = bytes.readUInt8(3);
    this.#flags = bytes.readUInt8(4);
    this.#stream = bytes.readUInt32BE(5) & 0x7fffffff;
    this.#inPayload = true;
    this.#padding = (this.#flags & PADDED) === 0 ? 0 : undefined;
    const expected = this.#block?.stream;
    if (expected !== undefined && (this.#type !== CONTINUATION || this.#stream !== expected))
      throw new FrameError(`a frame of type ${this.#type} inside a header block`);
    if (this.#left === 0) this.#endEmptyFrame();
    return at;
  }

  #endEmptyFrame(): void {
    if (this.#type === DATA) {
      this.#inPayload = false;
      if ((this.#flags & END_STREAM) !== 0) this.#handler.data(this.#stream, Buffer.alloc(0), true);
    } else this.#endFrame(Buffer.alloc(0));
  }

  #readData(chunk: Buffer, at: number): number {
    if (this.#padding === undefined) {
      this.#padding = chunk.readUInt8(at);
      this.#left--;
      if (this.#padding > this.#left) throw new FrameError('a DATA frame has more padding than bytes');
      at++;
    }
    const end = Math.min(chunk.length, at + this.#left - this.#padding);
    const content = chunk.subarray(at, end);
    this.#left -= content.length;
    const isLast = this.#left === this.#padding;
    const endStream = isLast && (this.#flags & END_STREAM) !== 0;
    if (content.length > 0 || endStream) this.#handler.data(this.#stream, content, endStream);
    // Once is enough, while the padding is still to come.
    if (endStream) this.#flags &= ~END_STREAM;
    if (!isLast) return end;
    const skipped = Math.min(chunk.length - end, this.#left);
    this.#left -= skipped;
    this.#padding = this.#left;
    if (this.#left === 0) this.#inPayload = false;
    return end + skipped;
  }

  #readPayload(chunk: Buffer, start: number): number {
    const isRead = this.#type === HEADERS || this.#type === CONTINUATION || this.#type === RST_STREAM;
    if (!isRead) {
      if (this.#type === PUSH_PROMISE) throw new FrameError('a pushed stream');
      const count = Math.min(this.#left, chunk.length - start);
      this.#left -= count;
      if (this.#left === 0) this.#inPayload = false;
      return start + count;
    }
    if (this.#left > MAX_BLOCK_BYTES) throw new FrameError(`a header block of ${this.#left} bytes`);
    const { bytes, at } = this.#gather(chunk, start, this.#left);
    if (bytes !== undefined) this.#endFrame(bytes);
    return at;
  }

  #endFrame(payload: Buffer): void {
    this.#inPayload = false;
    if (this.#type === RST_STREAM) {
      if (payload.length !== 4) throw new FrameError('RST_STREAM has no error code');
      this.#handler.reset(this.#stream, payload.readUInt32BE(0));
      return;
    }
    if (this.#type === CONTINUATION) {
      if (this.#block === undefined) throw new FrameError('CONTINUATION without HEADERS');
      this.#addToBlock(this.#block, payload);
      return;
    }
    if (this.#type !== HEADERS) return;
    const padding = (this.#flags & PADDED) === 0 ? 0 : 1 + (payload[0] ?? 0);
    const from = ((this.#flags & PADDED) === 0 ? 0 : 1) + ((this.#flags & PRIORITY) === 0 ? 0 : 5);
    const to = payload.length - Math.max(0, padding - 1);
    if (from > to) throw new FrameError('a HEADERS frame is shorter than its padding');
    const block: Block = { stream: this.#stream, endStream: (this.#flags & END_STREAM) !== 0, parts: [], size: 0 };
    this.#block = block;
    this.#addToBlock(block, payload.subarray(from, to));
  }

  #addToBlock(block: Block, part: Buffer): void {
    block.size += part.length;
    if (block.size > MAX_BLOCK_BYTES) throw new FrameError(`a header block of more than ${MAX_BLOCK_BYTES} bytes`);
    block.parts.push(part);
    if ((this.#flags & END_HEADERS) === 0) return;
    this.#block = undefined;
    const [only] = block.parts;
    const whole = block.parts.length === 1 && only !== undefined ? only : Buffer.concat(block.parts);
    this.#handler.headers(block.stream, this.#hpack.decode(whole), block.endStream);
  }
}
