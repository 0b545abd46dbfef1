// Functions on strings: those of the extension `strings` that the library lacks, Kubernetes' regular expressions and named
// formats. `matches` is the library's name for JavaScript's expressions, which may take exponential time: it is renamed
// (RENAMED) to RE2's.

import { type Environment, Optional } from '@marcbachmann/cel-js';
import { Duration } from '@marcbachmann/cel-js/evaluator';
import { getOwn } from '../../../lib/own-property.ts';
import {
  configMapKey,
  dns1035Label,
  dns1123Label,
  dns1123Subdomain,
  labelValue,
  qualifiedName,
} from '../../kinds/names.ts';
import { charge } from '../budget.ts';
import { regexFind, regexTest } from '../regex.ts';
import { isDate, isDateTime, timeText } from '../times.ts';

/** "call:" or "rcall:" and the name in an expression → the name it runs under. */
export const RENAMED: ReadonlyMap<string, string> = new Map([
  ['rcall:matches', 'matchesRe2'],
  ['call:matches', 'matchesRe2'],
  ['call:duration', 'goDuration'],
  // The library's change other letters than those of ASCII, too.
  ['rcall:lowerAscii', 'lowerAsciiOnly'],
  ['rcall:upperAscii', 'upperAsciiOnly'],
]);

const NANOS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const MAX_DURATION = 100;

/** Go's syntax: "1h30m", "-1.5s". Throws RangeError. */
export function parseDuration(text: string): Duration {
  const wrong = (): RangeError =>
    new RangeError(`time: invalid duration ${JSON.stringify(text.slice(0, MAX_DURATION))}`);
  if (text.length > MAX_DURATION) throw wrong();
  const negative = text.startsWith('-');
  const unsigned = text.replace(/^[+-]/, '');
  if (unsigned === '0') return new Duration(0);
  let [nanos, rest] = [0n, unsigned];
  while (rest !== '') {
    const [all = '', whole = '', fraction = '', unit = ''] = /^(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)/.exec(rest) ?? [];
    const size = getOwn(NANOS, unit);
    if (size === undefined || (whole === '' && fraction === '')) throw wrong();
    nanos += BigInt(whole || '0') * size;
    if (fraction !== '') nanos += (BigInt(fraction) * size) / 10n ** BigInt(fraction.length);
    rest = rest.slice(all.length);
  }
  if (unsigned === '' || nanos >= 1n << 63n) throw wrong();
  if (negative) nanos = -nanos;
  return new Duration(nanos / 1_000_000_000n, Number(nanos % 1_000_000_000n));
}

const uuid = (text: string): string[] =>
  /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/.test(text) ? [] : ['does not match the UUID format'];
const base64 = (text: string): string[] => (isBase64(text) ? [] : ['invalid base64']);

export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && !/[^A-Za-z0-9+/=]/.test(text) && !/=[^=]|={3}/.test(text);
}

/** A name with a trailing "-" stands for one with something after it. */
const prefix = (rule: (text: string) => string[]) => (text: string) => rule(text.replace(/-$/, 'a'));

const FORMATS: Readonly<Record<string, (text: string) => string[]>> = {
  dns1123Label,
  dns1123Subdomain,
  dns1035Label,
  qualifiedName,
  dns1123LabelPrefix: prefix(dns1123Label),
  dns1123SubdomainPrefix: prefix(dns1123Subdomain),
  dns1035LabelPrefix: prefix(dns1035Label),
  labelValue,
  configMapKey,
  uri: (text) =>
    URL.canParse(text) || (text.startsWith('/') && URL.canParse(text, 'http://x')) ? [] : ['invalid URI'],
  uuid,
  byte: base64,
  date: (text) => (isDate(text) ? [] : ['invalid date']),
  datetime: (text) => (isDateTime(text) ? [] : ['invalid datetime']),
};

class Format {
  readonly check: (text: string) => string[];
  constructor(check: (text: string) => string[]) {
    this.check = check;
  }
}
class Formats {}
class Strings {}

const ESCAPED: ReadonlyMap<string, string> = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

/** In quotes, with the language's escapes, safe to print. */
function quoted(text: string): string {
  charge(text.length / 4);
  let result = '';
  for (const letter of text.toWellFormed()) result += ESCAPED.get(letter) ?? letter;
  return `"${result}"`;
}

function replace(text: string, from: string, to: string, limit: number): string {
  charge(text.length / 16);
  const parts = text.split(from);
  const replaced = limit < 0 ? parts.length - 1 : Math.min(limit, parts.length - 1);
  // Before it is made: it may be many times as long.
  charge(parts.length / 4 + (text.length + replaced * Math.max(0, to.length - from.length)) / 16);
  if (replaced === parts.length - 1) return parts.join(to);
  return parts.slice(0, replaced + 1).join(to) + from + parts.slice(replaced + 1).join(from);
}

function charged(text: string): string {
  charge(text.length / 16);
  return text;
}

/** "%s and %d" with a list. Throws RangeError. */
function formatted(pattern: string, values: readonly unknown[]): string {
  let next = 0;
  return pattern.replace(/%(?:\.(\d+))?(.)/gs, (_all, precision: string | undefined, verb: string) => {
    if (verb === '%') return '%';
    if (next >= values.length) throw new RangeError(`could not parse formatting clause: index ${next} out of range`);
    const value = values[next++];
    const digits = Math.min(Number(precision ?? '6'), 100);
    if (verb === 's') return shown(value);
    if (verb === 'd' && typeof value === 'bigint') return String(value);
    if (verb === 'f' && (typeof value === 'number' || typeof value === 'bigint')) return Number(value).toFixed(digits);
    if (verb === 'e' && typeof value === 'number') return value.toExponential(digits);
    if (verb === 'b' && (typeof value === 'bigint' || typeof value === 'boolean')) return BigInt(value).toString(2);
    if (verb === 'o' && typeof value === 'bigint') return value.toString(8);
    if (verb === 'x' || verb === 'X') {
      const hex = typeof value === 'bigint' ? value.toString(16) : Buffer.from(String(value)).toString('hex');
      return verb === 'X' ? hex.toUpperCase() : hex;
    }
    throw new RangeError(`error during formatting: unrecognized formatting clause "${verb}" for this value`);
  });
}

function shown(value: unknown): string {
  charge(1);
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`;
  if (value instanceof Date) return timeText(value);
  if (typeof value === 'object' && value !== null && value.constructor === Object) {
    return `{${Object.entries(value)
      .map(([key, each]) => `${key}: ${shown(each)}`)
      .sort()
      .join(', ')}}`;
  }
  return String(value);
}

function isZero(value: unknown): boolean {
  if (value === null || value === false || value === '' || value === 0 || value === 0n) return true;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  if (value instanceof Map) return value.size === 0;
  return typeof value === 'object' && value.constructor === Object && Object.keys(value).length === 0;
}

export function registerText(env: Environment): void {
  env
    .registerFunction('string.matchesRe2(string): bool', (text: string, pattern: string) => regexTest(pattern, text))
    .registerFunction('matchesRe2(string, string): bool', (text: string, pattern: string) => regexTest(pattern, text))
    .registerFunction('string.lowerAsciiOnly(): string', (text: string) =>
      charged(text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())),
    )
    .registerFunction('string.upperAsciiOnly(): string', (text: string) =>
      charged(text.replace(/[a-z]+/g, (letters) => letters.toUpperCase())),
    )
    .registerFunction('OptionalNamespace.ofNonZeroValue(A): optional<A>', (_: unknown, value: unknown) =>
      isZero(value) ? Optional.none() : Optional.of(value),
    )
    .registerFunction('goDuration(string): google.protobuf.Duration', parseDuration)
    .registerFunction(
      'string.find(string): string',
      (text: string, pattern: string) => regexFind(pattern, text, 1)[0] ?? '',
    )
    .registerFunction('string.findAll(string): list<string>', (text: string, pattern: string) =>
      regexFind(pattern, text, -1),
    )
    .registerFunction('string.findAll(string, int): list<string>', (text: string, pattern: string, limit: bigint) =>
      regexFind(pattern, text, Number(limit)),
    )
    .registerFunction('string.charAt(int): string', (text: string, at: bigint) => {
      const characters = [...text];
      if (at < 0n || at > BigInt(characters.length)) throw new RangeError(`index out of range: ${at}`);
      return characters[Number(at)] ?? '';
    })
    .registerType('StringsLibrary', Strings)
    .registerConstant('strings', 'StringsLibrary', new Strings())
    .registerFunction('StringsLibrary.quote(string): string', (_: Strings, text: string) => quoted(text))
    .registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
      replace(text, from, to, -1),
    )
    .registerFunction(
      'string.replace(string, string, int): string',
      (text: string, from: string, to: string, limit: bigint) => replace(text, from, to, Number(limit)),
    )
    .registerFunction('string.format(list<dyn>): string', (pattern: string, values: readonly unknown[]) =>
      charged(formatted(pattern, values)),
    )
    .registerType('KubernetesFormat', Format)
    .registerType('FormatLibrary', Formats)
    .registerConstant('format', 'FormatLibrary', new Formats())
    .registerFunction('FormatLibrary.named(string): optional<KubernetesFormat>', (_: Formats, name: string) => {
      const check = getOwn(FORMATS, name);
      return check === undefined ? Optional.none() : Optional.of(new Format(check));
    })
    .registerFunction(
      'KubernetesFormat.validate(string): optional<list<string>>',
      ({ check }: Format, text: string) => {
        charge(50 + text.length / 16);
        const errors = check(text);
        return errors.length === 0 ? Optional.none() : Optional.of(errors);
      },
    );
  for (const [name, check] of Object.entries(FORMATS)) {
    const format = new Format(check);
    env.registerFunction(`FormatLibrary.${name}(): KubernetesFormat`, () => format);
  }
}
