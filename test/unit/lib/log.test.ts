import { expect, test } from 'vitest';
import { monotonicMs } from '../../../lib/clock.ts';
import { createLog, formatRecord } from '../../../lib/log.ts';

test('a record reads as one line: time, level, process, message, fields', () => {
  const record = {
    level: 'warn',
    time: '2026-01-02T03:04:05.678Z',
    name: 'agent',
    msg: 'cannot reach the runtime',
    endpoint: 'unix:///run/x.sock',
    tries: 3,
    why: 'no such file',
  };
  expect(formatRecord(JSON.stringify(record))).toBe(
    '03:04:05.678 warn  agent: cannot reach the runtime endpoint=unix:///run/x.sock tries=3 why="no such file"\n',
  );
});

test('a field with a newline cannot make a second line', () => {
  const line = formatRecord(JSON.stringify({ level: 'info', time: '', name: 'a', msg: 'm', output: 'one\ntwo' }));
  expect(line.split('\n')).toHaveLength(2);
});

interface Written {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A log whose file is `bytes`: full while `full()` says how much of it fits. */
function testLog() {
  let now = 0;
  let text = '';
  let room = Number.POSITIVE_INFINITY;
  let code = 'ENOSPC';
  const log = createLog('agent', {
    text: false,
    now: () => monotonicMs(now),
    write: (bytes) => {
      if (room === 0) throw Object.assign(new Error('no room'), { code });
      const written = Math.min(room, bytes.length);
      room -= written;
      text += bytes.toString('utf8', 0, written);
      return written;
    },
  });
  return {
    log,
    at: (ms: number) => {
      now = ms;
    },
    leave: (bytes: number, why = 'ENOSPC') => {
      room = bytes;
      code = why;
    },
    text: () => text,
    lines: (): Written[] => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Written])),
  };
}

test('no line is longer than 16 KiB, whatever is in its message and its fields', () => {
  const { log, text, lines } = testLog();
  const huge = 'y'.repeat(6_000_000);
  log('warn', huge, { error: huge, other: huge, list: [huge], small: 7 });
  log('info', 'fine', { list: ['a'], count: 1 });
  expect(text().length).toBeLessThan(32 * 1024);
  const [cut, whole] = lines();
  expect(JSON.stringify(cut).length).toBeLessThan(16 * 1024);
  expect(cut?.['error']).toMatch(/^y+… \(\d+ characters more\)$/);
  expect(whole).toMatchObject({ msg: 'fine', list: ['a'], count: 1 });
});

test('a warning that repeats comes less and less often, and says how often it was left out', () => {
  const { log, at, lines } = testLog();
  for (let ms = 0; ms < 60_000; ms += 100) {
    at(ms);
    log('warn', 'status not written', { pod: 'a/b', inMs: ms, error: 'too large' });
  }
  log('warn', 'status not written', { pod: 'a/c', error: 'too large' });
  log('info', 'done');
  log('info', 'done');
  const of = lines().filter(({ pod }) => pod === 'a/b');
  // At 0, 1, 3, 7, 15 and 31 seconds.
  expect(of.map(({ inMs }) => inMs)).toEqual([0, 1000, 3000, 7000, 15_000, 31_000]);
  expect(of.map(({ repeated }) => repeated)).toEqual([undefined, 9, 19, 39, 79, 159]);
  expect(lines().filter(({ pod }) => pod === 'a/c')).toHaveLength(1);
  expect(lines().filter(({ msg }) => msg === 'done')).toHaveLength(2);
});

test('what has not come for ten minutes counts as new', () => {
  const { log, at, lines } = testLog();
  for (const ms of [0, 1, 2, 700_000]) {
    at(ms);
    log('error', 'once more');
  }
  expect(lines().map(({ repeated }) => repeated)).toEqual([undefined, undefined]);
});

test('lines that a full disk does not take are dropped and counted; a torn one does not spoil the next', () => {
  const { log, leave, lines, text } = testLog();
  log('info', 'one');
  leave(20);
  log('info', 'two');
  log('info', 'three');
  leave(Number.POSITIVE_INFINITY);
  log('info', 'four');
  log('info', 'five');
  const written = text().split('\n');
  expect(written[1]).toHaveLength(20);
  const readable = written
    .filter((line, index) => index !== 1 && line !== '')
    .map((line) => JSON.parse(line) as Written);
  expect(readable).toMatchObject([
    { msg: 'one' },
    { level: 'warn', msg: 'lines of this log were lost', lines: 2, error: 'ENOSPC' },
    { msg: 'four' },
    { msg: 'five' },
  ]);
  expect(() => lines()).toThrow();
});

test('a pipe whose reader does not read, or is gone, does not block for long', () => {
  const { log, leave, lines } = testLog();
  for (const code of ['EAGAIN', 'EPIPE', 'EIO']) {
    leave(0, code);
    for (let line = 0; line < 1000; line++) log('info', 'into the void');
  }
  leave(Number.POSITIVE_INFINITY);
  log('info', 'heard');
  expect(lines()).toMatchObject([{ lines: 3000, error: 'EIO' }, { msg: 'heard' }]);
});
