import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PodSnapshot, PodUID } from '../../../../../agent/ports/runtime.ts';
import { containerId, sandboxId, shallowContainer } from '../../../../../agent/runtime/convert.ts';
import { LogRotation, planRotation, rotationSuffix } from '../../../../../agent/runtime/logs/rotation.ts';
import { epochMs, systemClock } from '../../../../../lib/clock.ts';

describe('what is done before a log is rotated', () => {
  const at = (second: number): string => `0.log.20240102-00000${second}`;
  test.each<[string, string[], number, { remove: string[]; compress: string[] }]>([
    ['nothing for a log never rotated', ['0.log'], 5, { remove: [], compress: [] }],
    ['the last one is compressed', ['0.log', at(1)], 5, { remove: [], compress: [at(1)] }],
    [
      'the oldest make room for the next',
      ['0.log', `${at(1)}.gz`, `${at(2)}.gz`, `${at(3)}.gz`, at(4)],
      5,
      { remove: [`${at(1)}.gz`], compress: [at(4)] },
    ],
    ['with two files only the current one is kept', ['0.log', at(1)], 2, { remove: [at(1)], compress: [] }],
    [
      'half-written ones are removed',
      ['0.log', at(1), `${at(1)}.gz.tmp`],
      5,
      { remove: [`${at(1)}.gz.tmp`], compress: [at(1)] },
    ],
    ['so are originals of compressed ones', ['0.log', at(1), `${at(1)}.gz`], 5, { remove: [at(1)], compress: [] }],
    ['other logs are left alone', ['0.log', '1.log', '10.log.20240102-000000'], 2, { remove: [], compress: [] }],
  ])('%s', (_rule, files, maxFiles, expected) => {
    expect(planRotation('0.log', files, maxFiles)).toEqual(expected);
  });

  test('suffixes sort by time', () => {
    expect(rotationSuffix(epochMs(Date.UTC(2024, 0, 2, 3, 4, 5, 6)))).toBe('20240102-030405');
  });
});

describe('rotation', () => {
  let root: string;
  let now: number;
  let reopened: string[];
  let refuse: boolean;
  let rotation: LogRotation;
  const directory = (): string => join(root, 'main');
  const path = (): string => join(directory(), '0.log');

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'nodelet-rotation-'));
    await mkdir(directory());
    now = Date.UTC(2024, 0, 2, 0, 0, 0);
    reopened = [];
    refuse = false;
    const snapshot: PodSnapshot = {
      pod: { uid: 'u' as PodUID, namespace: 'ns', name: 'p' },
      observedAt: epochMs(0),
      sandboxes: [],
      containers: [
        {
          ...shallowContainer({
            id: 'c1',
            pod_sandbox_id: 's1',
            metadata: { name: 'main', attempt: 0 },
            image: null,
            image_ref: '',
            state: 'CONTAINER_RUNNING',
            created_at: '0',
            labels: {},
            annotations: {},
            image_id: '',
          }),
          id: containerId('c1'),
          sandboxId: sandboxId('s1'),
        },
      ],
    };
    rotation = new LogRotation({
      runtime: {
        listPods: async () => [snapshot],
        containerLogPath: () => path(),
        reopenContainerLog: async (id) => {
          if (refuse) throw new Error('the runtime is down');
          reopened.push(id);
          await writeFile(path(), '');
        },
      },
      clock: { ...systemClock, now: () => epochMs(now) },
      maxSizeBytes: 10,
      maxFiles: 3,
    });
  });
  afterEach(async () => {
    await rm(root, { recursive: true, force: true });
  });

  test('a small log is left alone', async () => {
    await writeFile(path(), 'small');
    await rotation.rotateAll();
    expect(reopened).toEqual([]);
  });

  test('a large log is renamed and opened anew; older ones are compressed, the oldest removed', async () => {
    for (const content of ['first log, long', 'second log, long', 'third log, long', 'fourth log, long']) {
      await writeFile(path(), content);
      await rotation.rotateAll();
      now += 1000;
    }
    expect(reopened).toEqual(['c1', 'c1', 'c1', 'c1']);
    expect((await readdir(directory())).sort()).toEqual(['0.log', '0.log.20240102-000002.gz', '0.log.20240102-000003']);
    const compressed = await readFile(join(directory(), '0.log.20240102-000002.gz'));
    expect(gunzipSync(compressed).toString()).toBe('third log, long');
  });

  test('a log that the runtime cannot open anew keeps its name', async () => {
    await writeFile(path(), 'a log that is long');
    refuse = true;
    await expect(rotation.rotate(path(), containerId('c1'))).rejects.toThrow('the runtime is down');
    expect(await readdir(directory())).toEqual(['0.log']);
    expect(await readFile(path(), 'utf8')).toBe('a log that is long');
  });
});
