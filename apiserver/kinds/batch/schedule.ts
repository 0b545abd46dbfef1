// The syntax of a CronJob's schedule, as the controller's parser reads it, in its words. When a schedule is due is the
// controller's question; this only knows what is wrong with one.

interface Bounds {
  readonly min: number;
  readonly max: number;
  /** "jan" is min, and so on. */
  readonly names?: readonly string[];
}

const FIELDS: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ') },
  { min: 0, max: 6, names: 'sun mon tue wed thu fri sat'.split(' ') },
];
const DESCRIPTORS = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];
const EVERY = '@every ';
/** A duration of Go: "1h30m". */
const DURATION = /^[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))+)$/;

/** Thrown by the parts, caught by scheduleError. */
class ScheduleError extends Error {
  override name = 'ScheduleError';
}

/** What is wrong with it; undefined for a valid schedule. */
export function scheduleError(schedule: string): string | undefined {
  try {
    checkSchedule(schedule);
    return undefined;
  } catch (error) {
    if (error instanceof ScheduleError) return error.message;
    throw error;
  }
}

function checkSchedule(text: string): void {
  const zone = /^(?:CRON_)?TZ=(\S*)\s/.exec(text);
  if (zone?.[1] !== undefined && !isTimeZone(zone[1])) {
    throw new ScheduleError(`provided bad location ${zone[1]}: unknown time zone ${zone[1]}`);
  }
  const spec = zone === null ? text : text.slice(zone[0].length).trim();
  if (spec.startsWith('@')) {
    checkDescriptor(spec);
    return;
  }
  const fields = spec.split(/\s+/).filter((field) => field !== '');
  if (fields.length !== FIELDS.length) {
    throw new ScheduleError(`expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`);
  }
  for (const [index, bounds] of FIELDS.entries()) {
    for (const range of (fields[index] ?? '').split(',')) if (range !== '') checkRange(range, bounds);
  }
}

function checkDescriptor(spec: string): void {
  if (DESCRIPTORS.includes(spec)) return;
  if (!spec.startsWith(EVERY)) throw new ScheduleError(`unrecognized descriptor: ${spec}`);
  const duration = spec.slice(EVERY.length);
  if (!DURATION.test(duration)) {
    throw new ScheduleError(`failed to parse duration ${spec}: time: invalid duration ${JSON.stringify(duration)}`);
  }
}

/** "5", "1-5", "*", "?", each with "/step" or without. */
function checkRange(range: string, { min, max, names }: Bounds): void {
  const [span = '', step, ...moreSteps] = range.split('/');
  const [low = '', high, ...moreEnds] = span.split('-');
  const any = low === '*' || low === '?';
  const start = any ? min : numberOrName(low, min, names);
  let end = any ? max : start;
  if (!any && high !== undefined) {
    if (moreEnds.length > 0) throw new ScheduleError(`too many hyphens: ${range}`);
    end = numberOrName(high, min, names);
  }
  if (moreSteps.length > 0) throw new ScheduleError(`too many slashes: ${range}`);
  const every = step === undefined ? 1 : parseNumber(step);
  if (step !== undefined && high === undefined) end = max;
  if (start < min) throw new ScheduleError(`beginning of range (${start}) below minimum (${min}): ${range}`);
  if (end > max) throw new ScheduleError(`end of range (${end}) above maximum (${max}): ${range}`);
  if (start > end) throw new ScheduleError(`beginning of range (${start}) beyond end of range (${end}): ${range}`);
  if (every === 0) throw new ScheduleError(`step of range should be a positive number: ${range}`);
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
