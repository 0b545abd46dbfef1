// Messages as bytes: what is read of them, what is refused, compression, truncation and EDNS0.

import { decode, encode } from 'dns-packet';
import { describe, expect, it, test } from 'vitest';
import { finishReply, sizeLimit } from '../../../dns/wire/finish.ts';
import { Flag, type Message, MessageError, parseMessage, Type } from '../../../dns/wire/message.ts';
import { answersOf, makeMessage, makeQuery, questionBytes, type Resource } from '../../../dns/wire/records.ts';
import { query } from './cases.ts';

const NAME = 'db.default.svc.cluster.local';

function addresses(count: number): readonly Resource[] {
  return Array.from({ length: count }, (_, last) => ({
    type: 'A',
    name: NAME,
    ttl: 5,
    data: `10.0.${last >> 8}.${last & 255}`,
  }));
}

function reply(request: Message, answers: readonly Resource[], additionals: readonly Resource[] = []): Message {
  return makeMessage(questionBytes(request), { rcode: 0, authoritative: true, answers, authorities: [], additionals });
}

function withEdns(name: string, udpPayloadSize: number, more: { flags?: number; ednsVersion?: number } = {}): Message {
  const opt = {
    type: 'OPT' as const,
    name: '.',
    udpPayloadSize,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
    ...more,
  };
  return parseMessage(encode({ type: 'query', id: 7, questions: [{ type: 'A', name }], additionals: [opt] }));
}

describe('reading', () => {
  test('a query', () => {
    const { id, question, questionCount, records, edns, flags } = query('WEB.Default', 'SRV', 99);
    expect({ id, question, questionCount, records, edns, flags }).toEqual({
      id: 99,
      question: { name: 'web.default', writtenName: 'WEB.Default', type: Type.SRV, class: 1 },
      questionCount: 1,
      records: [],
      edns: undefined,
      flags: Flag.RD,
    });
  });
  test('EDNS0', () => {
    expect(withEdns('a', 1232, { flags: 0x8000 }).edns).toEqual({ version: 0, udpSize: 1232, dnssecOk: true });
    expect(withEdns('a', 512, { ednsVersion: 1 }).edns).toEqual({ version: 1, udpSize: 512, dnssecOk: false });
  });
  test('a dot inside a label is none between two', () => {
    const bytes = makeQuery(1, 'axb.example', Type.A);
    bytes[14] = '.'.charCodeAt(0);
    expect(parseMessage(bytes).question?.name).toBe('a\\.b.example');
  });
  const whole = encode({ type: 'response', questions: [{ type: 'A', name: NAME }], answers: [...addresses(2)] });
  it.each(Array.from({ length: whole.length }, (_, length) => length))('cut off after %i bytes', (length) => {
    expect(() => parseMessage(whole.subarray(0, length))).toThrow(MessageError);
  });
  it.each([
    ['a pointer to itself', (bytes: Buffer) => bytes.writeUInt16BE(0xc00c, 12)],
    ['a pointer forward', (bytes: Buffer) => bytes.writeUInt16BE(0xc020, 12)],
    ['a label of an unknown kind', (bytes: Buffer) => bytes.writeUInt8(0x80, 12)],
    ['more records than there are', (bytes: Buffer) => bytes.writeUInt16BE(65_535, 6)],
  ])('%s', (_, change) => {
    const bytes = Buffer.from(whole);
    change(bytes);
    expect(() => parseMessage(bytes)).toThrow(MessageError);
  });
  test('a name that is too long', () => {
    const label = Buffer.from([63, ...Buffer.alloc(63, 'a')]);
    const header = makeQuery(1, '.', Type.A).subarray(0, 12);
    const bytes = Buffer.concat([header, label, label, label, label, Buffer.from([0, 0, 1, 0, 1])]);
    expect(() => parseMessage(bytes)).toThrow('a name is too long');
  });
});

describe('writing', () => {
  test('names are written once', () => {
    const request = query(`_sql._tcp.${NAME}`, 'SRV');
    const target = `db-0.${NAME}`;
    const answers: Resource[] = [
      { type: 'SRV', name: `_sql._tcp.${NAME}`, ttl: 5, data: { priority: 0, weight: 100, port: 1, target } },
    ];
    const made = reply(request, answers, [{ type: 'A', name: target, ttl: 5, data: '10.0.0.1' }]);
    const { answers: read = [], additionals = [] } = decode(made.bytes);
    expect(read).toMatchObject([{ type: 'SRV', name: `_sql._tcp.${NAME}`, data: { port: 1, target } }]);
    expect(additionals).toMatchObject([{ type: 'A', name: target, data: '10.0.0.1' }]);
    // Twelve of the header, the question, a pointer and what no pointer may be in; "db-0" with a pointer.
    const srv = 2 + 10 + 6 + target.length + 2;
    expect(made.bytes.length).toBe(12 + questionBytes(request).length + srv + 5 + 2 + 10 + 4);
  });
  test('what is read again is what was written', () => {
    const answers: Resource[] = [
      { type: 'CNAME', name: NAME, ttl: 5, data: 'example.com' },
      { type: 'AAAA', name: 'example.com', ttl: 7, data: 'fd00::1' },
    ];
    expect(answersOf(reply(query(NAME, 'AAAA'), answers))).toMatchObject(answers);
  });
});

describe('what the client gets', () => {
  const finish = (request: Message, made: Message, transport: 'udp' | 'tcp' = 'udp'): Message =>
    parseMessage(finishReply(request, made, { transport }));

  test('its id, its question as it was written, and recursion', () => {
    const request = query(NAME.toUpperCase(), 'A', 4711);
    const { id, question, flags, rcode } = finish(request, reply(query(NAME, 'A'), addresses(1)));
    expect({ id, name: question?.writtenName, flags, rcode }).toEqual({
      id: 4711,
      name: NAME.toUpperCase(),
      flags: Flag.QR | Flag.AA | Flag.RD | Flag.RA,
      rcode: 0,
    });
  });
  it.each([
    ['512 bytes over UDP', query(NAME, 'A'), 'udp', 512, true],
    ['no more where it says less', withEdns(NAME, 100), 'udp', 512, true],
    ['as it says', withEdns(NAME, 1232), 'udp', 1232, true],
    ['all where it fits', withEdns(NAME, 4096), 'udp', 4096, false],
    ['all over TCP', query(NAME, 'A'), 'tcp', 65_535, false],
  ] as const)('%s', (_, request, transport, limit, isCut) => {
    const done = finish(request, reply(query(NAME, 'A'), addresses(100)), transport);
    expect(sizeLimit(request, transport)).toBe(limit);
    expect(done.bytes.length).toBeLessThanOrEqual(limit);
    expect((done.flags & Flag.TC) !== 0).toBe(isCut);
    const answers = done.records.filter(({ section }) => section === 'answer');
    if (isCut) expect(done.bytes.length).toBeGreaterThan(limit - 32);
    else expect(answers).toHaveLength(100);
    expect(done.edns?.udpSize).toBe(request.edns?.udpSize);
  });
  test('another server’s OPT is not passed on', () => {
    const opt = {
      type: 'OPT' as const,
      name: '.',
      udpPayloadSize: 1400,
      extendedRcode: 0,
      ednsVersion: 0,
      flags: 0,
      flag_do: false,
      options: [],
    };
    const theirs = encode({
      type: 'response',
      flags: Flag.RA,
      questions: [{ type: 'A', name: NAME }],
      answers: [...addresses(1)],
      additionals: [opt],
    });
    const plain = finish(query(NAME, 'A'), parseMessage(theirs));
    expect(plain.edns).toBeUndefined();
    expect(plain.records).toHaveLength(1);
    expect(plain.flags & Flag.TC).toBe(0);
    expect(finish(withEdns(NAME, 1232), parseMessage(theirs)).edns?.udpSize).toBe(1232);
  });
  test('a code beyond four bits', () => {
    const request = withEdns(NAME, 1232, { ednsVersion: 1 });
    const bytes = finishReply(request, reply(request, []), { transport: 'udp', rcode: 16 });
    const { additionals = [] } = decode(bytes);
    expect(additionals).toMatchObject([{ type: 'OPT', extendedRcode: 1, ednsVersion: 0 }]);
    expect(parseMessage(bytes).rcode).toBe(0);
  });
});
