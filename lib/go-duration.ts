// Go's time.Duration as text, in both directions: every duration in Kubernetes' flags, configuration and messages is written so. Pure.

import { getOwn } from './own-property.ts';

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/** Milliseconds, or undefined for text that Go would refuse ("5", "", "1 m"). */
export function parseGoDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const body = text.replace(/^[+-]/, '');
  if (body === '0') return 0;
  let total = 0;
  let at = 0;
  while (at < body.length) {
    PART.lastIndex = at;
    const match = PART.exec(body);
    if (match === null) return undefined;
    total += Number(match[1]) * (getOwn(UNIT_MS, match[2] ?? '') ?? Number.NaN);
    at = PART.lastIndex;
  }
  return at === 0 ? undefined : sign * total;
}

/** Milliseconds as Go prints a time.Duration: "1m30s", "100ms", "250µs", "0s". */
export function formatGoDuration(ms: number): string {
  if (ms === 0) return '0s';
  const sign = ms < 0 ? '-' : '';
  const left = Math.abs(ms);
  if (left < 0.001) return `${sign}${left * 1e6}ns`;
  if (left < 1) return `${sign}${Number((left * 1000).toFixed(3))}µs`;
  if (left < 1000) return `${sign}${Number(left.toFixed(6))}ms`;
  const hours = Math.floor(left / 3_600_000);
  const minutes = Math.floor(left / 60_000) % 60;
  const seconds = Number(((left % 60_000) / 1000).toFixed(9));
  const tail = `${seconds}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${tail}`;
  return minutes > 0 ? `${sign}${minutes}m${tail}` : `${sign}${tail}`;
}

/** The same to the millisecond, as messages have it: "850ms", "1.2s", "1m20s", "5m0s". */
export function goDuration(ms: number): string {
  return formatGoDuration(Math.trunc(ms));
}
