// Decodes HTTP/2 header blocks (HPACK, RFC 7541). One decoder for each direction of a connection, fed every block in order:
// the table it keeps depends on all of them. Never encodes.

import { HUFFMAN_LENGTHS, STATIC_TABLE } from './hpack-tables.ts';

export type HeaderField = readonly [name: string, value: string];

/** The block is not HPACK; what follows on this direction of the connection cannot be decoded either. */
export class HpackError extends Error {
  override name = 'HpackError';
}

/** A table that a peer may ask for, in bytes as RFC 7541, section 4.1 counts them. */
const MAX_TABLE_BYTES = 1024 * 1024;
const ENTRY_OVERHEAD = 32;
const EOS = 256;

/** The Huffman tree as pairs of next nodes: a positive number is a node, a negative one is -(symbol + 1), 0 is nothing. */
const TREE: Int16Array = huffmanTree();

function huffmanTree(): Int16Array {
  const tree = new Int16Array(2 * 300);
  let nodes = 1;
  // The code is canonical: codes of one length follow each other in the order of their symbols.
  const symbols = [...HUFFMAN_LENGTHS.entries()].sort(([a, lengthA], [b, lengthB]) => lengthA - lengthB || a - b);
  let code = 0;
  let before = symbols[0]?.[1] ?? 0;
  for (const [symbol, length] of symbols) {
    code *= 2 ** (length - before);
    before = length;
    let node = 0;
    for (let bit = length - 1; bit >= 0; bit--) {
      const at = 2 * node + (Math.floor(code / 2 ** bit) % 2);
      if (bit === 0) tree[at] = -(symbol + 1);
      else {
        if (tree[at] === 0) tree[at] = nodes++;
        node = tree[at] ?? 0;
      }
    }
    code++;
  }
  return tree;
}

function decodeHuffman(bytes: Uint8Array): string {
  const out: number[] = [];
  let node = 0;
  let ones = 0;
  let bits = 0;
  for (const byte of bytes) {
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      ones = bit === 1 ? ones + 1 : 0;
      bits++;
      const next = TREE[2 * node + bit] ?? 0;
      if (next > 0) {
        node = next;
        continue;
      }
      const symbol = -next - 1;
      if (symbol < 0 || symbol === EOS) throw new HpackError('a header has no Huffman code');
      out.push(symbol);
      node = 0;
      bits = 0;
    }
  }
  // What is left is padding: the first bits of EOS, fewer than a byte.
  if (bits > 7 || ones < bits) throw new HpackError('a header’s Huffman code has wrong padding');
  return Buffer.from(out).toString('latin1');
}

export class HpackDecoder {
  /** Newest first. */
  #table: HeaderField[] = [];
  #size = 0;
  #maxSize = 4096;

  /** The fields of one complete header block, in order. */
  decode(block: Uint8Array): HeaderField[] {
    const fields: HeaderField[] = [];
    const reader = new BlockReader(block);
    while (!reader.done) {
      const first = reader.peek();
      if ((first & 0x80) !== 0) fields.push(this.#field(reader.integer(7)));
      else if ((first & 0x40) !== 0) {
        const field = this.#literal(reader, reader.integer(6));
        this.#insert(field);
        fields.push(field);
      } else if ((first & 0x20) !== 0) this.#resize(reader.integer(5));
      else fields.push(this.#literal(reader, reader.integer(4)));
    }
    return fields;
  }

  #field(index: number): HeaderField {
    const field = index <= STATIC_TABLE.length ? STATIC_TABLE[index - 1] : this.#table[index - STATIC_TABLE.length - 1];
    if (field === undefined) throw new HpackError(`no header field has index ${index}`);
    return field;
  }

  #literal(reader: BlockReader, index: number): HeaderField {
    const name = index === 0 ? reader.string() : this.#field(index)[0];
    return [name, reader.string()];
  }

  #insert(field: HeaderField): void {
    const size = sizeOf(field);
    this.#table.unshift(field);
    this.#size += size;
    this.#evict();
  }

  #resize(size: number): void {
    if (size > MAX_TABLE_BYTES) throw new HpackError(`a header table of ${size} bytes`);
    this.#maxSize = size;
    this.#evict();
  }

  #evict(): void {
    while (this.#size > this.#maxSize) {
      const last = this.#table.pop();
      if (last === undefined) break;
      this.#size -= sizeOf(last);
    }
  }
}

function sizeOf([name, value]: HeaderField): number {
  return name.length + value.length + ENTRY_OVERHEAD;
}

class BlockReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  peek(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new HpackError('a header block ends too early');
    return byte;
  }

  #next(): number {
    const byte = this.peek();
    this.#at++;
    return byte;
  }

  /** Section 5.1: an integer whose first `prefix` bits are the low ones of the next byte. */
  integer(prefix: number): number {
    const limit = 2 ** prefix - 1;
    let value = this.#next() & limit;
    if (value < limit) return value;
    for (let shift = 0; ; shift += 7) {
      if (shift > 28) throw new HpackError('a number in a header block is too large');
      const byte = this.#next();
      value += (byte & 0x7f) * 2 ** shift;
      if ((byte & 0x80) === 0) return value;
    }
  }

  /** Section 5.2. Bytes above 127 are taken as Latin-1, so that none is lost. */
  string(): string {
    const huffman = (this.peek() & 0x80) !== 0;
    const length = this.integer(7);
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new HpackError('a header block ends in a string');
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return huffman
      ? decodeHuffman(bytes)
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  }
}
