// A layer that takes time to be pulled: a tar of files with bytes that cannot be compressed, the same ones each time. It is made while it is
// read, and nowhere stored.

import { createHash } from 'node:crypto';
import { writeTar } from '../images/tar.ts';
import type { Content } from './content.ts';

/** Of each file, bytes. */
const FILE = 64 * 1024;
const BLOCK = 512;
/** A tar ends with two blocks of zeros. */
const END = Buffer.alloc(2 * BLOCK);
const ENTRY = BLOCK + FILE;

function entry(seed: string, index: number): Buffer {
  const data = createHash('shake256', { outputLength: FILE }).update(`padding ${seed}${index}`).digest();
  const name = `usr/share/padding/${String(index).padStart(4, '0')}`;
  const tar = writeTar([{ type: 'file', path: name, mode: 0o644, uid: 0, gid: 0, data }]);
  return tar.subarray(0, ENTRY);
}

function* bytes(seed: string, files: number, start: number, end: number): Generator<Uint8Array> {
  for (let at = start; at < end; ) {
    const index = Math.floor(at / ENTRY);
    const chunk = index < files ? entry(seed, index) : END;
    const piece = chunk.subarray(at - index * ENTRY, Math.min(chunk.length, end - index * ENTRY));
    yield piece;
    at += piece.length;
  }
}

/** `size`: of the files together, bytes; rounded up to whole files of 64 KiB. Another `seed` makes another layer. */
export async function paddingLayer(size: number, seed = ''): Promise<Content> {
  const files = Math.ceil(size / FILE);
  const whole = files * ENTRY + END.length;
  const hash = createHash('sha256');
  for (const chunk of bytes(seed, files, 0, whole)) {
    hash.update(chunk);
    // Other requests are answered in between.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return {
    mediaType: 'application/vnd.oci.image.layer.v1.tar',
    digest: `sha256:${hash.digest('hex')}`,
    size: whole,
    read: ({ start, end }) => bytes(seed, files, start, end),
  };
}
