// The texts of quantities: the canonical form of a number in a family of suffixes. lib/quantity.ts reads them. Pure.

const NANO = 1_000_000_000n;
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

/** A quantity of nano-units in its canonical form, with binary suffixes (Ki, Mi) where `withBinary`. */
export function formatNano(nano: bigint, withBinary: boolean): string {
  if (nano === 0n) return '0';
  const whole = nano % NANO === 0n && (nano >= 1024n * NANO || nano <= -1024n * NANO);
  return withBinary && whole ? binaryText(nano / NANO) : decimalText(nano, false);
}

/** Whole units with the largest binary suffix that divides them. */
export function binaryText(value: bigint): string {
  let power = 0;
  while (value % 1024n === 0n && power < BINARY_SUFFIXES.length - 1) {
    value /= 1024n;
    power++;
  }
  return `${value}${BINARY_SUFFIXES[power]}`;
}

/** Nano-units with the largest decimal suffix that divides them, or as a power of ten. */
export function decimalText(mantissa: bigint, exponentForm: boolean): string {
  let exponent = -9;
  while (mantissa % 1000n === 0n && exponent < 18) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (!exponentForm) return `${mantissa}${DECIMAL_SUFFIXES[exponent]}`;
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
}
