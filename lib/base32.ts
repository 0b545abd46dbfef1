// RFC 4648's base32, without padding. Pure.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export function base32(bytes: Uint8Array): string {
  let [bits, count, text] = [0, 0, ''];
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    for (count += 8; count >= 5; ) {
      count -= 5;
      text += ALPHABET[(bits >>> count) & 31];
    }
    bits &= (1 << count) - 1;
  }
  return count === 0 ? text : text + ALPHABET[(bits << (5 - count)) & 31];
}
