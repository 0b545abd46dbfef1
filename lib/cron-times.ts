// When a schedule is due, on the clock of a time zone, as robfig/cron counts: an hour that a change to summer time leaves out is not
// made up for, one that comes twice counts twice. Day of the month and day of the week both have to match where one of them is
// a star, else either. Pure.

import { type EpochMs, epochMs, plusMs } from './clock.ts';
import type { CronFields, CronSchedule } from './cron-schedule.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** A schedule that does not come up in so many years never does: 31 February. */
const YEARS = 5;

interface WallTime {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  /** 0 is Sunday. */
  readonly weekday: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(timeZone, format);
  return format;
}

function wallTime(at: EpochMs, timeZone: string): WallTime {
  const parts = new Map(
    formatOf(timeZone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const [year, month, day] = [part('year'), part('month'), part('day')];
  const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay();
  return { year, month, day, weekday, hour: part('hour'), minute: part('minute'), second: part('second') };
}

/** Ms since midnight, as the clock on the wall counts them. */
const timeOfDay = ({ hour, minute, second }: WallTime): number => hour * HOUR + minute * MINUTE + second * SECOND;

/** The zone's offset at a moment as RFC 3339 writes it: "+01:00", "Z". */
export function rfc3339InZone(at: EpochMs, timeZone: string): string {
  const { year, month, day, hour, minute, second } = wallTime(at, timeZone);
  const whole = Math.floor(at / SECOND) * SECOND;
  const local = Date.UTC(year, month - 1, day, hour, minute, second);
  const offset = Math.round((local - whole) / MINUTE);
  const two = (value: number): string => String(value).padStart(2, '0');
  const sign = offset < 0 ? '-' : '+';
  const text = new Date(local).toISOString().slice(0, 19);
  const size = Math.abs(offset);
  return offset === 0 ? `${text}Z` : `${text}${sign}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** The first moment after `after` at which the schedule is due, on a whole second; undefined where it never is. */
export function nextTime(schedule: CronSchedule, after: EpochMs, timeZone: string): EpochMs | undefined {
  if (schedule.kind === 'every') return epochMs(Math.floor(plusMs(after, schedule.ms) / SECOND) * SECOND);
  const zone = schedule.timeZone ?? timeZone;
  let at = epochMs((Math.floor(after / SECOND) + 1) * SECOND);
  const lastYear = wallTime(at, zone).year + YEARS;
  for (;;) {
    const wall = wallTime(at, zone);
    if (wall.year > lastYear) return undefined;
    const later = laterThan(schedule, wall, at, zone);
    if (later === undefined) return at;
    at = later;
  }
}

/** A moment before which the schedule is not due, by the largest field that does not match; undefined where all do. */
function laterThan(schedule: CronFields, wall: WallTime, at: EpochMs, zone: string): EpochMs | undefined {
  const { minute, hour, month } = schedule;
  if (!month.values.has(wall.month)) {
    const days = new Date(Date.UTC(wall.year, wall.month, 0)).getUTCDate() - wall.day;
    // Not to the last day: a change of the clock must not lead past it.
    return days > 1 ? plusMs(at, (days - 1) * DAY) : nextDay(wall, at, zone);
  }
  if (!dayMatches(schedule, wall)) return nextDay(wall, at, zone);
  const pastHour = wall.minute * MINUTE + wall.second * SECOND;
  if (!hour.values.has(wall.hour)) return plusMs(at, HOUR - pastHour);
  if (!minute.values.has(wall.minute) || wall.second > 0) return plusMs(at, MINUTE - wall.second * SECOND);
  return undefined;
}

/** The first moment of the next day, or one on this day that is nearer to it where the clock is changed in between. */
function nextDay(wall: WallTime, at: EpochMs, zone: string): EpochMs {
  const next = plusMs(at, DAY - timeOfDay(wall));
  const past = timeOfDay(wallTime(next, zone));
  if (past === 0 || past > DAY / 2) return next;
  // Summer time has begun; at midnight, where an hour before it is still the day before.
  const midnight = plusMs(next, -past);
  return wallTime(midnight, zone).day === wall.day ? next : midnight;
}

function dayMatches({ day, weekday }: CronFields, wall: WallTime): boolean {
  const [ofMonth, ofWeek] = [day.values.has(wall.day), weekday.values.has(wall.weekday)];
  return day.star || weekday.star ? ofMonth && ofWeek : ofMonth || ofWeek;
}
