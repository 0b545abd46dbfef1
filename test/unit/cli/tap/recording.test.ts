// The format: what a recorder writes is read back, and what is damaged, lost or missing is reported and left out.

import { expect, test } from 'vitest';
import { printRecord } from '../../../../cli/tap/format.ts';
import { Recorder } from '../../../../cli/tap/recorder.ts';
import { HEAD, METHODS, readLines, recordingLines, requestBytes } from './messages.ts';
import { message } from './support.ts';

class Stand {
  readonly lines: string[] = [];
  time = 0;
  readonly recorder: Recorder;
  constructor(redact = false) {
    this.recorder = new Recorder({
      start: '2026-01-02T03:04:05.000Z',
      to: '/run/x.sock',
      redact,
      at: () => this.time,
      write: (line) => this.lines.push(line),
    });
  }
}

const OK = { kind: 'status', status: 0, message: '', trailers: [] } as const;

test('a call is one line, and comes back as it was', () => {
  const stand = new Stand();
  stand.time = 12.3456;
  const call = stand.recorder.begin(3, '/a.B/C', [['user-agent', 'x']]);
  call.request(message('question').subarray(0, 4));
  call.request(message('question').subarray(4));
  call.requestEnd();
  stand.time = 20;
  call.headers([['h', '1']]);
  call.response(message('answer'));
  call.end({ kind: 'status', status: 5, message: 'no', trailers: [['t', '2']] });
  stand.recorder.finish();
  expect(stand.lines).toHaveLength(3);
  const { calls, info } = readLines(stand.lines);
  expect(calls).toEqual([
    {
      id: 1,
      connection: 3,
      method: '/a.B/C',
      begin: 12.346,
      metadata: [['user-agent', 'x']],
      headers: [['h', '1']],
      requests: [{ at: 12.346, bytes: Buffer.from('question') }],
      responses: [{ at: 20, bytes: Buffer.from('answer') }],
      end: { at: 20, status: 5, message: 'no', trailers: [['t', '2']] },
    },
  ]);
  expect(info).toEqual({
    start: Date.parse('2026-01-02T03:04:05Z'),
    to: '/run/x.sock',
    redacted: false,
    durationMs: 20,
    problems: [],
  });
});

test('a stream is written in parts while it is open', () => {
  const stand = new Stand();
  const call = stand.recorder.begin(1, '/a.B/Events', []);
  call.response(message('one'));
  stand.recorder.flush();
  stand.recorder.flush();
  expect(stand.lines).toHaveLength(2);
  stand.time = 5;
  call.response(message('two'));
  call.end({ kind: 'reset', by: 'client', code: 8 });
  stand.recorder.flush();
  const { calls, info } = readLines(stand.lines);
  expect(calls[0]?.responses).toEqual([
    { at: 0, bytes: Buffer.from('one') },
    { at: 5, bytes: Buffer.from('two') },
  ]);
  expect(calls[0]?.end).toEqual({ at: 5, reset: 'client', code: 8 });
  expect(info.problems).toEqual(['the recording goes on, or its tap was killed: there is no last line']);
});

test('a large call is written in parts before it ends: little of it is held', () => {
  const stand = new Stand();
  const call = stand.recorder.begin(1, '/a.B/C', []);
  const body = message('x'.repeat(1024 * 1024));
  for (let at = 0; at < body.length; at += 16_384) call.response(body.subarray(at, at + 16_384));
  expect(stand.lines.length).toBeGreaterThan(4);
  call.end(OK);
  expect(Math.max(...stand.lines.map((line) => line.length))).toBeLessThan(300_000);
  expect(readLines(stand.lines).calls[0]?.responses[0]?.bytes.length).toBe(1024 * 1024);
});

test('registry credentials are masked with --redact, whatever else is in the request', () => {
  const request = {
    image: { image: 'x/y:1' },
    auth: { username: 'me', password: 'hunter2', auth: 'bWU6', registry_token: 'tok' },
  };
  const bytes = requestBytes('PullImage', request);
  const unknown = Buffer.from([0xfa, 0x07, 2, 1, 2]);
  const stand = new Stand(true);
  const call = stand.recorder.begin(1, METHODS.PullImage.path, [
    ['authorization', 'Bearer hunter2'],
    ['a', 'b'],
  ]);
  const body = message('');
  body.writeUInt32BE(bytes.length + unknown.length, 1);
  call.request(Buffer.concat([body, bytes, unknown]));
  stand.recorder.flush();
  call.end(OK);
  const { calls } = readLines(stand.lines);
  const [seen] = calls[0]?.requests ?? [];
  expect(METHODS.PullImage.requestDeserialize(seen?.bytes ?? Buffer.alloc(0))).toMatchObject({
    image: { image: 'x/y:1' },
    auth: { username: '<redacted>', password: '<redacted>', auth: '<redacted>', registry_token: '<redacted>' },
  });
  expect(seen?.bytes.subarray(-5)).toEqual(unknown);
  expect(calls[0]?.metadata).toEqual([
    ['authorization', '<redacted>'],
    ['a', 'b'],
  ]);
  expect(stand.lines.join('')).not.toContain(Buffer.from('hunter2').toString('base64').slice(0, 8));
});

test('a request that cannot be masked is left out', () => {
  const stand = new Stand(true);
  for (const body of [
    Buffer.from('garbage'),
    Buffer.concat([message('\u0007'), Buffer.from([1, 2])]),
    message('x'.repeat(2_000_000)),
  ]) {
    const call = stand.recorder.begin(1, METHODS.PullImage.path, []);
    call.request(body);
    call.end(OK);
  }
  expect(readLines(stand.lines).calls.map(({ requests }) => requests.length)).toEqual([0, 0, 0]);
});

const CALLS = recordingLines([
  { method: 'Version', at: 1, response: { version: '1' } },
  { method: 'Version', at: 2, response: { version: '2' } },
]);

test.each([
  {
    name: 'a last line that is cut off',
    lines: [...CALLS.slice(0, 2), CALLS[2]?.slice(0, 40) ?? ''],
    calls: 1,
    problem: 'line 3 is cut off',
  },
  {
    name: 'a torn line in the middle',
    lines: [CALLS[0] ?? '', '{"record":"ca', '', ...CALLS.slice(1)],
    calls: 2,
    problem: 'line 2 is cut off',
  },
  {
    name: 'a line of another kind',
    lines: [HEAD, '{"record":"music"}', ...CALLS.slice(1)],
    calls: 2,
    problem: 'unknown kind "music"',
  },
  {
    name: 'a line with wrong fields',
    lines: [HEAD, '{"record":"call","call":"x","at":1}', ...CALLS.slice(1)],
    calls: 2,
    problem: 'is no "call" record',
  },
  {
    name: 'the rest of a call',
    lines: [HEAD, '{"record":"more","call":9,"at":1}', ...CALLS.slice(1)],
    calls: 2,
    problem: 'call 9, whose beginning is missing',
  },
  {
    name: 'a loss',
    lines: [HEAD, printRecord({ record: 'lost', at: 1500, lines: 7, bytes: 900, why: 'ENOSPC' }), ...CALLS.slice(1)],
    calls: 2,
    problem: '7 lines (900 bytes) were lost before 1.500 s: ENOSPC',
  },
  {
    name: 'an unreadable connection',
    lines: [HEAD, printRecord({ record: 'unreadable', at: 1, connection: 4, why: 'x' }), ...CALLS.slice(1)],
    calls: 2,
    problem: 'connection 4 was not recorded after 0.001 s: x',
  },
])('$name is reported, and the rest is read', ({ lines, calls, problem }) => {
  const found = readLines(lines);
  expect(found.calls).toHaveLength(calls);
  expect(found.info.problems).toContainEqual(expect.stringContaining(problem));
});

test.each([
  ['nothing', []],
  ['another file', ['hello']],
  ['a recording without its first line', CALLS.slice(1)],
  ['a later format', [HEAD.replace('"version":1', '"version":2')]],
])('%s is no recording', (_, lines) => {
  expect(() => readLines(lines)).toThrow(/recording/);
});

test('a call without an end was open when the recording ended', () => {
  const { calls } = readLines(recordingLines([{ method: 'Version', at: 1, end: 'open' }]));
  expect(calls[0]?.end).toBeUndefined();
});
