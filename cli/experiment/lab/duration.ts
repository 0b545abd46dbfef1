// Durations of an experiment's file in milliseconds. Pure.

import { parseGoDuration } from '../../../agent/config/duration.ts';
import { UserError } from '../../../lib/errors.ts';

/** "1m30s" in ms. Throws UserError. */
export function durationMs(text: string): number {
  const ms = parseGoDuration(text);
  if (ms === undefined || ms < 0) throw new UserError(`"${text}" is no duration as 500ms, 10s or 1m30s`);
  return ms;
}
