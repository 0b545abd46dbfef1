// IP addresses and ranges as numbers. Pure.

import { isIPv4, isIPv6 as isIPv6OrZoned } from 'node:net';

export interface Range {
  readonly family: 4 | 6;
  readonly address: bigint;
  readonly prefix: number;
}

/** An address with a zone ("fe80::1%eth0") is of no range. */
const isIPv6 = (text: string): boolean => isIPv6OrZoned(text) && !text.includes('%');

export const addressBits = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** In the form of RFC 5952. Only for a valid address. */
export function canonicalIPv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

/** Only for a valid address. */
export function addressNumber(address: string): bigint {
  if (isIPv4(address)) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  const [head = '', tail] = canonicalIPv6(address).split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right];
  return groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

export function parseRange(text: string): Range | undefined {
  const [address = '', length = '', more] = text.split('/');
  const family = isIPv4(address) ? 4 : isIPv6(address) ? 6 : undefined;
  if (family === undefined || more !== undefined || !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined;
  const prefix = Number(length);
  return prefix > addressBits(family) ? undefined : { family, address: addressNumber(address), prefix };
}

/** "10.0.3.0/24", "2001:db8:3::/64" */
export function rangeText({ family, address, prefix }: Range): string {
  if (family === 4) return `${[24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 255n).join('.')}/${prefix}`;
  const groups = Array.from({ length: 8 }, (_, index) => (address >> BigInt(112 - 16 * index)) & 0xffffn);
  return `${canonicalIPv6(groups.map((group) => group.toString(16)).join(':'))}/${prefix}`;
}
