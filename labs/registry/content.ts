// What the registry gives out, by digest: bytes in memory (manifests, configs) or a part of a file (layers, which are streamed).

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { ByteRange } from '../../lib/http-range.ts';

export interface Content {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  /** How long it takes to be given out whole, ms; absent: as fast as it goes. */
  readonly takesMs?: number;
  read(range: ByteRange): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** An entry of a manifest for a config or a layer. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export interface Manifest {
  readonly schemaVersion: number;
  readonly mediaType: string;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export function descriptorOf({ mediaType, digest, size }: Content): Descriptor {
  return { mediaType, digest, size };
}

export function digestOf(data: Uint8Array): string {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`;
}

export function bytesContent(mediaType: string, data: Buffer): Content {
  const read = ({ start, end }: ByteRange): Iterable<Uint8Array> => [data.subarray(start, end)];
  return { mediaType, digest: digestOf(data), size: data.length, read };
}

export function jsonContent(mediaType: string, value: object): Content {
  return bytesContent(mediaType, Buffer.from(JSON.stringify(value)));
}

/** `offset`: where it begins in the file. */
export function fileContent(of: Descriptor, path: string, offset: number): Content {
  return {
    mediaType: of.mediaType,
    digest: of.digest,
    size: of.size,
    read: ({ start, end }) =>
      end <= start ? [] : createReadStream(path, { start: offset + start, end: offset + end - 1 }),
  };
}
