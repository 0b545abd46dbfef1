// An OCI archive as `docker load` of every version takes it: the same bytes with the list of images that Docker's own
// format has in front. Docker reads OCI's index only since version 25. Pure.

import { UserError } from '../../lib/errors.ts';
import { writeTar } from './tar.ts';

const BLOCK = 512;
/** A tar ends with two blocks of zeros. */
const END = 2 * BLOCK;

/** The content of one file of a tar; undefined when it has no such file. Only names that fit a tar header. */
export function fileOfTar(archive: Buffer, path: string): Buffer | undefined {
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const name = archive.toString('utf8', at, at + 100).replace(/\0.*$/s, '');
    if (name === '') return undefined;
    const size = Number.parseInt(archive.toString('latin1', at + 124, at + 136), 8);
    const data = at + BLOCK;
    if (name === path) return archive.subarray(data, data + size);
    at = data + Math.ceil(size / BLOCK) * BLOCK;
  }
  return undefined;
}

interface Descriptor {
  readonly digest: string;
}
interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

const blobPath = ({ digest }: Descriptor): string => `blobs/${digest.replace(':', '/')}`;

/** `names`: the image's names with tags. Throws UserError for what is no OCI archive of one image. */
export function dockerArchive(archive: Buffer, names: readonly string[]): Buffer {
  const read = (path: string): unknown => {
    const data = fileOfTar(archive, path);
    if (data === undefined) throw new UserError(`the image archive of ${names.join(', ')} has no ${path}`);
    return JSON.parse(data.toString('utf8'));
  };
  const index = read('index.json') as { readonly manifests: readonly Descriptor[] };
  const [first] = index.manifests;
  if (first === undefined) throw new UserError(`the image archive of ${names.join(', ')} has no manifest`);
  const { config, layers } = read(blobPath(first)) as Manifest;
  const images = [{ Config: blobPath(config), RepoTags: names, Layers: layers.map(blobPath) }];
  const data = Buffer.from(JSON.stringify(images));
  const head = writeTar([{ type: 'file', path: 'manifest.json', mode: 0o644, uid: 0, gid: 0, data }]);
  return Buffer.concat([head.subarray(0, head.length - END), archive]);
}
