// The values of a Corefile: numbers, times, zones, addresses. Each function throws CorefileError with the line. Pure.

import { isIP } from 'node:net';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { CorefileError, type Line } from './blocks.ts';
import type { HttpAddress } from './settings.ts';

const MAX_PORT = 65_535;

export function wrongArguments({ line, name }: Pick<Line, 'line' | 'name'>, after?: string): CorefileError {
  return new CorefileError(line, `Wrong argument count or unexpected line ending after '${after ?? name}'`);
}

/** The arguments, as many as `least` to `most`. */
export function argumentsOf(line: Line, least: number, most = least): readonly string[] {
  if (line.args.length < least || line.args.length > most) throw wrongArguments(line, line.args.at(-1));
  return line.args;
}

/** "5s", "1m30s", "300ms": in ms. */
export function duration(text: string, line: number): number {
  const ms = parseGoDuration(text);
  if (ms === undefined) throw new CorefileError(line, `"${text}" is no time like 5s, 300ms or 1m30s`);
  if (ms < 0) throw new CorefileError(line, `"${text}" is negative`);
  return ms;
}

export function integer(text: string, line: number, least = 0, most = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text);
  if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(number)) throw new CorefileError(line, `"${text}" is no number`);
  if (number < least || number > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `in range [${least}, ${most}]`;
    throw new CorefileError(line, `${number} must be ${range}`);
  }
  return number;
}

/** The reverse zones of a range of addresses: several where it does not end at a label. */
function reverseZones(address: string, prefix: number, line: number): readonly string[] {
  const isIPv4 = isIP(address) === 4;
  if (!isIPv4) throw new CorefileError(line, `ranges of IPv6 addresses are not there: "${address}/${prefix}"`);
  if (prefix > 32) throw new CorefileError(line, `"${address}/${prefix}" is no range`);
  const octets = address.split('.').map(Number);
  const whole = Math.ceil(prefix / 8);
  if (whole === 0) return ['in-addr.arpa'];
  const last = octets[whole - 1] ?? 0;
  const many = 2 ** (whole * 8 - prefix);
  const first = Math.floor(last / many) * many;
  const head = octets.slice(0, whole - 1).reverse();
  return Array.from({ length: many }, (_, index) => [first + index, ...head, 'in-addr.arpa'].join('.'));
}

/** A zone in lower case without its last dot; a range of addresses is its reverse zones. '.' is ''. */
export function zonesOf(text: string, line: number): readonly string[] {
  const [, address = '', prefix = ''] = /^([\d.]+|[\da-f:]*:[\da-f:.]*)\/(\d+)$/i.exec(text) ?? [];
  if (isIP(address) !== 0) return reverseZones(address, Number(prefix), line);
  const zone = text.toLowerCase().replace(/\.$/, '');
  const labels = zone === '' ? [] : zone.split('.');
  const wrong = zone.length > 253 || labels.some((label) => label === '' || label.length > 63);
  if (wrong || text === '' || /[/:\\]/.test(zone)) throw new CorefileError(line, `"${text}" is no zone`);
  return [zone];
}

export function zoneList(args: readonly string[], line: number, otherwise: readonly string[]): readonly string[] {
  return args.length === 0 ? otherwise : args.flatMap((each) => zonesOf(each, line));
}

/** "host:port", ":port". Of an HTTP server. */
export function httpAddress(text: string, line: number): HttpAddress {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(text) ?? [];
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const isWrong = port === '' || Number(port) > MAX_PORT || (bare !== '' && bare !== 'localhost' && isIP(bare) === 0);
  if (isWrong) throw new CorefileError(line, `"${text}" is no address and port`);
  return { host: bare, port: Number(port) };
}

export function port(text: string, line: number): number {
  return integer(text, line, 1, MAX_PORT);
}
