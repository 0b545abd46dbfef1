// Kubernetes' functions on URLs, IP addresses and CIDRs.

import type { Environment } from '@marcbachmann/cel-js';
import { isIPv4, isIPv6 } from '../../kinds/names.ts';
import { charge } from '../budget.ts';

/** What an address or a URL costs. */
const PARSING = 200;
/** Longer texts are no addresses. */
const MAX_IP = 64;
const MAX_URL = 8192;

export class Ip {
  readonly family: 4 | 6;
  readonly bits: bigint;
  readonly text: string;
  constructor(family: 4 | 6, bits: bigint) {
    this.family = family;
    this.bits = bits;
    this.text = family === 4 ? text4(bits) : text6(bits);
  }
}

function text4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 255n).join('.');
}

/** RFC 5952. */
function text6(bits: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(112 - index * 16)) & 0xffffn).toString(16));
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}

/** undefined for what is no address, has a zone, or is an IPv4 address in IPv6 (as net/netip without 4in6). */
export function parseIp(text: string): Ip | undefined {
  charge(PARSING);
  if (text.length > MAX_IP) return undefined;
  if (isIPv4(text))
    return new Ip(
      4,
      text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n),
    );
  if (!isIPv6(text) || text.includes('%') || /::ffff:.*\./i.test(text)) return undefined;
  const full = new URL(`http://[${text}]/`).hostname.slice(1, -1);
  const [head = '', tail] = full.split('::');
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const [left, right] = [groups(head), tail === undefined ? [] : groups(tail)];
  const middle = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return new Ip(
    6,
    [...left, ...middle, ...right].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n),
  );
}

function ip(text: string): Ip {
  const found = parseIp(text);
  if (found === undefined)
    throw new RangeError(`IP Address '${text.slice(0, MAX_IP)}' parse error during conversion from string`);
  return found;
}

const within = (address: Ip, network: string, prefix: number): boolean => {
  const base = parseIp(network);
  if (base === undefined || base.family !== address.family) return false;
  return masked(address, prefix).bits === masked(base, prefix).bits;
};

const width = (address: Ip): number => (address.family === 4 ? 32 : 128);

function masked(address: Ip, prefix: number): Ip {
  const shift = BigInt(width(address) - prefix);
  return new Ip(address.family, (address.bits >> shift) << shift);
}

const isLoopback = (a: Ip): boolean => within(a, '127.0.0.0', 8) || within(a, '::1', 128);
const isLinkLocalMulticast = (a: Ip): boolean => within(a, '224.0.0.0', 24) || within(a, 'ff02::', 16);
const isLinkLocalUnicast = (a: Ip): boolean => within(a, '169.254.0.0', 16) || within(a, 'fe80::', 10);
const isMulticast = (a: Ip): boolean => within(a, '224.0.0.0', 4) || within(a, 'ff00::', 8);
const isGlobalUnicast = (a: Ip): boolean =>
  a.bits !== 0n && a.text !== '255.255.255.255' && !isLoopback(a) && !isMulticast(a) && !isLinkLocalUnicast(a);

class Cidr {
  readonly ip: Ip;
  readonly prefix: number;
  constructor(address: Ip, prefix: number) {
    this.ip = address;
    this.prefix = prefix;
  }
  contains(address: Ip): boolean {
    return address.family === this.ip.family && masked(address, this.prefix).bits === masked(this.ip, this.prefix).bits;
  }
}

function parseCidr(text: string): Cidr | undefined {
  const [address = '', prefix = '', more] = text.slice(0, MAX_IP).split('/');
  const found = parseIp(address);
  if (found === undefined || more !== undefined || !/^(0|[1-9]\d{0,2})$/.test(prefix)) return undefined;
  return Number(prefix) > width(found) ? undefined : new Cidr(found, Number(prefix));
}

function cidr(text: string): Cidr {
  const found = parseCidr(text);
  if (found === undefined)
    throw new RangeError(`network address parse error during conversion from string: ${text.slice(0, MAX_IP)}`);
  return found;
}

/** As Go's url.ParseRequestURI: an absolute URI or an absolute path. */
function parseUrl(text: string): URL | undefined {
  charge(PARSING);
  if (text.length > MAX_URL || /[\s#]/.test(text)) return undefined;
  if (text.startsWith('/')) return URL.canParse(text, 'path://x') ? new URL(text, 'path://x') : undefined;
  return /^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) && URL.canParse(text) ? new URL(text) : undefined;
}

class Url {
  readonly url: URL;
  readonly text: string;
  constructor(url: URL, text: string) {
    this.url = url;
    this.text = text;
  }
  get isPath(): boolean {
    return this.url.protocol === 'path:';
  }
  /** With the port as it was written: URL drops the default ones. */
  get authority(): string {
    if (this.isPath) return '';
    const [, authority = ''] = /^[^:]+:\/\/(?:[^/?@]*@)?([^/?]*)/.exec(this.text) ?? [];
    return authority;
  }
  get port(): string {
    return /:(\d+)$/.exec(this.authority)?.[1] ?? '';
  }
}

function url(text: string): Url {
  const found = parseUrl(text);
  if (found === undefined)
    throw new RangeError(
      `URL parse error during conversion from string: parse ${JSON.stringify(text.slice(0, 256))}: invalid URI for request`,
    );
  return new Url(found, text);
}

function queryOf({ url: { searchParams } }: Url): Record<string, string[]> {
  const query = new Map<string, string[]>();
  for (const [key, value] of searchParams) query.set(key, [...(query.get(key) ?? []), value]);
  return Object.fromEntries(query);
}

class IpLibrary {}

export function registerNet(env: Environment): void {
  env
    .registerType('net.URL', Url)
    .registerFunction('url(string): net.URL', url)
    .registerFunction('isURL(string): bool', (text: string) => parseUrl(text) !== undefined)
    .registerFunction('net.URL.getScheme(): string', (u: Url) => (u.isPath ? '' : u.url.protocol.slice(0, -1)))
    .registerFunction('net.URL.getHost(): string', (u: Url) => u.authority)
    .registerFunction('net.URL.getHostname(): string', (u: Url) =>
      u.authority.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1'),
    )
    .registerFunction('net.URL.getPort(): string', (u: Url) => u.port)
    .registerFunction('net.URL.getEscapedPath(): string', (u: Url) => u.url.pathname)
    .registerFunction('net.URL.getQuery(): map<string, list<string>>', queryOf)
    .registerOperator('net.URL == net.URL', (a: Url, b: Url) => a.url.href === b.url.href)
    .registerType('net.IP', Ip)
    .registerType('net.CIDR', Cidr)
    .registerFunction('ip(string): net.IP', ip)
    .registerFunction('isIP(string): bool', (text: string) => parseIp(text) !== undefined)
    .registerFunction('string(net.IP): string', (a: Ip) => a.text)
    .registerFunction('net.IP.family(): int', (a: Ip) => BigInt(a.family))
    .registerFunction('net.IP.isUnspecified(): bool', (a: Ip) => a.bits === 0n)
    .registerFunction('net.IP.isLoopback(): bool', isLoopback)
    .registerFunction('net.IP.isLinkLocalMulticast(): bool', isLinkLocalMulticast)
    .registerFunction('net.IP.isLinkLocalUnicast(): bool', isLinkLocalUnicast)
    .registerFunction('net.IP.isGlobalUnicast(): bool', isGlobalUnicast)
    .registerOperator('net.IP == net.IP', (a: Ip, b: Ip) => a.text === b.text)
    .registerType('IpLibrary', IpLibrary)
    .registerConstant('ip', 'IpLibrary', new IpLibrary())
    .registerFunction('IpLibrary.isCanonical(string): bool', (_: IpLibrary, text: string) => ip(text).text === text)
    .registerFunction('cidr(string): net.CIDR', cidr)
    .registerFunction('isCIDR(string): bool', (text: string) => parseCidr(text) !== undefined)
    .registerFunction('string(net.CIDR): string', (c: Cidr) => `${c.ip.text}/${c.prefix}`)
    .registerFunction('net.CIDR.containsIP(string): bool', (c: Cidr, text: string) => c.contains(ip(text)))
    .registerFunction('net.CIDR.containsIP(net.IP): bool', (c: Cidr, address: Ip) => c.contains(address))
    .registerFunction('net.CIDR.containsCIDR(string): bool', (c: Cidr, text: string) => inside(c, cidr(text)))
    .registerFunction('net.CIDR.containsCIDR(net.CIDR): bool', inside)
    .registerFunction('net.CIDR.ip(): net.IP', (c: Cidr) => c.ip)
    .registerFunction('net.CIDR.masked(): net.CIDR', (c: Cidr) => new Cidr(masked(c.ip, c.prefix), c.prefix))
    .registerFunction('net.CIDR.prefixLength(): int', (c: Cidr) => BigInt(c.prefix))
    .registerOperator('net.CIDR == net.CIDR', (a: Cidr, b: Cidr) => a.ip.text === b.ip.text && a.prefix === b.prefix);
}

const inside = (outer: Cidr, inner: Cidr): boolean => inner.prefix >= outer.prefix && outer.contains(inner.ip);
