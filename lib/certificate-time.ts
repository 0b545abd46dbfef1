// How long a certificate holds: X.509's times in OpenSSL's spelling ("Nov 22 16:00:00 2026 GMT"), which is how Node hands
// them out. Pure.

import { type EpochMs, epochMs } from './clock.ts';

/** Of `X509Certificate.validFrom` and `validTo`, and of a peer certificate's `valid_to`. Throws RangeError for another text. */
export function certificateTime(text: string): EpochMs {
  const parsed = Date.parse(text);
  if (Number.isNaN(parsed)) throw new RangeError(`${JSON.stringify(text)} is not the time of a certificate`);
  return epochMs(parsed);
}
