import { expect, test } from 'vitest';
import { parseImageDefinition } from '../../../../labs/images/definition.ts';
import { dockerArchive, fileOfTar } from '../../../../labs/images/docker-archive.ts';
import { buildOciImage } from '../../../../labs/images/oci.ts';
import { writeTar } from '../../../../labs/images/tar.ts';

const definition = parseImageDefinition('names: [docker.io/library/a:1, docker.io/library/a:2]\ncmd: [x]\n', 'a.yaml');
const image = buildOciImage(definition, writeTar([]), 'amd64');

test('the list of images that Docker reads is in front of the archive', () => {
  const archive = dockerArchive(image.archive, definition.names);
  const [entry] = JSON.parse(fileOfTar(archive, 'manifest.json')?.toString() ?? '[]');
  expect(entry.RepoTags).toEqual(definition.names);
  expect(entry.Config).toBe(`blobs/${image.id.replace(':', '/')}`);
  expect(entry.Layers).toHaveLength(1);
  for (const path of [entry.Config, ...entry.Layers]) expect(fileOfTar(archive, path)).toBeDefined();
  expect(archive.subarray(-image.archive.length)).toEqual(image.archive);
});

test('what is no archive of an image is refused', () => {
  expect(() => dockerArchive(writeTar([]), ['a:1'])).toThrow('a:1 has no index.json');
});
