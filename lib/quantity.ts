// Kubernetes resource quantities ("250m", "64Mi", "1e3"), exactly as the API serialises them. Values are kept as
// integers of nano-units, so no figure is ever rounded by accident.

import { getOwn } from './own-property.ts';

const NANO = 1_000_000_000n;
const BINARY: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
};
/** Decimal suffixes, as powers of ten. */
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const SYNTAX = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$/;

/** Longer texts are refused: arithmetic on that many digits would be slow. */
const MAX_LENGTH = 256;

/**
 * A quantity in nano-units, or undefined when the text is not one. Digits finer than a nano-unit round up, as the
 * API does.
 */
export function parseQuantity(text: string | number): bigint | undefined {
  const written = String(text);
  if (written.length > MAX_LENGTH) return undefined;
  const match = SYNTAX.exec(written.trim());
  if (match === null) return undefined;
  const [, sign, digits = '', suffix = ''] = match;
  const [whole = '', fraction = ''] = digits.split('.');
  let mantissa = BigInt(`${whole}${fraction}` || '0');
  let exponent = 9 - fraction.length;
  const binary = getOwn(BINARY, suffix);
  if (binary !== undefined) mantissa *= binary;
  else exponent += getOwn(DECIMAL, suffix) ?? Number(suffix.slice(1));
  // Far beyond int64 either way: bounded so that "1e999999999" costs nothing.
  if (exponent > 60) return undefined;
  let nano: bigint;
  if (exponent >= 0) nano = mantissa * 10n ** BigInt(exponent);
  else if (exponent < -120) nano = mantissa === 0n ? 0n : 1n;
  else nano = ceilDivide(mantissa, 10n ** BigInt(-exponent));
  return sign === '-' ? -nano : nano;
}

function ceilDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend % divisor > 0n ? quotient + 1n : quotient;
}

/** Texts that were read, in nano-units: the same few come again and again. */
const READ = new Map<string, bigint>();
const READ_LIMIT = 500;

function need(text: string | number): bigint {
  const key = String(text);
  const known = READ.get(key);
  if (known !== undefined) return known;
  const nano = parseQuantity(text);
  if (nano === undefined) throw new RangeError(`"${text}" is not a resource quantity`);
  if (READ.size >= READ_LIMIT) READ.clear();
  READ.set(key, nano);
  return nano;
}

/** Whole units (bytes, pods), rounded up. Throws RangeError for text that is not a quantity. */
export function quantityValue(text: string | number): number {
  return Number(ceilDivide(need(text), NANO));
}

/** Thousandths (millicores for cpu), rounded up. Throws RangeError for text that is not a quantity. */
export function quantityMilli(text: string | number): number {
  return Number(ceilDivide(need(text), NANO / 1000n));
}

/** -1, 0 or 1, as a is less than, equal to or more than b. */
export function compareQuantities(a: string | number, b: string | number): -1 | 0 | 1 {
  const [left, right] = [need(a), need(b)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** Bytes as the API prints memory: the largest binary suffix that divides exactly. */
export function formatBytes(bytes: number): string {
  let value = BigInt(Math.trunc(bytes));
  if (value === 0n) return '0';
  let suffix = '';
  for (const next of ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']) {
    if (value % 1024n !== 0n) break;
    value /= 1024n;
    suffix = next;
  }
  return `${value}${suffix}`;
}

/** Thousandths as the API prints cpu: "2" for 2000, "1500m" for 1500. */
export function formatMilli(milli: number): string {
  return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`;
}
