// When an action that failed may be tried again: pauses that grow until it succeeds. Data and pure functions; the times
// are epoch ms.

import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../lib/backoff.ts';
import { type EpochMs, elapsedMs, plusMs } from '../../lib/clock.ts';

export interface Retry {
  readonly pause: BackoffEntry<EpochMs>;
  /** Not before this time. */
  readonly at: EpochMs;
}

/** By action id. */
export type Retries = ReadonlyMap<string, Retry>;

export const NO_RETRIES: Retries = new Map();

/** After one more failure. `retryAt`: when another attempt makes sense, where that is known better. */
export function retryAfterFailure(
  retries: Retries,
  id: string,
  policy: BackoffPolicy,
  now: EpochMs,
  retryAt?: EpochMs,
): Retries {
  const pause = nextBackoff(policy, retries.get(id)?.pause, now);
  return new Map(retries).set(id, { pause, at: retryAt ?? plusMs(now, pause.delayMs) });
}

export function retryDone(retries: Retries, id: string): Retries {
  if (!retries.has(id)) return retries;
  const left = new Map(retries);
  left.delete(id);
  return left;
}

/**
 * When the action may be tried; undefined is "now". `longestMs`: a wait longer than any pause there is means that the
 * clock was set back, and is none.
 */
export function notBefore(retries: Retries, id: string, longestMs: number, now: EpochMs): EpochMs | undefined {
  const at = retries.get(id)?.at;
  return at === undefined || at <= now || elapsedMs(now, at) > longestMs ? undefined : at;
}
