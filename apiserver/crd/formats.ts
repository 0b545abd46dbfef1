// The formats of strings that schemas may name; others are accepted and change nothing, as in the API server.

import { isBase64, parseDuration } from '../cel/functions/text.ts';
import { isDate, isDateTime } from '../cel/times.ts';
import { isIPv4, isIPv6 } from '../kinds/names.ts';

/** Longer texts have none of the formats that are matched by an expression. */
const MAX_TEXT = 4096;

const matches = (pattern: RegExp) => (text: string) => text.length <= MAX_TEXT && pattern.test(text);

function isCidr(text: string): boolean {
  const [address = '', prefix = '', more] = text.split('/');
  if (more !== undefined || !/^\d{1,3}$/.test(prefix)) return false;
  return (isIPv4(address) && Number(prefix) <= 32) || (isIPv6(address) && Number(prefix) <= 128);
}

function isDuration(text: string): boolean {
  // Scala's form: a number, a blank and a unit.
  if (
    /^-?\d{1,18} ?(ns|nanos?|nanoseconds?|us|micros?|microseconds?|ms|millis?|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)$/.test(
      text,
    )
  ) {
    return true;
  }
  try {
    parseDuration(text);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

const HEX = '[0-9a-fA-F]';
const uuid = (version: string, variant: string) =>
  matches(new RegExp(`^${HEX}{8}-?${HEX}{4}-?${version}-?${variant}-?${HEX}{12}$`));

/** Format, without dashes → whether a text has it. */
export const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['bsonobjectid', matches(/^[0-9a-fA-F]{24}$/)],
  ['uri', (text) => text.length <= MAX_TEXT && (URL.canParse(text) || text.startsWith('/'))],
  ['email', matches(/^[^\s@<>]+@[^\s@<>]+$/)],
  [
    'hostname',
    matches(/^[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,62}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,62}[a-zA-Z0-9])?)*\.?$/),
  ],
  ['ipv4', isIPv4],
  ['ipv6', isIPv6],
  ['cidr', isCidr],
  [
    'mac',
    matches(
      /^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}([:-][0-9a-fA-F]{2}){0,14}$|^[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,9}$/,
    ),
  ],
  ['uuid', uuid(`${HEX}{4}`, `${HEX}{4}`)],
  ['uuid3', uuid(`3${HEX}{3}`, `${HEX}{4}`)],
  ['uuid4', uuid(`4${HEX}{3}`, `[89abAB]${HEX}{3}`)],
  ['uuid5', uuid(`5${HEX}{3}`, `[89abAB]${HEX}{3}`)],
  ['isbn', matches(/^(97[89]-?)?(\d-?){9}[\dxX]$/)],
  ['isbn10', matches(/^(\d-?){9}[\dxX]$/)],
  ['isbn13', matches(/^97[89]-?(\d-?){9}\d$/)],
  [
    'creditcard',
    matches(
      /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/,
    ),
  ],
  ['ssn', matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ['hexcolor', matches(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ['rgbcolor', matches(/^rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)$/)],
  ['byte', isBase64],
  ['password', () => true],
  ['date', isDate],
  ['duration', isDuration],
  ['datetime', isDateTime],
]);

/** Undefined for a format that is none of the known ones. */
export function formatCheck(format: string): ((text: string) => boolean) | undefined {
  return FORMATS.get(format.replaceAll('-', ''));
}
