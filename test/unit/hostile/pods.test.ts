// What the hostile run counts as lost is really seen: a campaign that cannot fail proves nothing.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { damaged, dataPod, extraFiles, type HostData, KIND_COUNT, makeHostData } from '../../hostile/node/pods.ts';
import { seededRandom } from '../../hostile/random.ts';

let directory: string;
let data: HostData;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-hostile-pods-'));
  data = await makeHostData(join(directory, 'data'), seededRandom(1));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('untouched files are whole', async () => {
  expect(await damaged(data)).toEqual([]);
  expect(await extraFiles(data)).toEqual([]);
});

test('a changed file, a file that is gone, a directory that is gone and a file too many are seen', async () => {
  await writeFile(join(data.directory, 'one.bin'), 'other bytes');
  await rm(join(data.directory, 'two.bin'));
  await rm(join(data.directory, 'nested'), { recursive: true });
  await writeFile(join(data.directory, 'foreign'), '');
  expect(await damaged(data)).toEqual([
    `${data.directory}/one.bin has changed`,
    `${data.directory}/two.bin is gone`,
    `${data.directory}/nested/three.bin is gone`,
    `${data.directory}/nested/deeper/four.bin is gone`,
  ]);
  expect(await extraFiles(data)).toEqual([`${data.directory}/foreign`]);
});

test('every kind of volume has data that is checked afterwards', async () => {
  const kinds = new Set<string>();
  for (let index = 0; index < KIND_COUNT; index++) {
    const pod = await dataPod(index, join(directory, 'pods'), 'n1', seededRandom(index));
    kinds.add(pod.kind);
    expect(
      [pod.host, pod.own, pod.files].filter((each) => each !== undefined),
      pod.kind,
    ).toHaveLength(1);
  }
  expect(kinds.size).toBe(KIND_COUNT);
});
