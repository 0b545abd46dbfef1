// IP and link-layer addresses between bytes and text, and which prefix an address lies in. Pure.

import { BlockList, isIPv6 } from 'node:net';

export const formatMac = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');

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
  const [network = '', length] = cidr.split('/');
  const [host = ''] = address.split('/');
  const family = isIPv6(network) ? 'ipv6' : 'ipv4';
  if (isIPv6(host) !== (family === 'ipv6')) return false;
  const block = new BlockList();
  try {
    block.addSubnet(network, Number(length), family);
    return block.check(host, family);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return false;
    throw error;
  }
}
