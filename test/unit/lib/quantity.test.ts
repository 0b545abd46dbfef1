import { describe, expect, test } from 'vitest';
import {
  compareQuantities,
  formatBytes,
  formatMilli,
  parseQuantity,
  quantityMilli,
  quantityValue,
} from '../../../lib/quantity.ts';

describe('parseQuantity', () => {
  test.each([
    ['1', 1_000_000_000n],
    ['250m', 250_000_000n],
    ['0.1', 100_000_000n],
    ['.5', 500_000_000n],
    ['1e3', 1_000_000_000_000n],
    ['2E', 2n * 10n ** 27n],
    ['1Ki', 1024n * 10n ** 9n],
    ['1.5Gi', 1_610_612_736n * 10n ** 9n],
    ['-3', -3_000_000_000n],
    ['5u', 5_000n],
    ['0.0000000001', 1n],
  ])('%s is %s nano-units', (text, nano) => expect(parseQuantity(text)).toBe(nano));

  test.each(['', 'abc', '1KiB', '1.2.3', '--1', '1 Gi', '1e999999999', 'Ki', '0x10'])('%j is not a quantity', (text) =>
    expect(parseQuantity(text)).toBeUndefined(),
  );
});

test.each([
  ['100m', 100],
  ['2', 2000],
  ['1.0005', 1001],
])('%s is %d thousandths, rounded up', (text, milli) => expect(quantityMilli(text)).toBe(milli));

test.each([
  ['64Mi', 67_108_864],
  ['1.5', 2],
  ['1k', 1000],
])('%s is %d whole units, rounded up', (text, value) => expect(quantityValue(text)).toBe(value));

test('text that is no quantity is a RangeError that quotes it', () =>
  expect(() => quantityValue('lots')).toThrow(new RangeError('"lots" is not a resource quantity')));

test.each([
  ['1Gi', '1G', 1],
  ['1000m', '1', 0],
  ['0.1', '200m', -1],
] as const)('%s compared with %s is %d', (a, b, order) => expect(compareQuantities(a, b)).toBe(order));

test.each([
  [0, '0'],
  [1000, '1000'],
  [1024, '1Ki'],
  [3 * 1024 ** 3, '3Gi'],
])('%d bytes print as %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

test.each([
  [2000, '2'],
  [1500, '1500m'],
])('%d millicores print as %s', (milli, text) => expect(formatMilli(milli)).toBe(text));
