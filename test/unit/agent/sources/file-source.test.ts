// Static pods from a directory, on real files and a clock that the test moves. Signs of a change are given by hand; that
// inotify gives them is shown with the real watcher at the end.

import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PodSource } from '../../../../agent/ports/api.ts';
import { createFilePodSource } from '../../../../agent/sources/file-source.ts';
import type { Pod } from '../../../../client/types.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { VirtualClock } from '../../../sim/clock.ts';
import { exhaustInotify } from '../../../support/no-inotify.ts';

let root: string;
let path: string;
let clock: VirtualClock;
let source: PodSource | undefined;
let notified: ReadonlyMap<string, Pod>[];
let output: string[];
let sign: () => void = () => undefined;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-manifests-'));
  path = join(root, 'manifests');
  await mkdir(path);
  clock = new VirtualClock();
  notified = [];
  output = [];
});

afterEach(async () => {
  source?.stop();
  source = undefined;
  await rm(root, { recursive: true, force: true });
});

const manifest = (name: string, image = 'nginx'): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: main, image: "${image}"}]}\n`;
const put = (file: string, text: string): Promise<void> => writeFile(join(path, file), text);
const names = (): string[] => [...(notified.at(-1)?.values() ?? [])].map(({ metadata }) => metadata.name).sort();
const images = (): (string | undefined)[] =>
  [...(notified.at(-1)?.values() ?? [])].map(({ spec }) => spec.containers[0]?.image);

function begin(options: { readonly at?: string; readonly real?: boolean } = {}): void {
  source = createFilePodSource({
    path: options.at ?? path,
    nodeName: 'n1',
    // With the kernel's word nothing waits for the full look, which is an hour away.
    checkMs: options.real === true ? 3_600_000 : 20_000,
    clock: options.real === true ? systemClock : clock,
    log: (_level, message) => output.push(message.replaceAll(`${root}/`, '')),
    ...(options.real === true
      ? {}
      : {
          watch: (_path, changed) => {
            sign = changed;
            return { follow: () => Promise.resolve(), close: () => undefined };
          },
        }),
  });
  source.start((pods) => notified.push(pods));
}

/** Triggers the watch, and waits for the source's report. */
async function change(expected: () => void): Promise<void> {
  sign();
  await clock.advance(20);
  await vi.waitFor(expected);
}

async function fullLook(expected: () => void): Promise<void> {
  await clock.advance(20_000);
  await vi.waitFor(expected);
}

describe('a manifest directory', () => {
  it('that is empty, or does not exist yet, yields no pods', async () => {
    begin();
    await vi.waitFor(() => expect(notified).toEqual([new Map()]));
    source?.stop();
    notified = [];
    begin({ at: join(root, 'later') });
    await vi.waitFor(() => expect(notified).toEqual([new Map()]));
    expect(output).toEqual(['later: does not exist, ignoring']);
  });

  it('is reported, and again when a pod is added, changed and removed', async () => {
    await put('a.yaml', manifest('a'));
    begin();
    await vi.waitFor(() => expect(names()).toEqual(['a-n1']));
    await put(
      'b.json',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'b' },
        spec: { containers: [{ name: 'm', image: 'i' }] },
      }),
    );
    await change(() => expect(names()).toEqual(['a-n1', 'b-n1']));
    await rm(join(path, 'b.json'));
    await change(() => expect(names()).toEqual(['a-n1']));
    const before = notified.at(-1);
    await put('a.yaml', manifest('a', 'nginx:1.27'));
    await change(() => expect(images()).toEqual(['nginx:1.27']));
    expect([...(notified.at(-1)?.keys() ?? [])]).not.toEqual([...(before?.keys() ?? [])]);
    expect(output).toEqual([]);
  });

  it('that was touched and not changed is not reported again', async () => {
    await put('a.yaml', manifest('a'));
    begin();
    await vi.waitFor(() => expect(notified).toHaveLength(1));
    await utimes(join(path, 'a.yaml'), 1, 1);
    await put('b.yaml', manifest('b'));
    const first = [...(notified[0]?.values() ?? [])][0];
    await change(() => expect(notified).toHaveLength(2));
    expect(notified[1]?.get(first?.metadata.uid ?? '')).toBe(first);
  });

  it('skips hidden files, does not go into directories, and says so once', async () => {
    await put('.a.yaml.swp', manifest('hidden'));
    await put('a.yaml', manifest('a'));
    await mkdir(join(path, 'sub'));
    begin();
    await vi.waitFor(() => expect(names()).toEqual(['a-n1']));
    await put('b.yaml', manifest('b'));
    await change(() => expect(names()).toEqual(['a-n1', 'b-n1']));
    expect(output).toEqual(['manifests/sub: not recursing into manifest path']);
  });

  it('runs the others beside files that are broken, names each once, and reports when it is valid again', async () => {
    await put('a.yaml', manifest('a'));
    for (let index = 0; index < 50; index++) await put(`broken-${index}.yaml`, 'kind: [');
    begin();
    await vi.waitFor(() => expect(names()).toEqual(['a-n1']));
    expect(output.filter((line) => line.includes('is neither YAML nor JSON'))).toHaveLength(50);
    await put('broken-7.yaml', manifest('seven'));
    await change(() => expect(names()).toEqual(['a-n1', 'seven-n1']));
    expect(output).toHaveLength(51);
    expect(output.at(-1)).toBe('manifests/broken-7.yaml: is valid again');
  });

  it('keeps a pod whose file has just broken, as while it is being written, until the next full look', async () => {
    await put('a.yaml', manifest('a'));
    begin();
    await vi.waitFor(() => expect(names()).toEqual(['a-n1']));
    await put('a.yaml', manifest('a').slice(0, 30));
    await change(() => expect(output).toHaveLength(1));
    expect(names()).toEqual(['a-n1']);
    await fullLook(() => expect(names()).toEqual([]));
    expect(output).toHaveLength(1);
  });

  it('sees at the full look what no sign was given of', async () => {
    begin();
    await vi.waitFor(() => expect(notified).toHaveLength(1));
    await put('a.yaml', manifest('a'));
    await fullLook(() => expect(names()).toEqual(['a-n1']));
  });

  it('refuses a file that is too large without reading it', async () => {
    await put('big.yaml', `${manifest('big')}${'#'.repeat(10 * 1024 * 1024)}`);
    await put('a.yaml', manifest('a'));
    begin();
    await vi.waitFor(() => expect(names()).toEqual(['a-n1']));
    expect(output).toEqual(['manifests/big.yaml: is larger than 10485760 bytes']);
  });

  it('takes the first of two pods of one name', async () => {
    await put('a.yaml', manifest('same', 'first'));
    await put('b.yaml', manifest('same', 'second'));
    begin();
    await vi.waitFor(() => expect(images()).toEqual(['first']));
    expect(output[0]).toContain('manifests/b.yaml: pod default/same-n1 is left out');
  });

  it('follows links, as a mounted ConfigMap has them', async () => {
    await mkdir(join(path, '..v1'));
    await put('..v1/a.yaml', manifest('a', 'one'));
    await symlink('..v1', join(path, '..data'));
    await symlink('..data/a.yaml', join(path, 'a.yaml'));
    await symlink('nowhere', join(path, 'dangling.yaml'));
    begin();
    await vi.waitFor(() => expect(images()).toEqual(['one']));
    expect(output).toEqual(['manifests/dangling.yaml: is a link to nothing, or is gone again']);
    await mkdir(join(path, '..v2'));
    await put('..v2/a.yaml', manifest('a', 'two'));
    await symlink('..v2', join(path, '..new'));
    await rename(join(path, '..new'), join(path, '..data'));
    await change(() => expect(images()).toEqual(['two']));
  });

  it('may be a single file', async () => {
    await put('only.yaml', manifest('only'));
    await put('other.yaml', manifest('other'));
    begin({ at: join(path, 'only.yaml') });
    await vi.waitFor(() => expect(names()).toEqual(['only-n1']));
  });
});

describe('with inotify', () => {
  const within = (expected: () => void) => vi.waitFor(expected);

  it('a pod is seen when its file is written, changed and removed', async () => {
    begin({ real: true });
    await within(() => expect(notified).toHaveLength(1));
    await put('a.yaml', manifest('a'));
    await within(() => expect(names()).toEqual(['a-n1']));
    await put('.tmp', manifest('a', 'other'));
    await rename(join(path, '.tmp'), join(path, 'a.yaml'));
    await within(() => expect(images()).toEqual(['other']));
    await rm(join(path, 'a.yaml'));
    await within(() => expect(names()).toEqual([]));
  });

  it('pods are seen also where the machine has no inotify watch left, long before the full look', async () => {
    const inotify = exhaustInotify();
    begin({ real: true });
    await within(() => expect(notified).toHaveLength(1));
    await put('a.yaml', manifest('a'));
    await within(() => expect(names()).toEqual(['a-n1']));
    await rm(join(path, 'a.yaml'));
    await within(() => expect(names()).toEqual([]));
    expect(output.filter((text) => text.includes('changes are seen late'))).toHaveLength(1);
    inotify.free();
  });

  it('a directory is seen when it appears, goes, and comes back', async () => {
    await rm(path, { recursive: true });
    begin({ real: true });
    await within(() => expect(notified).toHaveLength(1));
    await mkdir(path);
    await put('a.yaml', manifest('a'));
    await within(() => expect(names()).toEqual(['a-n1']));
    await rm(path, { recursive: true });
    await within(() => expect(names()).toEqual([]));
    await mkdir(path);
    await put('b.yaml', manifest('b'));
    await within(() => expect(names()).toEqual(['b-n1']));
  });
});
