// The canonical form of a quantity in the API ("1000m" is "1", "1024Mi" is "1Gi"), and the error for text that is not a
// quantity. Arithmetic on quantities is in lib/quantity.ts.

import { parseQuantity } from '../../lib/quantity.ts';

const NANO = 1_000_000_000n;
const MAX = (1n << 63n) - 1n;
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL_SUFFIXES: Readonly<Record<number, string>> = {
  [-9]: 'n',
  [-6]: 'u',
  [-3]: 'm',
  0: '',
  3: 'k',
  6: 'M',
  9: 'G',
  12: 'T',
  15: 'P',
  18: 'E',
};

const FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** What is wrong with the text, in the API machinery's words; undefined when it is a quantity. */
export function quantityError(text: string): string | undefined {
  if (parseQuantity(text) !== undefined && text.trim() === text) return undefined;
  // In two steps, as one expression for number and suffix would backtrack over every split of the digits.
  const number = /^[+-]?[0-9.]+/.exec(text)?.[0];
  if (number === undefined || !/^[eEinumkKMGTP]*[-+]?[0-9]*$/.test(text.slice(number.length))) return FORMAT_WRONG;
  return /^[+-]?(\d+(\.\d*)?|\.\d+)$/.test(number)
    ? "unable to parse quantity's suffix"
    : 'unable to parse numeric part of quantity';
}

/** The canonical form, in the suffix family that the text was written in. Throws RangeError when it is no quantity. */
export function canonicalQuantity(text: string): string {
  const parsed = parseQuantity(text);
  if (parsed === undefined) throw new RangeError(`"${text}" is not a resource quantity`);
  const limit = MAX * NANO;
  const nano = clamp(parsed, -limit, limit);
  if (nano === 0n) return '0';
  if (text.endsWith('i') && nano % NANO === 0n && (nano >= 1024n * NANO || nano <= -1024n * NANO)) {
    return binary(nano / NANO);
  }
  return decimal(nano, /[eE][+-]?\d+$/.test(text));
}

/** A quantity of nano-units in its canonical form, with binary suffixes (Ki, Mi) where `withBinary`. */
export function formatNano(nano: bigint, withBinary: boolean): string {
  if (nano === 0n) return '0';
  const whole = nano % NANO === 0n && (nano >= 1024n * NANO || nano <= -1024n * NANO);
  return withBinary && whole ? binary(nano / NANO) : decimal(nano, false);
}

function binary(value: bigint): string {
  let power = 0;
  while (value % 1024n === 0n && power < BINARY_SUFFIXES.length - 1) {
    value /= 1024n;
    power++;
  }
  return `${value}${BINARY_SUFFIXES[power]}`;
}

function decimal(mantissa: bigint, exponentForm: boolean): string {
  let exponent = -9;
  while (mantissa % 1000n === 0n && exponent < 18) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (!exponentForm) return `${mantissa}${DECIMAL_SUFFIXES[exponent]}`;
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
}

function clamp(value: bigint, low: bigint, high: bigint): bigint {
  if (value > high) return high;
  return value < low ? low : value;
}
