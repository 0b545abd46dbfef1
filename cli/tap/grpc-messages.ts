// gRPC's length-prefixed messages: a byte that says whether the message is compressed, four of length, the message.

import { gunzipSync } from 'node:zlib';

/** A message that is compressed is taken apart only up to this size, in bytes. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const PREFIX_BYTES = 5;

/** With its prefix, not compressed. */
export function frameMessage(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(PREFIX_BYTES + message.length);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, PREFIX_BYTES);
  return framed;
}

/** Cuts bytes that come in pieces into messages. */
export class MessageReader {
  #parts: Buffer[] = [];
  #size = 0;
  /** Bytes that the next message has with its prefix, as far as is known. */
  #needed = PREFIX_BYTES;

  /** Bytes of a message that is not complete yet. */
  get rest(): number {
    return this.#size;
  }

  /** The messages that are complete with this piece. Throws an Error for one that is compressed and not gzip. */
  push(piece: Buffer): Buffer[] {
    this.#parts.push(piece);
    this.#size += piece.length;
    const messages: Buffer[] = [];
    for (;;) {
      if (this.#size < this.#needed) return messages;
      const bytes = this.#joined();
      const end = PREFIX_BYTES + bytes.readUInt32BE(1);
      this.#needed = end;
      if (bytes.length < end) return messages;
      this.#needed = PREFIX_BYTES;
      const content = bytes.subarray(PREFIX_BYTES, end);
      this.#parts = end === bytes.length ? [] : [bytes.subarray(end)];
      this.#size = bytes.length - end;
      messages.push(bytes[0] === 0 ? content : gunzipSync(content, { maxOutputLength: MAX_MESSAGE_BYTES }));
    }
  }

  #joined(): Buffer {
    const [only] = this.#parts;
    const bytes = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts, this.#size);
    this.#parts = [bytes];
    return bytes;
  }
}
