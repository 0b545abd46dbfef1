// A tree is given to a group while another process exchanges its names: nothing outside it changes.

import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { changeGroup } from '../../../lib/change-group.ts';

/** Puts a file, a link to `outside`, a directory and a link to `folder` in the place of one name, in turns, until it is stopped. */
const EXCHANGER = `
  const { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
  const { workerData } = require('node:worker_threads');
  const { root, place, outside, folder, counter } = workerData;
  const counts = new Int32Array(counter);
  const makes = [
    (path) => writeFileSync(path, '', { mode: 0o600 }),
    (path) => symlinkSync(outside, path),
    (path) => { mkdirSync(path); writeFileSync(path + '/secret', ''); },
    (path) => symlinkSync(folder, path),
  ];
  for (let turn = 0; Atomics.load(counts, 1) === 0; turn++) {
    makes[turn % makes.length](root + '/next');
    rmSync(place, { recursive: true, force: true });
    renameSync(root + '/next', place);
    Atomics.add(counts, 0, 1);
  }
`;

test('a link that is put in the place of a file or directory meanwhile is not followed', async () => {
  const root = mkdtempSync(join(tmpdir(), 'nodelet-change-group-'));
  const counter = new SharedArrayBuffer(8);
  const counts = new Int32Array(counter);
  const [tree, outside, folder] = [join(root, 'tree'), join(root, 'outside'), join(root, 'folder')];
  mkdirSync(tree);
  mkdirSync(folder);
  const secrets = [outside, join(folder, 'secret')];
  for (const path of secrets) writeFileSync(path, '');
  for (const path of secrets) chmodSync(path, 0o600);
  chmodSync(folder, 0o700);
  symlinkSync(outside, join(tree, 'link'));
  const workerData = { root, place: join(tree, 'place'), outside, folder, counter };
  const worker = new Worker(EXCHANGER, { eval: true, workerData });
  const ended = new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));
  try {
    while (Atomics.load(counts, 0) < 1_000) await changeGroup(tree, 1234);
  } finally {
    Atomics.store(counts, 1, 1);
    await ended;
  }
  const modes = (paths: readonly string[]) => paths.map((path) => [lstatSync(path).mode & 0o7777, lstatSync(path).gid]);
  const gid = process.getgid?.() ?? 0;
  try {
    expect(modes(secrets)).toEqual([
      [0o600, gid],
      [0o600, gid],
    ]);
    expect(modes([folder])).toEqual([[0o700, gid]]);
    expect(modes([tree])).toEqual([[0o2775, 1234]]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
