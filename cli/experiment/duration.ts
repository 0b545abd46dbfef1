// Durations as an experiment's file and its expressions write them: "250ms", "10s", "1h30m", "1d". schema.json allows the
// same texts. Pure.

import { UserError } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';

/** Milliseconds of each unit. */
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** For messages about a text that is none. */
export const DURATION_EXAMPLES = '250ms, 10s, 1h30m';
/** The pattern in schema.json. */
export const DURATION_PATTERN = /^(\d+(\.\d+)?(ms|s|m|h|d))+$/;

/** Undefined for any other text: without a unit, below zero. */
export function durationMs(text: string): number | undefined {
  if (!DURATION_PATTERN.test(text)) return undefined;
  let total = 0;
  for (const [, figure = '', unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) {
    total += Number(figure) * (getOwn(UNITS, unit) ?? 0);
  }
  return total;
}

/** The same of a text that has to be a duration. Throws UserError. */
export function milliseconds(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new UserError(`"${text}" is no duration as ${DURATION_EXAMPLES}`);
  return ms;
}
