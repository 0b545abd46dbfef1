// The lab's images: built from real packages, the same twice, run by a real containerd.

import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildImages, loadDefinitions } from '../../../labs/images/build.ts';
import { importImages } from '../../../labs/images/import.ts';
import { type RunningContainerd, startContainerd } from '../support/containerd.ts';
import { BUSYBOX, importLabImages, NGINX, PAUSE } from '../support/images.ts';

let work: string;
let containerd: RunningContainerd;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'nodelet-images-test-'));
  containerd = await startContainerd({ root: work });
});
afterAll(async () => {
  await containerd?.stop();
  await rm(work, { recursive: true, force: true });
});

const digest = async (path: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

describe('lab images', () => {
  it('are the same bytes when they are built twice, and come from the cache after that', async () => {
    const images = (await loadDefinitions()).filter((image) => image.file !== 'nginx.yaml');
    const [one, two] = [join(work, 'cache1'), join(work, 'cache2')];
    const first = await buildImages(images, () => undefined, one);
    const second = await buildImages(images, () => undefined, two);
    expect(await Promise.all(first.map((built) => digest(built.archive)))).toEqual(
      await Promise.all(second.map((built) => digest(built.archive))),
    );
    const output: string[] = [];
    const again = await buildImages(images, (line) => output.push(line), one);
    expect(again.every((built) => built.fromCache)).toBe(true);
    expect(output).toEqual([]);
    // A truncated archive is not taken for whole.
    await truncate(again[0]?.archive ?? '', 1000);
    const repaired = await buildImages(images, () => undefined, one);
    expect(repaired.map((built) => built.fromCache)).toEqual([false, true]);
    expect((await readdir(one)).filter((name) => name.endsWith('.tar')).length).toBe(2);
  });

  it('are known to CRI under all their names after import, and left alone the second time', async () => {
    const outcomes = await importLabImages(containerd);
    expect([...outcomes.keys()].toSorted()).toEqual([BUSYBOX, NGINX, PAUSE]);
    const again = await importLabImages(containerd);
    expect([...again.values()]).toEqual(['present', 'present', 'present']);
  });

  it('are made here when the registry does not answer, and a line reports it', async () => {
    const output: string[] = [];
    const images = (await loadDefinitions()).map((image) => ({
      ...image,
      definition: {
        ...image.definition,
        names: image.definition.names.map((name) => name.replace(':', ':not-there-')),
      },
    }));
    const outcomes = await importImages({
      socket: containerd.socket,
      snapshotter: containerd.snapshotter,
      images: images
        .filter((image) => image.file === 'pause.yaml')
        .map((image) => ({ ...image, source: `${image.source}#` })),
      probe: async () => false,
      say: (line) => output.push(line),
    });
    expect([...outcomes.values()]).not.toContain('pulled');
    expect(output[0]).toBe('the registry registry.k8s.io cannot be reached: its images are made on this machine');
  });
});
