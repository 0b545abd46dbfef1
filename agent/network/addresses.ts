// IP and link-layer addresses between bytes and text, and which prefix an address lies in. Pure.

import { BlockList, isIP } from 'node:net';

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

/** Whether `address`, with or without a prefix length, lies in `cidr`. False when either is not what it should be. */
export function prefixContains(cidr: string, address: string): boolean {
  const [network = '', length = ''] = cidr.split('/');
  const [host = ''] = address.split('/');
  const version = isIP(network);
  const bits = Number(length);
  if (version === 0 || isIP(host) !== version) return false;
  if (length === '' || !Number.isInteger(bits) || bits < 0 || bits > (version === 6 ? 128 : 32)) return false;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  const block = new BlockList();
  block.addSubnet(network, bits, family);
  return block.check(host, family);
}
