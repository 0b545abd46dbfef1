// The last thing that happens to an answer: the client's id, question and EDNS0 in it, and no more than the client takes. Pure.

import { Flag, HEADER_BYTES, type Message, type RecordPlace, Type } from './message.ts';

/** Of a UDP answer where the client does not say more. Bytes, RFC 1035. */
const PLAIN_UDP_BYTES = 512;
const MAX_BYTES = 65_535;
const OPT_BYTES = 11;
const DO_BIT = 0x8000;

export type Transport = 'udp' | 'tcp';

/** What the client takes, in bytes: 512 over UDP, or what it sends by EDNS0. */
export function sizeLimit(request: Message, transport: Transport): number {
  if (transport === 'tcp') return MAX_BYTES;
  return Math.max(PLAIN_UDP_BYTES, request.edns?.udpSize ?? 0);
}

/** An OPT record for a client that has sent one. `rcode`: the upper bits of an extended one go here. */
function optRecord({ edns }: Message, rcode: number): Buffer {
  if (edns === undefined) return Buffer.alloc(0);
  const record = Buffer.alloc(OPT_BYTES);
  record.writeUInt16BE(Type.OPT, 1);
  record.writeUInt16BE(edns.udpSize, 3);
  record.writeUInt8(rcode >> 4, 5);
  record.writeUInt16BE(edns.dnssecOk ? DO_BIT : 0, 7);
  return record;
}

/** The records up to an OPT, which is another server's; those that fit. */
function fitting(records: readonly RecordPlace[], limit: number): readonly RecordPlace[] {
  const opt = records.findIndex(({ type }) => type === Type.OPT);
  const all = opt === -1 ? records : records.slice(0, opt);
  const over = all.findIndex(({ end }) => end > limit);
  return over === -1 ? all : all.slice(0, over);
}

function count(records: readonly RecordPlace[], section: RecordPlace['section']): number {
  return records.reduce((sum, record) => sum + (record.section === section ? 1 : 0), 0);
}

/** The bytes that answer `request`. Where not all records fit, those at the end are left out, and TC says so. */
export function finishReply(
  request: Message,
  reply: Message,
  { transport, rcode = reply.rcode }: { readonly transport: Transport; readonly rcode?: number },
): Buffer {
  const opt = optRecord(request, rcode);
  const limit = sizeLimit(request, transport) - opt.length;
  const own = reply.records.filter(({ type }) => type !== Type.OPT).length;
  const kept = fitting(reply.records, limit);
  const end = kept.at(-1)?.end ?? reply.questionEnd;
  const bytes = Buffer.concat([reply.bytes.subarray(0, end), opt]);
  const wasCut = kept.length < own && kept.length < fitting(reply.records, MAX_BYTES).length;
  const flags = reply.flags & (Flag.AA | Flag.TC | Flag.RA | Flag.AD);
  const copied = request.flags & (Flag.RD | Flag.CD);
  bytes.writeUInt16BE(request.id, 0);
  bytes.writeUInt16BE(Flag.QR | flags | copied | (wasCut ? Flag.TC : 0) | (rcode & 15), 2);
  bytes.writeUInt16BE(request.questionCount === 0 ? 0 : 1, 4);
  bytes.writeUInt16BE(count(kept, 'answer'), 6);
  bytes.writeUInt16BE(count(kept, 'authority'), 8);
  bytes.writeUInt16BE(count(kept, 'additional') + (opt.length > 0 ? 1 : 0), 10);
  request.bytes.copy(bytes, HEADER_BYTES, HEADER_BYTES, request.questionEnd);
  return bytes;
}
