// The disk of a node is full, to the last byte, while pods come and go: no process dies, pods can be deleted, the reasons are
// reported, and everything recovers once there is room.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { SmallDiskLab } from '../../hostile/disks/full-disk.ts';

let small: SmallDiskLab;

beforeAll(async () => {
  small = await SmallDiskLab.start();
});
afterAll(() => small?.stop());

test('a full disk costs no process, no data and no deletion, and all mends itself when there is room again', async () => {
  const lines: string[] = [];
  const result = await small.round((line) => lines.push(line));
  const wrong = [...result.crashed, ...result.lost];
  expect(wrong, wrong.length === 0 ? '' : `${lines.join('\n')}\n${await small.logs()}`).toEqual([]);
  expect(result.refused).toBeGreaterThan(0);
}, 1_800_000);
