import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  expectedMs,
  mergeDurations,
  parseDurations,
  readDurations,
  slowestLines,
  USUAL_SECONDS,
  writeDurations,
} from '../../../scripts/test-durations.ts';

describe('the durations of test files', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-durations-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('are read as they were written, and are none where there is no file or no JSON', async () => {
    const path = join(directory, 'new', 'durations.json');
    const durations = new Map([
      ['test/b.test.ts', 20],
      ['test/a.test.ts', 1],
    ]);
    await writeDurations(path, durations);
    expect(await readDurations(path)).toEqual(durations);
    expect(Object.keys(JSON.parse(await readFile(path, 'utf8')))).toEqual(['test/a.test.ts', 'test/b.test.ts']);
    expect(await readDurations(join(directory, 'none.json'))).toEqual(new Map());
    await writeFile(path, '{"test/a');
    expect(await readDurations(path)).toEqual(new Map());
  });

  it.each([
    ['a file', '{"a": 5, "b": "5", "c": null}', [['a', 5]]],
    ['what is no object', '5', []],
    ['null', 'null', []],
  ])('of %s are its numbers', (_, text, expected) => expect([...parseDurations(text)]).toEqual(expected));

  it('of a run take the place of those before; files that are gone are forgotten', () => {
    const before = new Map([
      ['run', 1],
      ['other', 2],
      ['gone', 3],
    ]);
    const merged = mergeDurations(before, new Map([['run', 10]]), (file) => file !== 'gone');
    expect([...merged]).toEqual([
      ['run', 10],
      ['other', 2],
    ]);
  });

  it('are shown for the slowest files, the slowest first', () => {
    const durations = new Map([
      ['a', 900],
      ['b', 61_250],
      ['c', 5_000],
    ]);
    expect(slowestLines(durations, 2)).toEqual(['    61.3 s  b', '     5.0 s  c']);
  });

  it.each([...USUAL_SECONDS.keys()])('are usual ones of a file that is there: %s', (file) => {
    expect(existsSync(file)).toBe(true);
  });

  it('are what was measured, else the usual one of this file, else a guess', () => {
    const file = 'test/e2e/lab/lab.test.ts';
    expect(expectedMs(file, new Map([[file, 7]]))).toBe(7);
    expect(expectedMs(file, new Map())).toBeGreaterThan(expectedMs('test/unit/unknown.test.ts', new Map()));
  });

  it('of an end-to-end test of which nothing is known are guessed as long: it must not be alone at the end', () => {
    const [unknown, known] = ['test/e2e/new/new.test.ts', 'test/e2e/apiserver/server.test.ts'];
    expect(expectedMs(unknown, new Map())).toBeGreaterThan(expectedMs(known, new Map()));
    expect(expectedMs(unknown, new Map([[unknown, 3]]))).toBe(3);
  });
});
