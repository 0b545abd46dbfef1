// A short name for a long text, as kube-proxy makes them for the chains of Services. Pure.

import { createHash } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
/** 16 characters of base32 are 80 bits. */
const HASH_LENGTH = 16;

/** The first 16 characters of RFC 4648's base32 of the SHA-256 of a text. */
export function shortHash(text: string, length = HASH_LENGTH): string {
  const bytes = createHash('sha256').update(text).digest();
  let [bits, count, found] = [0, 0, ''];
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    for (count += 8; count >= 5; ) {
      count -= 5;
      found += ALPHABET[(bits >>> count) & 31];
      if (found.length === length) return found;
    }
    bits &= (1 << count) - 1;
  }
  return found;
}
