// Conversions and comparisons of the language that the library lacks.

import type { Environment } from '@marcbachmann/cel-js';
import type { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { timeText } from '../times.ts';
import { celEqual } from '../values.ts';

const compare = (a: Uint8Array, b: Uint8Array): number => Buffer.compare(a, b);
const MAX_INT = (1n << 63n) - 1n;

export function registerConversions(env: Environment): void {
  const [time, duration] = ['google.protobuf.Timestamp', 'google.protobuf.Duration'];
  env
    .registerOperator('bytes < bytes', (a: Uint8Array, b: Uint8Array) => compare(a, b) < 0)
    .registerOperator('bytes <= bytes', (a: Uint8Array, b: Uint8Array) => compare(a, b) <= 0)
    .registerOperator('bytes > bytes', (a: Uint8Array, b: Uint8Array) => compare(a, b) > 0)
    .registerOperator('bytes >= bytes', (a: Uint8Array, b: Uint8Array) => compare(a, b) >= 0)
    .registerOperator(`${time} == null`, (at: Date, none: null) => celEqual(at, none))
    .registerOperator(`${duration} == null`, (span: Duration, none: null) => celEqual(span, none))
    .registerFunction('int(uint): int', ({ value }: UnsignedInt) => {
      if (value > MAX_INT) throw new RangeError('integer overflow');
      return value;
    })
    .registerFunction(`int(${time}): int`, (at: Date) => BigInt(Math.floor(Number(at) / 1000)))
    .registerFunction(`string(${time}): string`, timeText)
    .registerFunction(`timestamp(${time}): ${time}`, (at: Date) => at)
    .registerFunction(`string(${duration}): string`, (span: Duration) => span.toString())
    // What `duration` runs under (RENAMED in text.ts).
    .registerFunction(`goDuration(${duration}): ${duration}`, (span: Duration) => span);
}
