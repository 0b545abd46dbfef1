// An OCI archive of one image as labs/images builds it: where in the file each blob is. Manifest and config are read, layers are not.

import { type FileHandle, open } from 'node:fs/promises';
import { UserError } from '../../lib/errors.ts';
import { bytesContent, type Content, type Descriptor, digestOf, fileContent, type Manifest } from './content.ts';

const BLOCK = 512;
/** Manifests and configs are small; a larger one is none. */
const MAX_JSON = 4 << 20;

export interface ArchivedImage {
  readonly manifest: Content;
  readonly parsed: Manifest;
  readonly config: Content;
  readonly configData: Buffer;
  readonly layers: readonly Content[];
}

interface Place {
  readonly offset: number;
  readonly size: number;
}

async function readAt(file: FileHandle, { offset, size }: Place): Promise<Buffer> {
  const data = Buffer.alloc(size);
  const { bytesRead } = await file.read(data, 0, size, offset);
  return data.subarray(0, bytesRead);
}

/** Every file of a tar, by name. Only names that fit a tar header. */
async function placesIn(file: FileHandle): Promise<ReadonlyMap<string, Place>> {
  const places = new Map<string, Place>();
  for (let offset = 0; ; ) {
    const header = await readAt(file, { offset, size: BLOCK });
    const name = header.toString('utf8', 0, 100).replace(/\0.*$/s, '');
    if (header.length < BLOCK || name === '') return places;
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8);
    places.set(name, { offset: offset + BLOCK, size });
    offset += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
}

/** Rejects with UserError for what is no OCI archive of one image, and with a system error. */
export async function readArchive(path: string): Promise<ArchivedImage> {
  const file = await open(path);
  try {
    const places = await placesIn(file);
    const place = (name: string): Place => {
      const found = places.get(name);
      if (found === undefined) throw new UserError(`the image archive ${path} has no ${name}`);
      return found;
    };
    const blob = ({ digest }: Descriptor): Place => place(`blobs/${digest.replace(':', '/')}`);
    const read = async (at: Place): Promise<Buffer> => {
      if (at.size > MAX_JSON) throw new UserError(`the image archive ${path} has JSON of ${at.size} bytes`);
      return readAt(file, at);
    };
    const checked = async (of: Descriptor): Promise<Buffer> => {
      const data = await read(blob(of));
      if (digestOf(data) !== of.digest) throw new UserError(`the image archive ${path} is damaged: ${of.digest}`);
      return data;
    };
    const index: { readonly manifests: readonly Descriptor[] } = JSON.parse(String(await read(place('index.json'))));
    const [first] = index.manifests;
    if (first === undefined) throw new UserError(`the image archive ${path} has no manifest`);
    const data = await checked(first);
    const parsed: Manifest = JSON.parse(String(data));
    const configData = await checked(parsed.config);
    return {
      manifest: bytesContent(first.mediaType, data),
      parsed,
      config: bytesContent(parsed.config.mediaType, configData),
      configData,
      layers: parsed.layers.map((layer) => fileContent(layer, path, blob(layer).offset)),
    };
  } finally {
    await file.close();
  }
}
