import { describe, expect, test } from 'vitest';
import {
  fixedTimestamp,
  lastLogText,
  parseCriLogLine,
  timestampNanos,
} from '../../../../../agent/runtime/logs/cri-log.ts';
import { LogFormatter } from '../../../../../agent/runtime/logs/log-formatter.ts';
import { epochMs } from '../../../../../lib/clock.ts';

const T = '2024-01-02T03:04:05.000000006Z';

describe('a CRI log line', () => {
  test.each([
    ['a whole line', `${T} stdout F hello world\n`, { stream: 'stdout', partial: false, content: 'hello world\n' }],
    [
      'a part, whose line feed is the log’s own',
      `${T} stderr P hel\n`,
      { stream: 'stderr', partial: true, content: 'hel' },
    ],
    ['with more tags', `${T} stdout P:x:y part\n`, { stream: 'stdout', partial: true, content: 'part' }],
    ['an empty line', `${T} stdout F \n`, { stream: 'stdout', partial: false, content: '\n' }],
    ['an empty line without the blank', `${T} stdout F\n`, { stream: 'stdout', partial: false, content: '\n' }],
    ['blanks are content', `${T} stdout F   x \n`, { stream: 'stdout', partial: false, content: '  x \n' }],
    ['cut off before its line feed', `${T} stdout F half`, { stream: 'stdout', partial: false, content: 'half' }],
  ])('%s', (_what, text, expected) => {
    const line = parseCriLogLine(Buffer.from(text));
    expect({ ...line, content: line?.content.toString() }).toEqual({ timestamp: T, ...expected });
  });

  test.each([
    ['', 'nothing'],
    ['hello\n', 'no fields'],
    [`${T} stdin F x\n`, 'another stream'],
    [`${T} stdout X x\n`, 'another tag'],
    ['yesterday stdout F x\n', 'no time'],
  ])('%j is none: %s', (text) => {
    expect(parseCriLogLine(Buffer.from(text))).toBeUndefined();
  });
});

test.each([
  ['2024-01-02T03:04:05Z', '2024-01-02T03:04:05.000000000Z'],
  ['2024-01-02T03:04:05.12Z', '2024-01-02T03:04:05.120000000Z'],
  ['2024-01-02T03:04:05.123456789+02:00', '2024-01-02T03:04:05.123456789+02:00'],
  ['2024-01-02T03:04:05-01:30', '2024-01-02T03:04:05.000000000-01:30'],
])('%s is shown as %s', (timestamp, shown) => {
  expect(fixedTimestamp(timestamp)).toBe(shown);
});

test('times are exact to the nanosecond, in any zone', () => {
  expect(timestampNanos('1970-01-01T00:00:01.000000002Z')).toBe(1_000_000_002n);
  expect(timestampNanos('1970-01-01T01:00:01.5+01:00')).toBe(1_500_000_000n);
  expect(timestampNanos('soon')).toBeUndefined();
});

describe('the end of a log as text', () => {
  const log = Buffer.from(`${T} stdout F one\n${T} stderr P tw\n${T} stderr F o\ngarbage\n${T} stdout F three\n`);
  test.each([
    [80, 2048, 'one\ntwo\nthree\n'],
    [1, 2048, 'three\n'],
    [80, 4, 'ree\n'],
    [0, 2048, ''],
  ])('at most %i lines and %i bytes', (lines, bytes, expected) => {
    expect(lastLogText(log, lines, bytes)).toBe(expected);
  });
});

describe('formatting', () => {
  const line = (second: number, rest: string) => `2024-01-02T03:04:0${second}Z ${rest}\n`;
  const LOG = line(1, 'stdout F one') + line(2, 'stderr P tw') + line(3, 'stdout F mid') + line(4, 'stderr F o');

  const format = (options: Partial<ConstructorParameters<typeof LogFormatter>[0]>, size = 7): string => {
    const formatter = new LogFormatter({ timestamps: false, ...options });
    const out: Buffer[] = [];
    const log = Buffer.from(LOG);
    for (let at = 0; at < log.length; at += size) out.push(formatter.push(log.subarray(at, at + size)));
    return Buffer.concat([...out, formatter.end()]).toString();
  };

  test('gives the content, however the file is cut into pieces', () => {
    for (const size of [1, 7, 1000]) expect(format({}, size)).toBe('one\ntwmid\no\n');
  });

  test('one stream alone is whole again', () => {
    expect(format({ stream: 'stderr' })).toBe('two\n');
  });

  test('each line is dated once, by its first part', () => {
    expect(format({ stream: 'stderr', timestamps: true })).toBe('2024-01-02T03:04:02.000000000Z two\n');
  });

  test('sinceTime leaves out what is older, and keeps what is of that very time', () => {
    expect(format({ sinceTime: epochMs(Date.parse('2024-01-02T03:04:03Z')) })).toBe('mid\no\n');
  });

  test('limitBytes cuts anywhere, and then nothing more comes', () => {
    expect(format({ limitBytes: 5 })).toBe('one\nt');
    const formatter = new LogFormatter({ timestamps: false, limitBytes: 2 });
    formatter.push(Buffer.from(LOG));
    expect(formatter.full).toBe(true);
  });
});
