import { describe, expect, test } from 'vitest';
import { epochMs, plusMs } from '../../../lib/clock.ts';
import { parseRfc3339, rfc3339, rfc3339Micro } from '../../../lib/rfc3339.ts';

const AT = epochMs(Date.UTC(2026, 0, 2, 3, 4, 5, 678));

describe('RFC 3339', () => {
  test('whole seconds, cut off', () => {
    expect(rfc3339(AT)).toBe('2026-01-02T03:04:05Z');
    expect(rfc3339(plusMs(AT, 321.9))).toBe('2026-01-02T03:04:05Z');
    expect(rfc3339(epochMs(0))).toBe('1970-01-01T00:00:00Z');
  });

  test('a MicroTime has six digits', () => {
    expect(rfc3339Micro(AT)).toBe('2026-01-02T03:04:05.678000Z');
  });

  test.each([
    ['2026-01-02T03:04:05Z', Date.UTC(2026, 0, 2, 3, 4, 5)],
    ['2026-01-02T04:04:05.678+01:00', AT],
    ['2026-01-02T03:04:05.678912345Z', AT],
    ['1970-01-01T00:00:00Z', 0],
    ['', undefined],
    ['soon', undefined],
    [undefined, undefined],
  ])('%s is %s', (text, expected) => expect(parseRfc3339(text)).toBe(expected));
});
