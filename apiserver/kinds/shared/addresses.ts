// IP addresses and ranges in fields: what is wrong with one, and whether a range lies in another.

import { isIPv4, isIPv6 } from '../names.ts';

export interface Range {
  readonly family: 4 | 6;
  readonly address: bigint;
  readonly prefix: number;
}

const NOT_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const NOT_CIDR = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const bits = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** In the form of RFC 5952. Only for a valid address. */
function canonicalIPv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

function numberOf(address: string): bigint {
  if (isIPv4(address)) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  const [head = '', tail] = canonicalIPv6(address).split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right];
  return groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

function isMapped(address: string): boolean {
  return isIPv6(address) && numberOf(address) >> 32n === 0xffffn;
}

export function parseRange(text: string): Range | undefined {
  const [address = '', length = '', more] = text.split('/');
  const family = isIPv4(address) ? 4 : isIPv6(address) ? 6 : undefined;
  if (family === undefined || more !== undefined || !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined;
  const prefix = Number(length);
  return prefix > bits(family) ? undefined : { family, address: numberOf(address), prefix };
}

function network({ family, address, prefix }: Range): bigint {
  return address >> BigInt(bits(family) - prefix);
}

/** Whether all of `inner` is in `outer`, and not all of it. */
export function isStrictSubset(inner: Range, outer: Range): boolean {
  if (inner.family !== outer.family || inner.prefix <= outer.prefix) return false;
  return network({ ...inner, prefix: outer.prefix }) === network(outer);
}

/** A name rule: strict and canonical. */
export function strictAddress(text: string): string[] {
  if (!isIPv4(text) && !isIPv6(text)) return [NOT_IP];
  if (isMapped(text)) return ['must not be an IPv4-mapped IPv6 address'];
  if (isIPv4(text) || canonicalIPv6(text) === text) return [];
  return [`must be in canonical form (${JSON.stringify(canonicalIPv6(text))})`];
}

/** For older fields, which take ranges with bits set beyond the prefix. */
export function looseRange(text: string): string[] {
  return parseRange(text) === undefined ? [NOT_CIDR] : [];
}

export function strictRange(text: string): string[] {
  const range = parseRange(text);
  if (range === undefined) return [NOT_CIDR];
  const [address = '', length = ''] = text.split('/');
  if (isMapped(address)) return ['must not have an IPv4-mapped IPv6 address'];
  if (network(range) << BigInt(bits(range.family) - range.prefix) !== range.address) {
    return ['must not have bits set beyond the prefix length'];
  }
  const canonical = range.family === 4 ? text : `${canonicalIPv6(address)}/${length}`;
  return canonical === text ? [] : [`must be in canonical form (${JSON.stringify(canonical)})`];
}

/** An address with the length of its network: "10.9.8.7/24". */
export function interfaceAddress(text: string): string[] {
  const range = parseRange(text);
  if (range === undefined) return ['must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)'];
  const [address = '', length = ''] = text.split('/');
  const canonical = range.family === 4 ? text : `${canonicalIPv6(address)}/${length}`;
  return canonical === text ? [] : [`must be in canonical form (${JSON.stringify(canonical)})`];
}
