// IP addresses and ranges in fields: what is wrong with one, and whether a range lies in another. Older fields take what
// Go once took (leading zeros, bits beyond the prefix) with a warning, newer ones only the canonical form.

import {
  addressBits as bits,
  canonicalIPv6,
  addressNumber as numberOf,
  parseRange,
  type Range,
} from '../../../lib/ip-range.ts';
import { isIPv4, isIPv6 } from '../names.ts';

export { parseRange, type Range };

const NOT_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const NOT_CIDR = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

function isMapped(address: string): boolean {
  return isIPv6(address) && numberOf(address) >> 32n === 0xffffn;
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

/** An address as older fields take it. */
export interface LegacyAddress {
  /** 4 for IPv4 addresses that are written as IPv6 ones, too. */
  readonly family: 4 | 6;
  readonly number: bigint;
  /** As Go prints it. */
  readonly canonical: string;
}

/** Numbers may have leading zeros. */
function withoutZeros(text: string): string {
  return /^\d+(\.\d+){3}$/.test(text)
    ? text
        .split('.')
        .map((part) => part.replace(/^0+(?=\d)/, ''))
        .join('.')
    : text;
}

export function legacyAddress(text: string): LegacyAddress | undefined {
  const plain = withoutZeros(text);
  if (isIPv4(plain)) return { family: 4, number: numberOf(plain), canonical: plain };
  if (!isIPv6(text)) return undefined;
  const number = numberOf(text);
  if (number >> 32n !== 0xffffn) return { family: 6, number, canonical: canonicalIPv6(text) };
  const low = number & 0xffffffffn;
  return { family: 4, number: low, canonical: dotted(low) };
}

function dotted(number: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join('.');
}

/** A rule of older fields. */
export function looseAddress(text: string): string[] {
  return legacyAddress(text) === undefined ? [NOT_IP] : [];
}

/** Addresses that nothing outside of a machine or a link can reach are no endpoints. */
export function endpointAddress(text: string): string[] {
  const address = legacyAddress(text);
  if (address === undefined) return ['must be a valid IP address'];
  const { family, number } = address;
  const first = (bitsOfPrefix: number): bigint => number >> BigInt(bits(family) - bitsOfPrefix);
  const errors: string[] = [];
  if (number === 0n) errors.push(`may not be unspecified (${text})`);
  if (family === 4 ? first(8) === 127n : number === 1n) {
    errors.push('may not be in the loopback range (127.0.0.0/8, ::1/128)');
  }
  if (family === 4 ? first(16) === 0xa9fen : first(10) === 0x3fan) {
    errors.push('may not be in the link-local range (169.254.0.0/16, fe80::/10)');
  }
  if (family === 4 ? first(24) === 0xe00000n : first(16) === 0xff02n) {
    errors.push('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)');
  }
  return errors;
}

/** What is worth a warning about a valid address of an older field. */
export function addressWarnings(field: string, text: string): string[] {
  const address = legacyAddress(text);
  if (address === undefined) return [];
  const shown = JSON.stringify(text);
  const canonical = JSON.stringify(address.canonical);
  if (address.family === 4 && !isIPv4(text)) {
    return [
      `${field}: non-standard IP address ${shown} will be considered invalid in a future Kubernetes release: use ${canonical}`,
    ];
  }
  return address.canonical === text
    ? []
    : [`${field}: IPv6 address ${shown} should be in RFC 5952 canonical format (${canonical})`];
}

/** Of a load balancer's status. */
export function balancerWarnings(ingress: readonly { ip?: string | undefined }[] = []): string[] {
  return ingress.flatMap(({ ip = '' }, index) => addressWarnings(`status.loadBalancer.ingress[${index}]`, ip));
}

interface LegacyRange {
  readonly address: LegacyAddress;
  readonly prefix: number;
  /** Of the notation: an IPv4 range that is written as an IPv6 one has 128. */
  readonly length: 32 | 128;
}

function legacyRange(text: string): LegacyRange | undefined {
  const [host = '', digits = '', more] = text.split('/');
  const address = legacyAddress(host);
  if (address === undefined || more !== undefined || !/^\d{1,5}$/.test(digits)) return undefined;
  const length = host.includes(':') ? 128 : 32;
  const prefix = Number(digits);
  return prefix > length ? undefined : { address, prefix, length };
}

/** A rule of older fields: bits may be set beyond the prefix. */
export function legacyRangeErrors(text: string): string[] {
  return legacyRange(text) === undefined ? [NOT_CIDR] : [];
}

/** What is worth a warning about a valid range of an older field. */
export function rangeWarnings(field: string, text: string): string[] {
  const range = legacyRange(text);
  if (range === undefined) return [];
  const { address, prefix, length } = range;
  const mapped = address.family === 4 && length === 128;
  const number = mapped ? (0xffffn << 32n) | address.number : address.number;
  const rest = BigInt(length - prefix);
  const masked = (number >> rest) << rest;
  const network = `${textOf(masked, length)}/${prefix}`;
  const warnings: string[] = [];
  const shown = JSON.stringify(text);
  if (masked !== number) {
    warnings.push(
      `${field}: CIDR value ${shown} is ambiguous in this context (should be ${JSON.stringify(network)} or "${address.canonical}/${length}"?)`,
    );
  }
  const [host = '', digits = ''] = text.split('/');
  const standard = /^(0|[1-9]\d*)$/.test(digits) && (isIPv4(host) || isIPv6(host));
  if (!standard || mapped) {
    warnings.push(
      `${field}: non-standard CIDR value ${shown} will be considered invalid in a future Kubernetes release: use ${JSON.stringify(network)}`,
    );
  }
  const canonical = `${address.canonical}/${prefix}`;
  if (warnings.length === 0 && canonical !== text) {
    warnings.push(
      `${field}: IPv6 CIDR value ${shown} should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`,
    );
  }
  return warnings;
}

/** In canonical form. */
export function addressText(number: bigint, family: 4 | 6): string {
  return textOf(number, family === 4 ? 32 : 128);
}

function textOf(number: bigint, length: 32 | 128): string {
  if (length === 32) return dotted(number);
  const groups = Array.from({ length: 8 }, (_, index) => (number >> BigInt(16 * (7 - index))) & 0xffffn);
  return canonicalIPv6(groups.map((group) => group.toString(16)).join(':'));
}
