// Addresses as keys, and the names that stand for addresses: reverse names, and pods' names with dashes. Pure.

import { isIP } from 'node:net';

const IPV4_REVERSE = 'in-addr.arpa';
const IPV6_REVERSE = 'ip6.arpa';
const GROUPS = 8;

/** The eight groups of an IPv6 address, in four hexadecimal digits each. */
function groups(address: string): readonly string[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const [, head = '', a, b, c, d] = dotted ?? [];
  const pair = (high = '0', low = '0'): string => ((Number(high) << 8) | Number(low)).toString(16);
  const text = dotted === null ? address : `${head}${pair(a, b)}:${pair(c, d)}`;
  const [left = '', right] = text.split('::');
  const split = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const [first, last] = [split(left), split(right ?? '')];
  const zeros = right === undefined ? 0 : GROUPS - first.length - last.length;
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].map((group) => group.padStart(4, '0'));
}

/** One text for all ways to write an address; undefined where it is none. */
export function addressKey(address: string): string | undefined {
  const family = isIP(address);
  if (family === 0) return undefined;
  return family === 4 ? address : groups(address.toLowerCase()).join(':');
}

/** The address of a reverse name (in-addr.arpa, ip6.arpa), as a key; undefined where it is not a whole one. */
export function reverseAddress(name: string): string | undefined {
  const labels = name.split('.');
  const domain = labels.slice(-2).join('.');
  const parts = labels.slice(0, -2).reverse();
  if (domain === IPV4_REVERSE) return parts.length === 4 ? addressKey(parts.join('.')) : undefined;
  if (domain !== IPV6_REVERSE || parts.length !== 32) return undefined;
  if (!parts.every((digit) => /^[0-9a-f]$/.test(digit))) return undefined;
  const text = parts.join('');
  return Array.from({ length: GROUPS }, (_, index) => text.slice(index * 4, index * 4 + 4)).join(':');
}

export function isReverseZone(zone: string): boolean {
  return [IPV4_REVERSE, IPV6_REVERSE].some((domain) => zone === domain || zone.endsWith(`.${domain}`));
}

/** The address that a pod's name stands for: "10-1-2-3", "2001-db8--1". Undefined where it stands for none. */
export function addressOfPodName(name: string): string | undefined {
  const isIPv4 = name.split('-').length === 4 && !name.includes('--');
  const address = name.replaceAll('-', isIPv4 ? '.' : ':');
  return isIP(address) === 0 ? undefined : address;
}

/** The name of an endpoint that has none. An IPv6 address that ends in "::" gets a 0: no label ends in a dash. */
export function nameOfAddress(address: string): string {
  const name = address.replaceAll(/[.:]/g, '-');
  return name.endsWith('-') ? `${name}0` : name;
}
