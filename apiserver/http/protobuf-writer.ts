// Writes protobuf's wire format from the end to the start: what is inside a field is there before its length has to be
// written, so that nothing is measured or copied twice. Callers write fields in the opposite order.

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIRST_BYTES = 1024;
/** A varint has at most ten bytes. */
const MAX_VARINT = 10;

export class BackwardWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  /** Where the first byte is. */
  #start = FIRST_BYTES;

  /** How much is written, for `message`. */
  get length(): number {
    return this.#bytes.length - this.#start;
  }

  /** What was written. The writer is of no use after that. */
  result(): Buffer {
    return this.#bytes.subarray(this.#start);
  }

  /** Length and tag of a field whose content is what was written since the length was `before`. */
  message(field: number, before: number): void {
    this.lengthOf(field, this.length - before);
  }

  /** Length and tag of a field whose content is elsewhere. */
  lengthOf(field: number, length: number): void {
    this.#unsigned(length);
    this.#tag(field, BYTES);
  }

  text(field: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.#room(length);
    this.#bytes.write(text, this.#start, length, 'utf8');
    this.lengthOf(field, length);
  }

  bytes(field: number, bytes: Uint8Array): void {
    this.raw(bytes);
    this.lengthOf(field, bytes.length);
  }

  /** Bytes without a tag. */
  raw(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#start);
  }

  /** A bool, or an integer: negative ones have ten bytes, as those of int32 and int64 have in protobuf. */
  integer(field: number, value: number | bigint): void {
    if (typeof value === 'number' && value >= 0) this.#unsigned(value);
    else this.#big(BigInt.asUintN(64, BigInt(value)));
    this.#tag(field, VARINT);
  }

  double(field: number, value: number): void {
    this.#room(8);
    this.#bytes.writeDoubleLE(value, this.#start);
    this.#tag(field, FIXED64);
  }

  #tag(field: number, wireType: number): void {
    this.#unsigned(field * 8 + wireType);
  }

  /** Exact up to 2^53. */
  #unsigned(value: number): void {
    let length = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
    this.#room(length);
    let at = this.#start;
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[at++] = (rest % 128) + 128;
    this.#bytes[at] = rest;
  }

  #big(value: bigint): void {
    const bytes: number[] = [];
    let rest = value;
    for (; rest >= 128n && bytes.length < MAX_VARINT; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    this.raw(Uint8Array.of(...bytes, Number(rest)));
  }

  /** Moves the start by `length` bytes, into a larger buffer where this one is full. */
  #room(length: number): void {
    if (length > this.#start) {
      const written = this.length;
      const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, written + length));
      this.#bytes.copy(larger, larger.length - written, this.#start);
      this.#bytes = larger;
      this.#start = larger.length - written;
    }
    this.#start -= length;
  }
}
