// Records that this server makes, and those of other servers that it uses: encoded and decoded by dns-packet, with the owners' names
// compressed. Pure.

import { type Answer, decode, encode, type StringRecordType } from 'dns-packet';
import { Flag, HEADER_BYTES, type Message, parseMessage } from './message.ts';

/** A record of one of the types that are made here; names have no dot at the end. */
export type Resource = Extract<Answer, { type: StringRecordType | 'SRV' | 'TXT' | 'SOA' }>;

/** What a plugin answers by itself. */
export interface MadeReply {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: readonly Resource[];
  readonly authorities: readonly Resource[];
  readonly additionals: readonly Resource[];
}

const POINTER = 0xc000;
/** The farthest place that a pointer can lead to. */
const POINTER_LIMIT = 0x4000;

/** Writes names once and points to them from then on. */
class NameWriter {
  readonly #places = new Map<string, number>();

  /** `labels`, with a place for each suffix. Returns the bytes of the name at `offset`. */
  write(bytes: Buffer, start: number, offset: number): Buffer {
    const parts: Buffer[] = [];
    let [at, place] = [start, offset];
    for (let length = bytes[at] ?? 0; length !== 0; length = bytes[at] ?? 0) {
      const key = suffixKey(bytes, at);
      const known = this.#places.get(key);
      if (known !== undefined) {
        const pointer = Buffer.alloc(2);
        pointer.writeUInt16BE(POINTER | known);
        parts.push(pointer);
        return Buffer.concat(parts);
      }
      if (place < POINTER_LIMIT) this.#places.set(key, place);
      parts.push(bytes.subarray(at, at + length + 1));
      at += length + 1;
      place += length + 1;
    }
    parts.push(Buffer.of(0));
    return Buffer.concat(parts);
  }
}

/** The rest of an uncompressed name, as a key. Case is kept: a name is repeated as it was written. */
function suffixKey(bytes: Buffer, start: number): string {
  let end = start;
  for (let length = bytes[end] ?? 0; length !== 0; length = bytes[end] ?? 0) end += length + 1;
  return bytes.toString('latin1', start, end);
}

/** A message with this question (bytes, uncompressed) and what is answered. RA is set: this server resolves for its clients. */
export function makeMessage(question: Buffer, reply: MadeReply): Message {
  const plain = encode({
    type: 'response',
    answers: [...reply.answers],
    authorities: [...reply.authorities],
    additionals: [...reply.additionals],
  });
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(Flag.QR | Flag.RA | (reply.authoritative ? Flag.AA : 0) | reply.rcode, 2);
  header.writeUInt16BE(1, 4);
  plain.copy(header, 6, 6, HEADER_BYTES);
  const names = new NameWriter();
  names.write(question, 0, HEADER_BYTES);
  const parts = [header, question];
  let offset = HEADER_BYTES + question.length;
  for (const record of parseMessage(plain).records) {
    const name = names.write(plain, record.start, offset);
    const rest = plain.subarray(record.typeStart, record.end);
    parts.push(name, rest);
    offset += name.length + rest.length;
  }
  return parseMessage(Buffer.concat(parts));
}

/** The question section of a message. */
export function questionBytes({ bytes, questionEnd }: Message): Buffer {
  return bytes.subarray(HEADER_BYTES, questionEnd);
}

/** A query of this server's own. `id`: 0 to 65535. */
export function makeQuery(id: number, name: string, type: number, recursion = true): Buffer {
  const query = encode({ type: 'query', id, flags: recursion ? Flag.RD : 0, questions: [{ name, type: 'A' }] });
  // dns-packet takes types by name, and has no name for some.
  query.writeUInt16BE(type, query.length - 4);
  return query;
}

const RESOLVED: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME', 'TXT', 'DNAME', 'PTR', 'SRV']);

function isResource(record: Answer): record is Resource {
  return RESOLVED.has(record.type) && 'class' in record && record.class === 'IN';
}

/** The answers of a message as records: what an alias leads to. Throws where one of them cannot be read. */
export function answersOf({ bytes }: Message): readonly Resource[] {
  return (decode(bytes).answers ?? []).filter(isResource);
}
