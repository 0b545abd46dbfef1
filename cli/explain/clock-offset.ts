// This machine's clock against that of a server, from the Date header of one response: whole seconds, cut off, at some moment
// between the request and the response. Pure.

import { type EpochMs, elapsedMs, epochMs, plusMs } from '../../lib/clock.ts';
import type { ClockFact } from './facts.ts';

const SECOND_MS = 1000;

/** `requested` and `answered` by this machine's clock. Undefined for a header that is no date. */
export function clockOffset(header: string | undefined, requested: EpochMs, answered: EpochMs): ClockFact | undefined {
  const parsed = Date.parse(header ?? '');
  if (Number.isNaN(parsed)) return undefined;
  const waited = Math.max(0, elapsedMs(requested, answered));
  const middle = plusMs(requested, waited / 2);
  const server = plusMs(epochMs(parsed), SECOND_MS / 2);
  return { offsetMs: Math.round(elapsedMs(server, middle)), marginMs: Math.ceil((waited + SECOND_MS) / 2) };
}
