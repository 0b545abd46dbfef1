import { expect, test } from 'vitest';
import { formatRecord } from '../../../lib/log.ts';

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
  const line = formatRecord(JSON.stringify({ level: 'info', time: '', name: 'a', msg: 'm', said: 'one\ntwo' }));
  expect(line.split('\n')).toHaveLength(2);
});
