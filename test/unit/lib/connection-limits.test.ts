import { describe, expect, test } from 'vitest';
import { admitConnection, type ConnectionCounts, connectionLimits } from '../../../lib/connection-limits.ts';
import { parseOpenFilesLimit, parseSystemFree } from '../../../lib/descriptors.ts';

describe('a new connection', () => {
  const limits = { total: 100, perAddress: 75, unauthenticated: 10 };
  const none: ConnectionCounts = { total: 0, unauthenticated: 0, ofAddress: 0, unauthenticatedOfAddress: 0 };
  const cases: readonly [string, Partial<ConnectionCounts>, string][] = [
    ['the first', {}, 'accept'],
    ['among authenticated ones', { total: 74, ofAddress: 74 }, 'accept'],
    ['with room among the unauthenticated', { total: 60, unauthenticated: 9, ofAddress: 9 }, 'accept'],
    ['when the unauthenticated are enough', { total: 10, unauthenticated: 10 }, 'busiestAddress'],
    ['when all are there, one of them unauthenticated', { total: 100, unauthenticated: 1 }, 'busiestAddress'],
    ['when all are there and authenticated', { total: 100 }, 'refuse'],
    ['of a busy address', { total: 80, ofAddress: 75, unauthenticated: 3, unauthenticatedOfAddress: 2 }, 'sameAddress'],
    ['of an address that is all authenticated', { total: 80, ofAddress: 75, unauthenticated: 3 }, 'refuse'],
  ];
  test.each(cases)('%s', (_name, counts, expected) => {
    const admission = admitConnection({ ...none, ...counts }, limits);
    expect(admission.action === 'replace' ? admission.from : admission.action).toBe(expected);
  });

  test('is refused in words', () => {
    expect(admitConnection({ ...none, total: 100 }, limits)).toMatchObject({ reason: '100 connections are open' });
  });
});

describe('the limits of a server', () => {
  const of = (openFiles: number) => connectionLimits({ openFiles, reserved: 192, most: 1024, mostUnauthenticated: 64 });
  test.each([
    [256, { total: 32, perAddress: 24, unauthenticated: 8 }],
    [1024, { total: 416, perAddress: 312, unauthenticated: 64 }],
    [1_048_576, { total: 1024, perAddress: 768, unauthenticated: 64 }],
    [Number.POSITIVE_INFINITY, { total: 1024, perAddress: 768, unauthenticated: 64 }],
    [64, { total: 16, perAddress: 12, unauthenticated: 4 }],
  ])('with %d descriptors', (openFiles, expected) => expect(of(openFiles)).toEqual(expected));

  test('leave what is reserved, when each connection costs two descriptors', () => {
    for (let openFiles = 256; openFiles < 5000; openFiles += 7) {
      expect(openFiles - 2 * of(openFiles).total).toBeGreaterThanOrEqual(192);
    }
  });
});

describe('what /proc says', () => {
  const line = (soft: string) =>
    `Limit                     Soft Limit           Hard Limit           Units     \n` +
    `Max processes             1000                 1000                 processes \n` +
    `Max open files            ${soft.padEnd(20)} 4096                 files     \n`;
  test('of open files', () => {
    expect(parseOpenFilesLimit(line('1024'))).toBe(1024);
    expect(parseOpenFilesLimit(line('unlimited'))).toBe(Number.POSITIVE_INFINITY);
    expect(() => parseOpenFilesLimit('')).toThrow('how many files');
  });
  test('of the machine', () => {
    expect(parseSystemFree('1184\t0\t9223372036854775807\n')).toBeGreaterThan(1e18);
    expect(parseSystemFree('100\t0\t90\n')).toBe(0);
  });
});
