// The canonical form of a quantity in the API ("1000m" is "1", "1024Mi" is "1Gi"), and the error for text that is not a
// quantity. Arithmetic on quantities is in lib/quantity.ts.

import { parseQuantity } from '../../lib/quantity.ts';
import { binaryText, decimalText } from '../../lib/quantity-text.ts';

const NANO = 1_000_000_000n;
const MAX = (1n << 63n) - 1n;
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
    return binaryText(nano / NANO);
  }
  return decimalText(nano, /[eE][+-]?\d+$/.test(text));
}

function clamp(value: bigint, low: bigint, high: bigint): bigint {
  if (value > high) return high;
  return value < low ? low : value;
}
