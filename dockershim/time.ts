// Times as CRI has them: nanoseconds since the epoch, in decimal.

import type { Clock } from '../lib/clock.ts';

/** Now. The clock has milliseconds, with or without a fraction. */
export function nanosAt(clock: Pick<Clock, 'now'>): string {
  return `${Math.floor(clock.now())}000000`;
}
