// IP and link-layer addresses between bytes and text, and whether a prefix contains an address. Pure.

import { isIP } from 'node:net';

export const formatMac = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/..(?=.)/g, '$&:');

/** 4 bytes as dotted quad, 16 bytes as RFC 5952 text. Throws RangeError for any other length. */
export function formatAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) throw new RangeError(`an IP address has 4 or 16 bytes, not ${bytes.length}`);
  const groups: number[] = [];
  for (let at = 0; at < 16; at += 2) groups.push(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0));
  let [bestStart, bestLength] = [-1, 1];
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length++;
    if (length > bestLength) [bestStart, bestLength] = [start, length];
  }
  const hex = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(':');
  return bestStart === -1 ? hex(0, 8) : `${hex(0, bestStart)}::${hex(bestStart + bestLength, 8)}`;
}

export const formatPrefix = (bytes: Uint8Array, length: number): string => `${formatAddress(bytes)}/${length}`;

/** What formatAddress made text of; undefined for what is no address. */
export function parseAddress(text: string): Uint8Array | undefined {
  const version = isIP(text);
  if (version === 4) return Uint8Array.from(text.split('.'), Number);
  if (version === 0) return undefined;
  // The last 32 bits may be a dotted quad; a zone is no part of the address.
  const [bare = ''] = text.split('%');
  const hex = bare.replace(/[\d.]+$/, (last) => {
    if (!last.includes('.')) return last;
    const [a = 0, b = 0, c = 0, d = 0] = last.split('.').map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = [], tail = []] = hex.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const groups = [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => '0'), ...tail];
  return Uint8Array.from(
    groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]),
  );
}

/** Whether `address`, with or without a prefix length, is in `cidr`. False when either is malformed. */
export function prefixContains(cidr: string, address: string): boolean {
  const [network = '', length = ''] = cidr.split('/');
  const [host = ''] = address.split('/');
  const prefix = parseAddress(network);
  const bytes = parseAddress(host);
  const bits = Number(length);
  if (prefix === undefined || bytes?.length !== prefix.length) return false;
  if (length === '' || !Number.isInteger(bits) || bits < 0 || bits > prefix.length * 8) return false;
  return prefix.every((byte, index) => {
    const counted = Math.min(8, Math.max(0, bits - index * 8));
    return ((byte ^ (bytes[index] ?? 0)) & (0xff00 >> counted) & 0xff) === 0;
  });
}
