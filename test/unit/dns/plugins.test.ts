// The plugins beside kubernetes: what is kept and for how long, hosts files, the order of addresses and of upstreams, lines of the log.

import { describe, expect, it, test } from 'vitest';
import { addressKey, addressOfPodName, nameOfAddress } from '../../../dns/cluster/addresses.ts';
import { parseCorefile } from '../../../dns/corefile/corefile.ts';
import type { CacheSettings, HostsSettings, LogSettings } from '../../../dns/corefile/settings.ts';
import { forwardMatches } from '../../../dns/forward/forward.ts';
import { upstreamOrder } from '../../../dns/forward/upstreams.ts';
import { AnswerStore, answerKind, cachePlugin, keepFor, leastTtl } from '../../../dns/plugins/cache.ts';
import { hostsRecords, hostsTable, mergeHosts } from '../../../dns/plugins/hosts.ts';
import { shuffleAddresses } from '../../../dns/plugins/loadbalance.ts';
import { logLine } from '../../../dns/plugins/log.ts';
import { loopDetector } from '../../../dns/plugins/loop.ts';
import type { Handler, Request } from '../../../dns/plugins/plugin.ts';
import { nameServersOf } from '../../../dns/server/resolv-conf.ts';
import { Flag, type Message, type Type } from '../../../dns/wire/message.ts';
import { answersOf, makeMessage, questionBytes, type Resource } from '../../../dns/wire/records.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { query, question, text } from './cases.ts';

const NAME = 'www.example.com';
const a = (data: string, ttl = 60, name = NAME): Resource => ({ type: 'A', name, ttl, data });
const alias = (name: string, data: string, ttl = 60): Resource => ({ type: 'CNAME', name, ttl, data });
const soa = (ttl = 60): Resource => ({ type: 'SOA', name: 'example.com', ttl, data: { mname: 'ns', rname: 'root' } });

function answer(
  rcode: number,
  answers: readonly Resource[],
  authorities: readonly Resource[] = [],
  flags = 0,
): Message {
  const made = { rcode, authoritative: false, answers, authorities, additionals: [] };
  const message = makeMessage(questionBytes(query(NAME, 'A')), made);
  return { ...message, flags: message.flags | flags };
}

function request(name = NAME, type: keyof typeof Type = 'A'): Request {
  const message = query(name, type);
  return {
    message,
    question: question(name, type),
    transport: 'udp',
    client: { address: '10.0.0.9', port: 999 },
    depth: 0,
  };
}

function settings(...lines: readonly string[]) {
  const [server] = parseCorefile(`. {\n${lines.join('\n')}\n}\n`);
  if (server === undefined) throw new Error('no server');
  return server;
}

function cacheOf(...lines: readonly string[]): CacheSettings {
  const { cache } = settings(...lines);
  if (cache === undefined) throw new Error('no cache');
  return cache;
}

describe('cache: what an answer is', () => {
  it.each([
    ['an address', answer(0, [a('192.0.2.1')]), 'success'],
    ['an alias and its address', answer(0, [alias(NAME, 'x.example'), a('192.0.2.1', 60, 'x.example')]), 'success'],
    ['an alias without an end', answer(0, [alias(NAME, 'x.example')]), 'other'],
    ['the same, denied', answer(0, [alias(NAME, 'x.example')], [soa()]), 'nodata'],
    ['aliases in a circle', answer(0, [alias(NAME, 'x.example'), alias('x.example', NAME)]), 'other'],
    ['no such type', answer(0, [], [soa()]), 'nodata'],
    ['no such name', answer(3, [], [soa()]), 'nxdomain'],
    ['no such name, and not for how long', answer(3, []), 'other'],
    ['a failure', answer(2, []), 'failure'],
    ['a refusal', answer(5, []), 'other'],
    ['one that is cut', answer(0, [a('192.0.2.1')], [], Flag.TC), 'other'],
  ])('%s', (_, message, expected) => {
    expect(answerKind(message)).toBe(expected);
  });
});

describe('cache: for how long', () => {
  const usual = cacheOf('cache');
  it.each([
    ['as it says', answer(0, [a('192.0.2.1', 60)]), usual, 60],
    ['the least of all', answer(0, [a('192.0.2.1', 60), a('192.0.2.2', 20)]), usual, 20],
    ['not less than five seconds', answer(0, [a('192.0.2.1', 0)]), usual, 5],
    ['not more than an hour', answer(0, [a('192.0.2.1', 86_400)]), usual, 3600],
    ['not more than the Corefile allows', answer(0, [a('192.0.2.1', 60)]), cacheOf('cache 30'), 30],
    ['a denial: at most half an hour', answer(3, [], [soa(86_400)]), usual, 1800],
    ['a denial: its own bounds', answer(3, [], [soa(1)]), cacheOf('cache {\ndenial 2000 60 10\n}'), 10],
    ['a failure', answer(2, []), usual, 5],
    ['no failure', answer(2, []), cacheOf('cache {\nservfail 0\n}'), 0],
  ])('%s', (_, message, its, expected) => {
    expect(keepFor(message, answerKind(message), its)).toBe(expected);
  });
  test('a message without records', () => {
    expect(leastTtl(answer(0, []))).toBe(5);
  });
});

describe('cache: hits', () => {
  function start(lines: string, reply: Message) {
    const clock = new VirtualClock();
    const counts: string[] = [];
    const count = (what: string) => (): number => counts.push(what);
    const next: Handler = () => {
      counts.push('upstream');
      return Promise.resolve({ kind: 'reply', by: 'forward', message: reply });
    };
    const handle = cachePlugin(
      cacheOf(lines),
      clock,
      {
        request: () => undefined,
        hit: count('hit'),
        miss: () => undefined,
        evicted: count('evicted'),
        entries: () => undefined,
      },
      next,
    );
    const ttl = async (name = NAME): Promise<number> => {
      const result = await handle(request(name));
      if (result.kind !== 'reply') throw new Error('no reply');
      const [first] = answersOf(result.message);
      return first !== undefined && 'ttl' in first ? (first.ttl ?? 0) : 0;
    };
    return { clock, counts, ttl };
  }

  test('TTLs become less, and at their end the next question goes on', async () => {
    const { clock, counts, ttl } = start('cache 30', answer(0, [a('192.0.2.1', 600)]));
    expect(await ttl()).toBe(30);
    await clock.advance(10_500);
    expect(await ttl()).toBe(20);
    await clock.advance(19_500);
    expect(await ttl()).toBe(30);
    expect(counts).toEqual(['upstream', 'hit', 'upstream']);
  });
  test('keepttl: they stay', async () => {
    const { clock, ttl } = start('cache 30 {\nkeepttl\n}', answer(0, [a('192.0.2.1', 600)]));
    await ttl();
    await clock.advance(10_000);
    expect(await ttl()).toBe(30);
  });
  test('upper and lower case are one name', async () => {
    const { counts, ttl } = start('cache', answer(0, [a('192.0.2.1', 600)]));
    await ttl();
    await ttl(NAME.toUpperCase());
    expect(counts).toEqual(['upstream', 'hit']);
  });
  test('zones that are left out, and those that the cache is not for', async () => {
    for (const lines of ['cache {\ndisable success example.com\n}', 'cache example.org']) {
      const { counts, ttl } = start(lines, answer(0, [a('192.0.2.1', 600)]));
      await ttl();
      await ttl();
      expect(counts, lines).toEqual(['upstream', 'upstream']);
    }
  });
  test('the oldest gives way', () => {
    let evicted = 0;
    const store = new AnswerStore(new VirtualClock(), 2, () => evicted++);
    for (const key of ['one', 'two', 'three']) store.put(key, answer(0, [a('192.0.2.1')]), 60);
    expect([store.get('one'), store.size, evicted]).toEqual([undefined, 2, 1]);
    expect(store.get('three')?.left).toBe(60);
  });
});

describe('hosts', () => {
  const file = hostsTable([
    '# none',
    '192.0.2.1 One.example two.example. # and more',
    '192.0.2.9 one.example',
    'fd00::1 one.example',
    'nonsense one.example',
    '192.0.2.5 *.wild.example',
  ]);
  const of = (...lines: readonly string[]): HostsSettings => {
    const { hosts } = settings('hosts /etc/hosts {', ...lines, '}');
    if (hosts === undefined) throw new Error('no hosts');
    return hosts;
  };
  const records = (name: string, type: keyof typeof Type, its = of(), table = file) => {
    const found = hostsRecords(question(name, type), table, its);
    return Array.isArray(found) ? found.map(text) : found;
  };
  it.each([
    ['addresses', 'one.example', 'A', ['one.example 3600 A 192.0.2.1', 'one.example 3600 A 192.0.2.9']],
    ['IPv6', 'one.example', 'AAAA', ['one.example 3600 AAAA fd00::1']],
    ['a family that it has not', 'two.example', 'AAAA', []],
    ['another type', 'one.example', 'MX', []],
    [
      'a name',
      '1.2.0.192.in-addr.arpa',
      'PTR',
      ['1.2.0.192.in-addr.arpa 3600 PTR one.example', '1.2.0.192.in-addr.arpa 3600 PTR two.example'],
    ],
    ['no such address', '7.2.0.192.in-addr.arpa', 'PTR', 'next'],
    ['a wildcard', 'x.wild.example', 'A', ['x.wild.example 3600 A 192.0.2.5']],
    ['a wildcard is for one label', 'x.y.wild.example', 'A', undefined],
    ['no such name', 'three.example', 'A', undefined],
  ] as const)('%s', (_, name, type, expected) => {
    expect(records(name, type)).toEqual(expected);
  });
  test('options', () => {
    expect(records('three.example', 'A', of('fallthrough'))).toBe('next');
    expect(records('three.example', 'A', of('fallthrough other.example'))).toBeUndefined();
    expect(records('two.example', 'A', of('ttl 7'))).toEqual(['two.example 7 A 192.0.2.1']);
    expect(records('1.2.0.192.in-addr.arpa', 'PTR', of('no_reverse'))).toBe('next');
  });
  test('lines of the Corefile come before those of the file', () => {
    const merged = mergeHosts(hostsTable(['192.0.2.77 one.example']), file);
    expect(records('one.example', 'A', of(), merged)).toEqual(['one.example 3600 A 192.0.2.77']);
    expect(records('two.example', 'A', of(), merged)).toEqual(['two.example 3600 A 192.0.2.1']);
  });
});

describe('orders', () => {
  test('addresses change places, and nothing else', () => {
    const all = [alias(NAME, 'x.example'), ...[1, 2, 3].map((last) => a(`192.0.2.${last}`, 60, 'x.example'))];
    const message = answer(0, all);
    const shuffled = shuffleAddresses(message, () => 0);
    const data = (of: Message) => answersOf(of).map((record) => record.data);
    expect(data(message)).toEqual(['x.example', '192.0.2.1', '192.0.2.2', '192.0.2.3']);
    expect(data(shuffled)).toEqual(['x.example', '192.0.2.2', '192.0.2.3', '192.0.2.1']);
    expect(shuffleAddresses(answer(0, [a('192.0.2.1')]), () => 0).bytes).toEqual(answer(0, [a('192.0.2.1')]).bytes);
  });
  it.each([
    ['sequential', 4, ['a', 'b', 'c']],
    ['round_robin', 4, ['b', 'c', 'a']],
    ['random', 4, ['c', 'a', 'b']],
  ] as const)('upstreams: %s', (policy, turn, expected) => {
    expect(upstreamOrder(['a', 'b', 'c'], policy, turn, () => 0.9)).toEqual(expected);
  });
  it.each([
    ['www.example.com', true],
    ['example.com', true],
    ['in.example.com', false],
    ['x.in.example.com', false],
    ['example.org', false],
  ])('forward is for %s: %s', (name, expected) => {
    const [forward] = settings('forward example.com 192.0.2.1 {\nexcept in.example.com\n}').forwards;
    expect(forward && forwardMatches(forward, name)).toBe(expected);
  });
});

describe('log', () => {
  const logs = (lines: string): LogSettings => {
    const [first] = settings(lines).logs;
    if (first === undefined) throw new Error('no log');
    return first;
  };
  const line = (its: LogSettings, reply: Message): string | undefined =>
    logLine(its, { request: request(), reply, local: '10.0.0.1', durationMs: 1.5 });
  test('CoreDNS’s usual line', () => {
    const reply = answer(0, [a('192.0.2.1')]);
    expect(line(logs('log'), reply)).toBe(
      `10.0.0.9:999 - 7 "A IN ${NAME}. udp 33 false 512" NOERROR qr,ra ${reply.bytes.length} 0.001500000s`,
    );
  });
  it.each([
    ['log . "{proto} {name} {what}"', answer(0, [a('192.0.2.1')]), `udp ${NAME}. {what}`],
    ['log . "{rcode}" {\nclass denial\n}', answer(3, []), 'NXDOMAIN'],
    ['log . "{rcode}" {\nclass denial\n}', answer(0, []), 'NOERROR'],
    ['log . "{rcode}" {\nclass denial\n}', answer(2, []), undefined],
    ['log . "{rcode}" {\nclass error\n}', answer(2, []), 'SERVFAIL'],
    ['log . "{rcode}" {\nclass success\n}', answer(0, [a('192.0.2.1')]), 'NOERROR'],
    ['log example.org', answer(0, []), undefined],
  ])('%s', (lines, reply, expected) => {
    expect(line(logs(lines), reply)).toBe(expected);
  });
});

test('a loop is three times the question that only this server knows', async () => {
  const seen: string[] = [];
  const detector = loopDetector(
    '',
    () => 0.5,
    (words) => seen.push(words),
  );
  const handle = detector.plugin(() => Promise.resolve({ kind: 'failure', by: '', rcode: 2 }));
  await handle(request('other.example', 'HINFO'));
  for (const turn of [1, 2])
    expect([turn, (await handle(request(detector.name, 'HINFO'))).kind]).toEqual([turn, 'failure']);
  expect(seen).toEqual([]);
  await handle(request(detector.name, 'HINFO'));
  expect(seen).toEqual([`Loop (10.0.0.9:999) detected for zone ".": Query: "HINFO ${detector.name}."`]);
});

describe('addresses', () => {
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::1', '0000:0000:0000:0000:0000:0000:0000:0001'],
    ['FD00::A:0', 'fd00:0000:0000:0000:0000:0000:000a:0000'],
    ['::ffff:10.0.0.1', '0000:0000:0000:0000:0000:ffff:0a00:0001'],
    ['fd00::', 'fd00:0000:0000:0000:0000:0000:0000:0000'],
    ['10.0.0', undefined],
  ])('%s', (address, expected) => {
    expect(addressKey(address)).toBe(expected);
  });
  it.each([
    ['10.0.0.1', '10-0-0-1'],
    ['fd00::1', 'fd00--1'],
    ['fd00::', 'fd00--0'],
  ])('%s as a name', (address, name) => {
    expect(nameOfAddress(address)).toBe(name);
    expect(addressKey(addressOfPodName(name) ?? '')).toBe(addressKey(address));
  });
  test('the servers of a resolv.conf', () => {
    const lines = [
      '# nameserver 1.1.1.1',
      'nameserver 192.0.2.1',
      ' nameserver fe80::1%eth0',
      'nameserver x',
      'search a',
    ];
    expect(nameServersOf(lines.join('\n'))).toEqual(['192.0.2.1', 'fe80::1']);
  });
});
