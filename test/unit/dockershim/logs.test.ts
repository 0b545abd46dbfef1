import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LogFile, newestRotated, tailOf } from '../../../dockershim/logs/log-file.ts';
import {
  criLine,
  FrameSplitter,
  type LogMessage,
  MAX_MESSAGE,
  parseCriLine,
  TerminalSplitter,
} from '../../../dockershim/logs/messages.ts';
import { ResumePoint, sinceOf } from '../../../dockershim/logs/resume.ts';

const timeOf = (second: number, nanos = 0): string =>
  `2026-01-01T00:00:${String(second).padStart(2, '0')}.${String(nanos).padStart(9, '0')}Z`;
const secondOf = (time: string): number => Number(time.slice(17, 19));

function message(text: string, second: number, more: Partial<LogMessage> = {}): LogMessage {
  return { stream: 'stdout', time: timeOf(second), data: Buffer.from(text), partial: false, ...more };
}

function frame(stream: number, text: string): Buffer {
  const payload = Buffer.from(`${timeOf(1)} ${text}`);
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

function inPieces(splitter: FrameSplitter | TerminalSplitter, bytes: Buffer, size: number): LogMessage[] {
  const found: LogMessage[] = [];
  for (let at = 0; at < bytes.length; at += size) found.push(...splitter.push(bytes.subarray(at, at + size)));
  return [...found, ...splitter.end()];
}

describe.each([1, 7, 100_000])('in pieces of %d bytes', (size) => {
  test('frames become lines of CRI’s log', () => {
    const long = 'x'.repeat(MAX_MESSAGE);
    const bytes = Buffer.concat([
      frame(1, 'out\n'),
      frame(2, '\n'),
      frame(1, long),
      frame(1, 'rest\n'),
      frame(2, 'no end'),
    ]);
    const lines = inPieces(new FrameSplitter(), bytes, size).map((each) => criLine(each).toString());
    expect(lines).toEqual([
      `${timeOf(1)} stdout F out\n`,
      `${timeOf(1)} stderr F \n`,
      `${timeOf(1)} stdout P ${long}\n`,
      `${timeOf(1)} stdout F rest\n`,
      `${timeOf(1)} stderr F no end\n`,
    ]);
  });
  test('a terminal’s output as well, without frames', () => {
    const long = 'x'.repeat(MAX_MESSAGE);
    const bytes = Buffer.from(`${timeOf(1)} a\r\n${timeOf(2)} ${long}${timeOf(2)} rest\n${timeOf(3)} end`);
    const lines = inPieces(new TerminalSplitter(), bytes, size).map((each) => criLine(each).toString());
    expect(lines).toEqual([
      `${timeOf(1)} stdout F a\r\n`,
      `${timeOf(2)} stdout P ${long}\n`,
      `${timeOf(2)} stdout F rest\n`,
      `${timeOf(3)} stdout F end\n`,
    ]);
  });
});

test('what does not begin with a time is no message', () => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(5, 4);
  expect(() => new FrameSplitter().push(Buffer.concat([head, Buffer.from('hello')]))).toThrow('no time');
});

test('a line is read back as it was written', () => {
  const written = message('a b  c', 5, { stream: 'stderr', partial: true });
  expect(parseCriLine(criLine(written).subarray(0, -1))).toEqual(written);
  expect(parseCriLine(Buffer.from('nonsense'))).toBeUndefined();
});

describe('where to go on', () => {
  const resumed = (tail: readonly LogMessage[], docker: readonly LogMessage[]): string[] => {
    const point = new ResumePoint(tail, secondOf);
    const sent = docker.filter(({ time }) => point.since === undefined || time >= point.since);
    return [...sent.flatMap((each) => point.take(each)), ...point.end()].map(({ data }) => data.toString());
  };
  const [a, b, c, d] = [message('a', 1), message('b', 2), message('c', 3), message('d', 4)];
  test.each<[string, LogMessage[], LogMessage[], string[]]>([
    ['an empty log: everything', [], [a, b], ['a', 'b']],
    ['behind the last', [a, b], [a, b, c, d], ['c', 'd']],
    ['nothing new', [a, b], [a, b], []],
    ['times that do not ascend', [b, a], [b, a, c], ['c']],
    ['one of two that are the same', [a, a], [a, a, a, b], ['a', 'b']],
    ['both', [a, a, a], [a, a, a, b], ['b']],
    ['Docker has no longer what was written', [a], [message('x', 9), message('y', 10)], ['x', 'y']],
    ['nor anything but a little that is new', [a], [message('x', 2)], ['x']],
    ['the same time, another stream', [a], [a, { ...a, stream: 'stderr' }], ['a']],
  ])('%s', (_name, tail, docker, expected) => {
    expect(resumed(tail, docker)).toEqual(expected);
  });
  test('every way of being cut off loses and doubles nothing', () => {
    const all = Array.from({ length: 40 }, (_, index) =>
      message(`${index % 7}`, 10 + (index % 3), { stream: index % 2 === 0 ? 'stdout' : 'stderr' }),
    );
    for (let cut = 0; cut <= all.length; cut++) {
      const written = all.slice(0, cut).map(({ data }) => data.toString());
      expect([...written, ...resumed(all.slice(0, cut), all)]).toEqual(all.map(({ data }) => data.toString()));
    }
  });
  test('Docker’s since has nanoseconds', () => {
    expect(sinceOf(timeOf(5, 42), 1_767_225_605)).toBe('1767225605.000000042');
  });
});

describe('the file', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-shim-logs-'));
  });
  afterAll(() => rm(directory, { recursive: true }));
  const texts = (messages: readonly LogMessage[]): string[] => messages.map(({ data }) => data.toString());

  test('a line that a crash cut off is removed, and written again', async () => {
    const path = join(directory, 'cut.log');
    await writeFile(path, Buffer.concat([criLine(message('whole', 1)), criLine(message('cut', 2)).subarray(0, 40)]));
    const file = new LogFile(path);
    expect(texts(await file.tail())).toEqual(['whole']);
    await file.append(criLine(message('next', 3)));
    await file.close();
    expect(await readFile(path, 'utf8')).toBe(`${criLine(message('whole', 1))}${criLine(message('next', 3))}`);
  });
  test('after a rotation it goes on behind what was moved away', async () => {
    const path = join(directory, 'r.log');
    const file = new LogFile(path);
    await file.append(criLine(message('old', 1)));
    await rename(path, `${path}.20260101-000000`);
    await file.append(criLine(message('late', 2)));
    await file.reopen();
    const restarted = new LogFile(path);
    expect(texts(await restarted.tail())).toEqual(['old', 'late']);
    await restarted.close();
    await file.append(criLine(message('new', 3)));
    await file.close();
    expect(await readFile(path, 'utf8')).toBe(criLine(message('new', 3)).toString());
  });
  test.each([
    [['0.log', '0.log.20260101-000000', '0.log.20260102-000000', '0.log.20260103-000000.gz'], '0.log.20260102-000000'],
    [['0.log', '10.log.20260101-000000'], undefined],
  ])('of %j the newest that is not compressed', (names, expected) => {
    expect(newestRotated(names, '0.log')).toBe(expected);
  });
  test('of a long log only the end is read, from a whole line on', () => {
    const bytes = Buffer.concat([Buffer.from('of a line\n'), criLine(message('x', 1)), Buffer.from('begun')]);
    const tail = tailOf(bytes, false, 1000);
    expect(texts(tail.messages)).toEqual(['x']);
    expect(tail.wholeBytes).toBe(995);
  });
});
