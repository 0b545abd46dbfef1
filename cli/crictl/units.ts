// Times and sizes in the form in which crictl prints and reads them: "About a minute ago", "4.22MB", "1m30s",
// RFC 3339 with nanoseconds. Pure; the current time is an argument.

import { type EpochMs, elapsedMs, epochMs, plusMs } from '../../lib/clock.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';

const NANOS_PER_SECOND = 1_000_000_000n;

/** How long something lasts, roughly, in words; `ms` that are negative are less than a second too. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < 1) return 'Less than a second';
  if (seconds === 1) return '1 second';
  if (seconds < 60) return `${seconds} seconds`;
  const minutes = Math.trunc(ms / 60_000);
  if (minutes === 1) return 'About a minute';
  if (minutes < 60) return `${minutes} minutes`;
  const hours = Math.trunc(ms / 3_600_000 + 0.5);
  if (hours === 1) return 'About an hour';
  if (hours < 48) return `${hours} hours`;
  const days = Math.trunc(hours / 24);
  if (days < 14) return `${days} days`;
  if (days < 60) return `${Math.trunc(days / 7)} weeks`;
  if (days < 730) return `${Math.trunc(days / 30)} months`;
  return `${Math.trunc(Math.trunc(ms / 3_600_000) / 24 / 365)} years`;
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB', 'YB'];

/** Bytes in powers of 1000, with `digits` significant digits. */
export function humanSize(bytes: number, digits = 4): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < SIZES.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${generalFormat(size, digits)}${SIZES[unit]}`;
}

/** C's and Go's %.{digits}g. */
function generalFormat(value: number, digits: number): string {
  const [mantissa = '', exponent] = value.toExponential(digits - 1).split('e');
  const power = Number(exponent);
  if (power >= -4 && power < digits) return String(Number(value.toPrecision(digits)));
  const sign = power < 0 ? '-' : '+';
  return `${Number(mantissa)}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

const ZERO_TIME = '0001-01-01T00:00:00Z';

const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');

function offset(at: Date): { readonly sign: string; readonly hours: string; readonly minutes: string; zero: boolean } {
  const minutes = -at.getTimezoneOffset();
  const absolute = Math.abs(minutes);
  return {
    sign: minutes < 0 ? '-' : '+',
    hours: pad(Math.trunc(absolute / 60)),
    minutes: pad(absolute % 60),
    zero: minutes === 0,
  };
}

function parts(nanos: bigint): { at: Date; date: string; time: string } {
  const seconds = nanos / NANOS_PER_SECOND - (nanos % NANOS_PER_SECOND < 0n ? 1n : 0n);
  const fraction = String(nanos - seconds * NANOS_PER_SECOND)
    .padStart(9, '0')
    .replace(/0+$/, '');
  const at = new Date(Number(seconds) * 1000);
  return {
    at,
    date: `${pad(at.getFullYear(), 4)}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`,
    time: `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}${fraction === '' ? '' : `.${fraction}`}`,
  };
}

/** Nanoseconds since the epoch in the machine's zone (RFC 3339 with as many digits as it takes); undefined is Go's zero. */
export function formatNanos(nanos: bigint | undefined): string {
  if (nanos === undefined) return ZERO_TIME;
  const { at, date, time } = parts(nanos);
  const { sign, hours, minutes, zero } = offset(at);
  return `${date}T${time}${zero ? 'Z' : `${sign}${hours}:${minutes}`}`;
}

/** The same as Go's time.Time prints itself: "2026-01-02 15:04:05.999 +0100 CET". */
export function goTimeString(nanos: bigint): string {
  const { at, date, time } = parts(nanos);
  const { sign, hours, minutes } = offset(at);
  const zone = new Intl.DateTimeFormat('en', { timeZoneName: 'short' })
    .formatToParts(at)
    .find(({ type }) => type === 'timeZoneName')?.value;
  return `${date} ${time} ${sign}${hours}${minutes} ${zone ?? ''}`;
}

/** "5 minutes ago" for nanoseconds since the epoch. */
export function ago(nanos: string, now: EpochMs): string {
  return `${humanDuration(elapsedMs(epochMs(Number(BigInt(nanos) / 1_000_000n)), now))} ago`;
}

/**
 * A moment as --since takes it: a duration back from `now`, RFC 3339 with or without parts and zone (the machine's
 * zone then), or seconds since the epoch. undefined for anything else.
 */
export function parseSince(text: string, now: EpochMs): EpochMs | undefined {
  const duration = text === '0' ? undefined : parseGoDuration(text);
  if (duration !== undefined) return epochMs(Math.trunc(plusMs(now, -duration) / 1000) * 1000);
  if (/^\d+(\.\d+)?$/.test(text)) return epochMs(Number(text) * 1000);
  const match = /^(\d{4}-\d\d-\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d(?:\.\d+)?))?)?)?(Z|z|[+-]\d\d:\d\d)?$/.exec(text);
  if (match === null) return undefined;
  const [, date, hours = '00', minutes = '00', seconds = '00', zone = ''] = match;
  const parsed = Date.parse(`${date}T${hours}:${minutes}:${seconds}${zone.toUpperCase()}`);
  return Number.isNaN(parsed) ? undefined : epochMs(parsed);
}
