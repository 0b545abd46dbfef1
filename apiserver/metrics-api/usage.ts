// From two readings of one thing to what it uses: metrics-server's rules. Pure.

import { type EpochMs, elapsedMs } from '../../lib/clock.ts';
import type { Point } from './resource-text.ts';

export interface Usage {
  /** Billionths of a core. */
  readonly nanoCores: number;
  /** Bytes. */
  readonly memory: number;
  /** Of the newer reading. */
  readonly at: EpochMs;
  /** Between the two readings, ms. */
  readonly windowMs: number;
}

/** The newest reading, and the one that it is compared with. */
export interface Readings {
  readonly last: Point;
  readonly before: Point | undefined;
}

/** A container that is younger than a period but older than this is compared with its start. ms. */
const YOUNGEST_MS = 10_000;

/** `known`: what there was; `periodMs`: between two readings. */
export function nextReadings(known: Readings | undefined, next: Point, periodMs: number): Readings {
  const { startedAt } = next;
  if (startedAt !== undefined) {
    const age = elapsedMs(startedAt, next.at);
    if (age >= YOUNGEST_MS && age < periodMs) {
      return { last: next, before: { at: startedAt, startedAt, cpu: 0, memory: next.memory } };
    }
  }
  if (known === undefined) return { last: next, before: undefined };
  // Another instance of the container: it counts from 0 again.
  if (startedAt !== undefined && startedAt >= known.last.at) return { last: next, before: undefined };
  if (next.at <= known.last.at) return known;
  return { last: next, before: known.last };
}

/** undefined while there is one reading alone, or the counter has gone back. */
export function usageOf({ last, before }: Readings): Usage | undefined {
  if (before === undefined || last.cpu < before.cpu) return undefined;
  const windowMs = elapsedMs(before.at, last.at);
  if (windowMs <= 0) return undefined;
  return {
    nanoCores: Math.trunc(((last.cpu - before.cpu) * 1e12) / windowMs),
    memory: Math.trunc(last.memory),
    at: last.at,
    windowMs,
  };
}
