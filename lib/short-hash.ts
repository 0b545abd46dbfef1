// A short name for a long text, as kube-proxy makes them for the chains of Services. Pure.

import { createHash } from 'node:crypto';
import { base32 } from './base32.ts';

/** 16 characters of base32 are 80 bits. */
const HASH_LENGTH = 16;

/** The first 16 characters of RFC 4648's base32 of the SHA-256 of a text. */
export function shortHash(text: string, length = HASH_LENGTH): string {
  const bytes = createHash('sha256').update(text).digest();
  return base32(bytes.subarray(0, Math.ceil((length * 5) / 8))).slice(0, length);
}
