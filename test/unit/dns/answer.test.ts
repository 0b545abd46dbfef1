// From the bytes of a question to those of an answer: the server block of a name, what no plugin sees, and a plugin that throws.

import { describe, expect, it, test } from 'vitest';
import type { CountedAnswer } from '../../../dns/metrics.ts';
import type { Handler } from '../../../dns/plugins/plugin.ts';
import { Answerer, type Chain } from '../../../dns/server/answer.ts';
import { parseMessage, Type } from '../../../dns/wire/message.ts';
import { answersOf, makeMessage, makeQuery, questionBytes } from '../../../dns/wire/records.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { text } from './cases.ts';

const CLIENT = { transport: 'udp', address: '10.0.0.9', port: 999 } as const;

/** Answers with this address. */
const says =
  (data: string): Handler =>
  ({ message, question }) => {
    const answers = [{ type: 'A' as const, name: question.writtenName, ttl: 1, data }];
    const made = { rcode: 0, authoritative: true, answers, authorities: [], additionals: [] };
    return Promise.resolve({ kind: 'reply', by: 'test', message: makeMessage(questionBytes(message), made) });
  };
const fails: Handler = () => Promise.resolve({ kind: 'failure', by: 'test', rcode: 2, error: 'no way' });

function answerer(chains: Readonly<Record<string, Handler>>) {
  const lines: string[] = [];
  const counted: CountedAnswer[] = [];
  let panics = 0;
  const chain = (handle: Handler): Chain => ({ handle, errors: true, logs: [] });
  const made = new Answerer({
    server: 'dns://10.0.0.1:53',
    local: '10.0.0.1',
    chains: new Map(Object.entries(chains).map(([zone, handle]) => [zone, chain(handle)])),
    clock: new VirtualClock(),
    log: (_, line) => lines.push(line),
    counts: { answered: (answer) => counted.push(answer), panicked: () => panics++ },
  });
  const ask = async (name: string): Promise<string> => {
    const bytes = await made.answer(makeQuery(7, name, Type.A), CLIENT);
    if (bytes === undefined) return 'none';
    const reply = parseMessage(bytes);
    return [reply.rcode, ...answersOf(reply).map(text)].join(' ');
  };
  return { made, ask, lines, counted, panics: () => panics };
}

describe('the server block', () => {
  const { ask } = answerer({ 'example.com': says('192.0.2.1'), 'in.example.com': says('192.0.2.2') });
  it.each([
    ['www.example.com', '0 www.example.com 1 A 192.0.2.1'],
    ['example.com', '0 example.com 1 A 192.0.2.1'],
    ['x.in.example.com', '0 x.in.example.com 1 A 192.0.2.2'],
    ['WWW.In.Example.Com', '0 WWW.In.Example.Com 1 A 192.0.2.2'],
    ['notexample.com', '5'],
  ])('of %s', async (name, expected) => {
    expect(await ask(name)).toBe(expected);
  });
});

test('what is counted, and what is logged', async () => {
  const { ask, lines, counted } = answerer({ 'example.com': fails });
  expect(await ask('www.example.com')).toBe('2');
  expect(await ask('example.org')).toBe('5');
  expect(lines).toEqual(['plugin/errors: SERVFAIL www.example.com. A: no way']);
  expect(counted.map(({ zone, rcode, plugin }) => [zone, rcode, plugin])).toEqual([
    ['example.com', 2, 'test'],
    [undefined, 5, ''],
  ]);
});

test('a plugin that throws is SERVFAIL for that question, and counted', async () => {
  const { ask, lines, panics } = answerer({
    '': () => Promise.reject(new Error('broken')),
    good: says('192.0.2.2'),
  });
  expect(await ask('bad.example')).toBe('2');
  expect(lines.join('\n')).toContain('bad.example. A: Error: broken');
  expect(await ask('x.good')).toBe('0 x.good 1 A 192.0.2.2');
  expect(panics()).toBe(1);
});

test('questions of plugins end somewhere', async () => {
  const { made } = answerer({ '': (request) => made.resolve({ ...request, depth: request.depth + 1 }) });
  const bytes = await made.answer(makeQuery(7, 'round.example', Type.A), CLIENT);
  expect(parseMessage(bytes ?? Buffer.alloc(0)).rcode).toBe(2);
});
