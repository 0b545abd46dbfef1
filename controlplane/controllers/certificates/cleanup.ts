// When a certificate request has had its time. Pure.

import { type EpochMs, elapsedMs, plusMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { CertificateSigningRequest } from '../shared/objects.ts';

const HOUR_MS = 3_600_000;
/** Since the request came, for one without conditions. */
const PENDING_MS = 24 * HOUR_MS;
/** Since the condition, for what is approved, denied or failed. */
const DECIDED_MS = HOUR_MS;

/** The moment from which on it may go. `expires`: end of the issued certificate. */
export function removableAt(
  { metadata, status }: CertificateSigningRequest,
  expires: EpochMs | undefined,
): EpochMs | undefined {
  const conditions = status?.conditions ?? [];
  const created = parseRfc3339(metadata.creationTimestamp);
  const moments = conditions.flatMap(({ type, status: is, lastUpdateTime }) => {
    const at = parseRfc3339(lastUpdateTime);
    const counts = type === 'Approved' || type === 'Denied' || type === 'Failed';
    return counts && is !== 'False' && at !== undefined ? [plusMs(at, DECIDED_MS)] : [];
  });
  if (conditions.length === 0 && created !== undefined) moments.push(plusMs(created, PENDING_MS));
  if (expires !== undefined) moments.push(expires);
  const [first, ...others] = moments;
  return others.reduce((earliest, each) => (earliest !== undefined && each < earliest ? each : earliest), first);
}

/** ms from now; 0 when its time is over. */
export function removableInMs(at: EpochMs, now: EpochMs): number {
  return Math.max(0, elapsedMs(now, at));
}
