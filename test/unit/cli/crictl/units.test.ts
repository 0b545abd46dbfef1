import { describe, expect, test } from 'vitest';
import { table } from '../../../../cli/crictl/table.ts';
import { ago, formatNanos, goTimeString, humanDuration, humanSize, parseSince } from '../../../../cli/crictl/units.ts';
import { epochMs } from '../../../../lib/clock.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test.each([
  [-5, 'Less than a second'],
  [999, 'Less than a second'],
  [SECOND, '1 second'],
  [59 * SECOND, '59 seconds'],
  [MINUTE, 'About a minute'],
  [119 * SECOND, 'About a minute'],
  [2 * MINUTE, '2 minutes'],
  [59.9 * MINUTE, '59 minutes'],
  [HOUR, 'About an hour'],
  [1.6 * HOUR, '2 hours'],
  [47 * HOUR, '47 hours'],
  [2 * DAY, '2 days'],
  [13 * DAY, '13 days'],
  [14 * DAY, '2 weeks'],
  [60 * DAY, '2 months'],
  [729 * DAY, '24 months'],
  [730 * DAY, '2 years'],
])('%d ms are %j', (ms, words) => {
  expect(humanDuration(ms)).toBe(words);
});

test.each([
  [0, 4, '0B'],
  [999, 4, '999B'],
  [4096, 4, '4.096kB'],
  [2_139_927, 3, '2.14MB'],
  [12_031_330, 3, '12MB'],
  [716_082, 3, '716kB'],
  [999_999, 3, '1e+03kB'],
  [1e12, 4, '1TB'],
])('%d bytes with %d digits are %j', (bytes, digits, words) => {
  expect(humanSize(bytes, digits)).toBe(words);
});

describe('times', () => {
  const ZONE = process.env['TZ'];
  const inZone = <T>(zone: string, body: () => T): T => {
    process.env['TZ'] = zone;
    try {
      return body();
    } finally {
      if (ZONE === undefined) delete process.env['TZ'];
      else process.env['TZ'] = ZONE;
    }
  };

  test.each([
    ['UTC', 1_795_365_580_284_978_180n, '2026-11-22T16:39:40.28497818Z'],
    ['UTC', 0n, '1970-01-01T00:00:00Z'],
    ['Asia/Kolkata', 1_795_365_580_000_000_000n, '2026-11-22T22:09:40+05:30'],
    ['America/New_York', 1_795_365_580_000_000_001n, '2026-11-22T11:39:40.000000001-05:00'],
  ])('in %s, %d is %s', (zone, nanos, text) => {
    expect(inZone(zone, () => formatNanos(nanos))).toBe(text);
  });

  test('a time that has not come is Go’s zero', () => {
    expect(formatNanos(undefined)).toBe('0001-01-01T00:00:00Z');
  });

  test('Go’s own form', () => {
    expect(inZone('UTC', () => goTimeString(1_795_365_580_284_978_180n))).toBe(
      '2026-11-22 16:39:40.28497818 +0000 UTC',
    );
  });

  test('ago counts from now', () => {
    expect(ago('5000000000', epochMs(10_000))).toBe('5 seconds ago');
  });

  test.each([
    ['42m', 100_000_000 - 42 * MINUTE],
    ['1970-01-02T03:00:00Z', 97_200_000],
    ['1970-01-02T03:00:00.5+01:00', 93_600_500],
    ['1970-01-02T03:00', 97_200_000],
    ['1970-01-02', 86_400_000],
    ['97200.25', 97_200_250],
    ['yesterday', undefined],
    ['1970-99-02', undefined],
  ])('since %s', (text, ms) => {
    expect(inZone('UTC', () => parseSince(text, epochMs(100_000_000)))).toBe(ms);
  });
});

test('columns are at least 20 wide, three apart, and count characters', () => {
  expect(
    table([
      ['A', 'B', 'C'],
      ['x'.repeat(19), 'ü'.repeat(18), 'end'],
    ]),
  ).toBe(`A${' '.repeat(21)}B${' '.repeat(20)}C\n${'x'.repeat(19)}   ${'ü'.repeat(18)}   end\n`);
  expect(table([['cgroup driver:', 'SYSTEMD']], 10)).toBe('cgroup driver:   SYSTEMD\n');
});
