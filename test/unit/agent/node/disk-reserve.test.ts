import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepDiskReserve, RESERVE_FILE, reserveAction } from '../../../../agent/node/disk-reserve.ts';
import { removeTree } from '../../../../lib/remove-tree.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const MB = 1024 * 1024;

test.for([
  // total, free, reserved (MB): what to do, and the size of the reserve
  ['a large disk with plenty', 100_000, 50_000, 0, 'take', 16],
  ['a large disk that is rather full', 100_000, 70, 0, 'keep', 16],
  ['a small disk gives less', 640, 300, 0, 'take', 10],
  ['it is there', 640, 300, 10, 'keep', 10],
  ['little is left', 640, 2, 10, 'keep', 10],
  ['nothing is left', 640, 0, 10, 'release', 10],
  ['nothing is left, and it is given back already', 640, 0, 0, 'keep', 10],
  ['its own room is not taken for plenty', 640, 10, 0, 'keep', 10],
  ['no disk to speak of', 0, 0, 0, 'keep', 0],
] as const)('%s', ([_what, total, free, reserved, kind, megabytes]) => {
  const state = { totalBytes: total * MB, freeBytes: free * MB, reservedBytes: reserved * MB };
  expect(reserveAction(state)).toEqual({ kind, bytes: megabytes * MB });
});

test('fallocate is a span with what came of it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-reserve-'));
  const clock = new VirtualClock();
  const tracer = new Tracer();
  const logs: string[] = [];
  const abort = new AbortController();
  const ended = new Promise<Span>((resolve) => {
    tracer.subscribe((span) => {
      abort.abort();
      resolve(span);
    });
  });
  const exec = async () => ({ code: 1, signal: null, timedOut: false, stdout: '', stderr: 'fallocate: no room' });
  const log = (_level: string, message: string): void => void logs.push(message);
  const keeping = keepDiskReserve({ directory, clock, exec, tracer, log }, abort.signal);
  await clock.advance(5_000);
  expect(await ended).toMatchObject({
    kind: 'disk',
    name: 'fallocate',
    outcome: 'error',
    error: 'fallocate: no room',
    attributes: { args: ['--length', expect.any(String), join(directory, RESERVE_FILE)], exitCode: 1 },
  });
  await keeping;
  expect(logs).toMatchObject([expect.stringContaining('cannot reserve disk space')]);
  await removeTree(directory);
});
