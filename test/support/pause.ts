// How long a test that polls waits between two looks. Pure: the polling itself is each harness's own.

/** Of any pause, ms. */
const MOST_MS = 1_000;
/** Of one that follows from the time so far alone, ms: what shows for a second only must be seen. */
const MOST_FOR_TIME_MS = 500;

export interface Looks {
  /** The shortest pause, ms. */
  readonly leastMs: number;
  /** How long the last look took, ms. */
  readonly tookMs: number;
  /** How long has been waited so far, ms. */
  readonly waitedMs: number;
}

/**
 * Looks must not take the processor from what they wait for, least of all those that start programs (kubectl, find): the pause is
 * twice what the look took. It is a fifth of the time so far, too: what was not there for seconds is rarely there in the next 20 ms.
 */
export function pauseMs({ leastMs, tookMs, waitedMs }: Looks): number {
  return Math.min(Math.max(leastMs, 2 * tookMs, Math.min(waitedMs / 5, MOST_FOR_TIME_MS)), MOST_MS);
}
