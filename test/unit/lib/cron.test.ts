// Schedules: which times they name. The expected times are those of robfig/cron.

import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../lib/clock.ts';
import { parseSchedule, scheduleError } from '../../../lib/cron-schedule.ts';
import { nextTime, rfc3339InZone } from '../../../lib/cron-times.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';

function times(schedule: string, after: string, zone: string, count: number): readonly string[] {
  const found: string[] = [];
  let at = epochMs(Date.parse(after));
  while (found.length < count) {
    const next = nextTime(parseSchedule(schedule), at, zone);
    if (next === undefined) return [...found, 'never'];
    found.push(rfc3339(next));
    at = next;
  }
  return found;
}

describe('the next times', () => {
  it.each<[string, string, string, string, string[]]>([
    ['every minute, after a part of one', '* * * * *', '2026-01-01T00:00:30.5Z', 'UTC', ['2026-01-01T00:01:00Z']],
    ['not the same moment', '0 0 * * *', '2026-01-01T00:00:00Z', 'UTC', ['2026-01-02T00:00:00Z']],
    ['steps', '5/20 1-3/2 * * *', '2026-01-01T01:30:00Z', 'UTC', ['2026-01-01T01:45:00Z', '2026-01-01T03:05:00Z']],
    ['names', '0 9 * feb mon-tue', '2026-01-15T00:00:00Z', 'UTC', ['2026-02-02T09:00:00Z', '2026-02-03T09:00:00Z']],
    ['either day', '0 0 13 * FRI', '2026-03-06T00:00:00Z', 'UTC', ['2026-03-13T00:00:00Z', '2026-03-20T00:00:00Z']],
    ['both, with a star', '0 0 * * FRI', '2026-03-06T00:00:00Z', 'UTC', ['2026-03-13T00:00:00Z']],
    [
      'either, with a star of steps',
      '0 0 */15 * FRI',
      '2026-03-06T01:00:00Z',
      'UTC',
      ['2026-03-13T00:00:00Z', '2026-03-16T00:00:00Z'],
    ],
    ['a leap year', '0 0 29 2 *', '2026-01-01T00:00:00Z', 'UTC', ['2028-02-29T00:00:00Z', '2032-02-29T00:00:00Z']],
    ['never', '59 23 31 2 *', '2026-01-01T00:00:00Z', 'UTC', ['never']],
    ['@hourly', '@hourly', '2026-01-01T00:10:00Z', 'UTC', ['2026-01-01T01:00:00Z']],
    ['@weekly', '@weekly', '2026-01-01T00:10:00Z', 'UTC', ['2026-01-04T00:00:00Z']],
    ['@every', '@every 1m30s', '2026-01-01T00:00:00.7Z', 'UTC', ['2026-01-01T00:01:30Z', '2026-01-01T00:03:00Z']],
    ['@every, one second at least', '@every 10ms', '2026-01-01T00:00:00Z', 'UTC', ['2026-01-01T00:00:01Z']],
    ['half an hour off', '0 9 * * *', '2026-01-01T00:00:00Z', 'Asia/Kolkata', ['2026-01-01T03:30:00Z']],
    ['a zone of its own', 'TZ=Asia/Tokyo 0 9 * * *', '2026-01-01T01:00:00Z', 'UTC', ['2026-01-02T00:00:00Z']],
    ['an hour that is left out', '30 2 * * *', '2026-03-08T05:00:00Z', 'America/New_York', ['2026-03-09T06:30:00Z']],
    ['a day of 23 hours', '0 12 * * *', '2026-03-07T18:00:00Z', 'America/New_York', ['2026-03-08T16:00:00Z']],
    [
      'an hour that comes twice',
      '30 1 * * *',
      '2026-11-01T04:00:00Z',
      'America/New_York',
      ['2026-11-01T05:30:00Z', '2026-11-01T06:30:00Z', '2026-11-02T06:30:00Z'],
    ],
    [
      'a midnight that is left out',
      '0 1 4,5 11 *',
      '2018-11-03T12:00:00Z',
      'America/Sao_Paulo',
      ['2018-11-04T03:00:00Z', '2018-11-05T03:00:00Z'],
    ],
    [
      'the next day after a midnight that comes twice',
      '0 0 * * *',
      '2018-02-17T12:00:00Z',
      'America/Sao_Paulo',
      ['2018-02-18T03:00:00Z'],
    ],
    ['west of the line of dates', '0 0 1 * *', '2026-01-15T00:00:00Z', 'Pacific/Honolulu', ['2026-02-01T10:00:00Z']],
  ])('%s', (_what, schedule, after, zone, wanted) => {
    expect(times(schedule, after, zone, wanted.length)).toEqual(wanted);
  });

  it('go on where a zone leaves out a whole day', () => {
    expect(times('0 0 * * *', '2011-12-29T12:00:00Z', 'Pacific/Apia', 2)).toEqual([
      '2011-12-30T10:00:00Z',
      '2011-12-31T10:00:00Z',
    ]);
    expect(times('0 12 31 12 *', '2011-12-28T00:00:00Z', 'Pacific/Apia', 1)).toEqual(['2011-12-30T22:00:00Z']);
  });
});

it.each([
  ['2026-07-01T10:00:00Z', 'Europe/Berlin', '2026-07-01T12:00:00+02:00'],
  ['2026-07-01T10:00:00Z', 'America/St_Johns', '2026-07-01T07:30:00-02:30'],
  ['2026-07-01T10:00:00Z', 'UTC', '2026-07-01T10:00:00Z'],
])('%s in %s is %s', (at, zone, wanted) => {
  expect(rfc3339InZone(epochMs(Date.parse(at)), zone)).toBe(wanted);
});

it('a schedule of seven fields, and one that never ends, are refused', () => {
  expect(scheduleError('* * * * * * *')).toBe('expected exactly 5 fields, found 7: [* * * * * * *]');
  expect(scheduleError('* * * * 7')).toBe('end of range (7) above maximum (6): 7');
});
