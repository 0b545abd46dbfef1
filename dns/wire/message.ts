// A DNS message as bytes, with the places of its parts: a message of another server is passed on as it is, whatever records are in it,
// and only what has to change is changed in place. Records are made and read by dns-packet (records.ts). Pure.

/** Numbers of RFC 1035 and its successors, as far as this server treats them by name. */
export const Type = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  DS: 43,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;
export const CLASS_IN = 1;
export const Rcode = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  BADVERS: 16,
} as const;
export const Flag = { QR: 0x8000, AA: 0x0400, TC: 0x0200, RD: 0x0100, RA: 0x0080, AD: 0x0020, CD: 0x0010 } as const;

export const HEADER_BYTES = 12;
/** Of a name in bytes, RFC 1035. */
const MAX_NAME_BYTES = 255;
const POINTER = 0xc0;
/** In the TTL field of an OPT record. */
const DO_BIT = 0x8000;

/** The bytes are no DNS message. */
export class MessageError extends Error {
  override name = 'MessageError';
}

export interface Question {
  /** Lower case, labels with dots between and none at the end; '' is the root. A dot inside a label has a backslash before it. */
  readonly name: string;
  /** As it was written. */
  readonly writtenName: string;
  readonly type: number;
  readonly class: number;
}

export type Section = 'answer' | 'authority' | 'additional';

/** Where one record is. Offsets of bytes. */
export interface RecordPlace {
  readonly section: Section;
  readonly start: number;
  /** After its owner's name: type, class, TTL, length. */
  readonly typeStart: number;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly dataStart: number;
  readonly end: number;
}

/** EDNS0, RFC 6891. */
export interface Edns {
  readonly version: number;
  readonly udpSize: number;
  readonly dnssecOk: boolean;
}

export interface Message {
  readonly bytes: Buffer;
  readonly id: number;
  readonly flags: number;
  readonly opcode: number;
  readonly rcode: number;
  readonly question: Question | undefined;
  /** Where the question ends. */
  readonly questionEnd: number;
  readonly questionCount: number;
  readonly records: readonly RecordPlace[];
  readonly edns: Edns | undefined;
}

/** Where a name ends; the name itself is not followed. Throws MessageError. */
function skipName(bytes: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const length = bytes[at];
    if (length === undefined) throw new MessageError('a name is cut off');
    if (length === 0) return at + 1;
    if ((length & POINTER) === POINTER) {
      if (at + 2 > bytes.length) throw new MessageError('a name is cut off');
      return at + 2;
    }
    if ((length & POINTER) !== 0) throw new MessageError('a label of an unknown kind');
    at += length + 1;
    if (at - start >= MAX_NAME_BYTES) throw new MessageError('a name is too long');
  }
}

/** The labels of a name, pointers followed: each leads further back than the one before it. Throws MessageError. */
function labelsAt(bytes: Buffer, start: number): readonly string[] {
  const labels: string[] = [];
  let [at, limit, length] = [start, start, 0];
  for (;;) {
    const size = bytes[at];
    if (size === undefined) throw new MessageError('a name is cut off');
    if (size === 0) return labels;
    if ((size & POINTER) === POINTER) {
      if (at + 2 > bytes.length) throw new MessageError('a name is cut off');
      const target = bytes.readUInt16BE(at) & 0x3fff;
      if (target >= limit) throw new MessageError('a pointer leads forward');
      limit = target;
      at = target;
      continue;
    }
    if ((size & POINTER) !== 0 || at + 1 + size > bytes.length) throw new MessageError('a label is cut off');
    length += size + 1;
    if (length >= MAX_NAME_BYTES) throw new MessageError('a name is too long');
    labels.push(bytes.toString('latin1', at + 1, at + 1 + size).replaceAll('.', '\\.'));
    at += size + 1;
  }
}

/** The name at this place, as in Question.writtenName. Throws MessageError. */
export function nameAt(bytes: Buffer, start: number): string {
  return labelsAt(bytes, start).join('.');
}

function readRecord(bytes: Buffer, start: number, section: Section): RecordPlace {
  const typeStart = skipName(bytes, start);
  const dataStart = typeStart + 10;
  if (dataStart > bytes.length) throw new MessageError('a record is cut off');
  const end = dataStart + bytes.readUInt16BE(typeStart + 8);
  if (end > bytes.length) throw new MessageError('a record is cut off');
  const ttl = bytes.readUInt32BE(typeStart + 4);
  const [type, recordClass] = [bytes.readUInt16BE(typeStart), bytes.readUInt16BE(typeStart + 2)];
  return { section, start, typeStart, type, class: recordClass, ttl, dataStart, end };
}

function ednsOf(records: readonly RecordPlace[]): Edns | undefined {
  const opt = records.find(({ type }) => type === Type.OPT);
  if (opt === undefined) return undefined;
  return { udpSize: opt.class, version: (opt.ttl >>> 16) & 0xff, dnssecOk: (opt.ttl & DO_BIT) !== 0 };
}

/** Reads the places of everything. The first question alone counts. Throws MessageError. */
export function parseMessage(bytes: Buffer): Message {
  if (bytes.length < HEADER_BYTES) throw new MessageError('shorter than a header');
  const flags = bytes.readUInt16BE(2);
  const [questionCount, answers, authorities, additionals] = [4, 6, 8, 10].map((place) => bytes.readUInt16BE(place));
  let offset = HEADER_BYTES;
  let question: Question | undefined;
  for (let index = 0; index < (questionCount ?? 0); index++) {
    const end = skipName(bytes, offset);
    if (end + 4 > bytes.length) throw new MessageError('a question is cut off');
    if (index === 0) {
      const writtenName = nameAt(bytes, offset);
      const [type, questionClass] = [bytes.readUInt16BE(end), bytes.readUInt16BE(end + 2)];
      question = { name: writtenName.toLowerCase(), writtenName, type, class: questionClass };
    }
    offset = end + 4;
  }
  const questionEnd = offset;
  const records: RecordPlace[] = [];
  const sections = [
    ['answer', answers],
    ['authority', authorities],
    ['additional', additionals],
  ] as const;
  for (const [section, count = 0] of sections) {
    for (let index = 0; index < count; index++) {
      const record = readRecord(bytes, offset, section);
      records.push(record);
      offset = record.end;
    }
  }
  return {
    bytes,
    id: bytes.readUInt16BE(0),
    flags,
    opcode: (flags >> 11) & 15,
    rcode: flags & 15,
    question,
    questionEnd,
    questionCount: questionCount ?? 0,
    records,
    edns: ednsOf(records),
  };
}

/** The message with an empty body: for what is refused before it is read further. Pure. */
export function headerReply(request: Buffer, rcode: number): Buffer {
  const reply = Buffer.alloc(HEADER_BYTES);
  reply.writeUInt16BE(request.readUInt16BE(0), 0);
  const kept = request.readUInt16BE(2) & (0x7800 | Flag.RD);
  reply.writeUInt16BE(Flag.QR | kept | rcode, 2);
  return reply;
}

/** Whether both ask for the same, upper and lower case aside. Pure. */
export function sameQuestion(a: Question | undefined, b: Question | undefined): boolean {
  return a !== undefined && b !== undefined && a.name === b.name && a.type === b.type && a.class === b.class;
}
