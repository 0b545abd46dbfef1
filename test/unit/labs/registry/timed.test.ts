// Images whose pull takes a known time: which names are such, and that each has a layer that no other has.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseImageDefinition } from '../../../../labs/images/definition.ts';
import { buildOciImage } from '../../../../labs/images/oci.ts';
import { writeTar } from '../../../../labs/images/tar.ts';
import { Catalog } from '../../../../labs/registry/catalog.ts';
import { timedPullMs } from '../../../../labs/registry/timed.ts';

const NAMES = ['docker.io/library/busybox:stable'];
let directory: string;
let catalog: Catalog;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-timed-unit-'));
  const layer = writeTar([{ type: 'file', path: 'hello', mode: 0o644, uid: 0, gid: 0, data: Buffer.from('hello') }]);
  const path = join(directory, 'busybox.tar');
  const definition = parseImageDefinition(`names: [${NAMES.join(', ')}]`, 'busybox.yaml');
  await writeFile(path, buildOciImage(definition, layer, 'amd64').archive);
  const images = async () => [{ names: NAMES, archive: async () => path }];
  catalog = new Catalog({ images, reachable: new Set(), paddingBytes: 1 });
});

afterAll(() => rm(directory, { recursive: true, force: true }));

test.each([
  ['sim/pull-20s', 20_000],
  ['sim/pull-20s-one', 20_000],
  ['sim/pull-250ms-a-b', 250],
  ['sim/pull-2m', 120_000],
  ['sim/pull-20', undefined],
  ['sim/pull-20h', undefined],
  ['sim/size-2g', undefined],
  ['library/sim/pull-20s', undefined],
])('a pull of %s takes %s ms', (name, ms) => {
  expect(timedPullMs(name)).toBe(ms);
});

async function lastLayer(name: string) {
  const repository = await catalog.find('docker.io', name);
  const manifest = await repository?.manifest('1');
  if (repository === undefined || manifest === undefined) throw new Error(`${name} is not there`);
  const parts: Uint8Array[] = [];
  for await (const part of manifest.read({ start: 0, end: manifest.size })) parts.push(part);
  const { layers }: { layers: readonly { digest: string }[] } = JSON.parse(Buffer.concat(parts).toString('utf8'));
  const { digest = '' } = layers.at(-1) ?? {};
  return { count: layers.length, digest, content: await repository.blob(digest) };
}

test('each has a layer of its own, which is given out over that time', async () => {
  const [one, two] = [await lastLayer('sim/pull-20s-one'), await lastLayer('sim/pull-20s-two')];
  expect([one.content?.takesMs, two.content?.takesMs]).toEqual([20_000, 20_000]);
  expect([one.count, two.count]).toEqual([2, 2]);
  expect(one.digest).not.toBe(two.digest);
});

test('they are Docker Hub’s alone, and in no list', async () => {
  expect(await catalog.find('quay.io', 'sim/pull-20s')).toBeUndefined();
  expect(await catalog.names('docker.io')).not.toContain('sim/pull-20s');
});
