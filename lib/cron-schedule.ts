// The schedules of CronJobs, as robfig/cron reads the five fields and the descriptors that upstream's controller gives it, and its words
// for what is wrong with one. The API server refuses by it, the controller counts by it. When a schedule is due next is
// cron-times.ts's. Pure.

import { parseGoDuration } from './go-duration.ts';

interface Bounds {
  readonly min: number;
  readonly max: number;
  /** "jan" is min, and so on. */
  readonly names?: readonly string[];
}

const MINUTES: Bounds = { min: 0, max: 59 };
const HOURS: Bounds = { min: 0, max: 23 };
const DAYS: Bounds = { min: 1, max: 31 };
const MONTHS: Bounds = { min: 1, max: 12, names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ') };
const WEEKDAYS: Bounds = { min: 0, max: 6, names: 'sun mon tue wed thu fri sat'.split(' ') };

const YEARLY = '0 0 1 1 *';
const DAILY = '0 0 * * *';
const DESCRIPTORS: ReadonlyMap<string, string> = new Map([
  ['@yearly', YEARLY],
  ['@annually', YEARLY],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', DAILY],
  ['@midnight', DAILY],
  ['@hourly', '0 * * * *'],
]);
const EVERY = '@every ';

/** One field: the values that match, and whether it was a star, by which days of the month and of the week go together. */
export interface CronField {
  readonly values: ReadonlySet<number>;
  readonly star: boolean;
}

export interface CronFields {
  readonly kind: 'fields';
  readonly minute: CronField;
  readonly hour: CronField;
  readonly day: CronField;
  readonly month: CronField;
  /** 0 is Sunday. */
  readonly weekday: CronField;
  /** Of "TZ=…"; undefined where the schedule has none. */
  readonly timeZone: string | undefined;
}

export type CronSchedule =
  | CronFields
  /** "@every 90s": whole seconds, one at least. */
  | { readonly kind: 'every'; readonly ms: number };

/** Its message is what is wrong with the schedule, in the words of robfig/cron. */
export class ScheduleError extends Error {
  override name = 'ScheduleError';
}

/** What is wrong with it; undefined for a valid schedule. */
export function scheduleError(schedule: string): string | undefined {
  try {
    parseSchedule(schedule);
    return undefined;
  } catch (error) {
    if (error instanceof ScheduleError) return error.message;
    throw error;
  }
}

/** Throws ScheduleError. */
export function parseSchedule(text: string): CronSchedule {
  const zone = /^(?:CRON_)?TZ=(\S*)\s/.exec(text);
  const timeZone = zone?.[1];
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    throw new ScheduleError(`provided bad location ${timeZone}: unknown time zone ${timeZone}`);
  }
  const spec = zone === null ? text : text.slice(zone[0].length).trim();
  if (spec.startsWith(EVERY)) return parseEvery(spec);
  const named = DESCRIPTORS.get(spec);
  if (spec.startsWith('@') && named === undefined) throw new ScheduleError(`unrecognized descriptor: ${spec}`);
  return parseFields(named ?? spec, timeZone);
}

function parseFields(spec: string, timeZone: string | undefined): CronFields {
  const fields = spec.split(/\s+/).filter((field) => field !== '');
  const [minute, hour, day, month, weekday] = fields;
  if (
    minute === undefined ||
    hour === undefined ||
    day === undefined ||
    month === undefined ||
    weekday === undefined ||
    fields.length > 5
  ) {
    throw new ScheduleError(`expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`);
  }
  return {
    kind: 'fields',
    minute: parseField(minute, MINUTES),
    hour: parseField(hour, HOURS),
    day: parseField(day, DAYS),
    month: parseField(month, MONTHS),
    weekday: parseField(weekday, WEEKDAYS),
    timeZone,
  };
}

function parseEvery(spec: string): CronSchedule {
  const duration = spec.slice(EVERY.length);
  const ms = parseGoDuration(duration);
  if (ms === undefined) {
    throw new ScheduleError(`failed to parse duration ${spec}: time: invalid duration ${JSON.stringify(duration)}`);
  }
  return { kind: 'every', ms: Math.max(1000, Math.floor(ms / 1000) * 1000) };
}

function parseField(text: string, bounds: Bounds): CronField {
  const values = new Set<number>();
  let star = false;
  for (const range of text.split(',')) {
    if (range === '') continue;
    const { first, last, step, isStar } = parseRange(range, bounds);
    for (let value = first; value <= last; value += step) values.add(value);
    star ||= isStar;
  }
  return { values, star };
}

interface Range {
  readonly first: number;
  readonly last: number;
  readonly step: number;
  readonly isStar: boolean;
}

/** "5", "1-5", "*", "?", each with "/step" or without. A number with a step goes on to the end. */
function parseRange(range: string, { min, max, names }: Bounds): Range {
  const [span = '', stepText, ...moreSteps] = range.split('/');
  const [low = '', high, ...moreEnds] = span.split('-');
  const any = low === '*' || low === '?';
  const first = any ? min : numberOrName(low, min, names);
  let last = any ? max : first;
  if (!any && high !== undefined) {
    if (moreEnds.length > 0) throw new ScheduleError(`too many hyphens: ${range}`);
    last = numberOrName(high, min, names);
  }
  if (moreSteps.length > 0) throw new ScheduleError(`too many slashes: ${range}`);
  const step = stepText === undefined ? 1 : parseNumber(stepText);
  if (stepText !== undefined && high === undefined) last = max;
  if (first < min) throw new ScheduleError(`beginning of range (${first}) below minimum (${min}): ${range}`);
  if (last > max) throw new ScheduleError(`end of range (${last}) above maximum (${max}): ${range}`);
  if (first > last) throw new ScheduleError(`beginning of range (${first}) beyond end of range (${last}): ${range}`);
  if (step === 0) throw new ScheduleError(`step of range should be a positive number: ${range}`);
  // A star of steps is no star.
  return { first, last, step, isStar: any && step === 1 };
}

function numberOrName(text: string, first: number, names: readonly string[] | undefined): number {
  const index = names?.indexOf(text.toLowerCase()) ?? -1;
  return index < 0 ? parseNumber(text) : first + index;
}

function parseNumber(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) {
    throw new ScheduleError(
      `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  const number = Number(text);
  if (number < 0) throw new ScheduleError(`negative number (${number}) not allowed: ${text}`);
  return number;
}

/** A name of the IANA database, by the copy that the runtime has. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
