import { expect, test } from 'vitest';
import { reserveAction } from '../../../../agent/node/disk-reserve.ts';

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
