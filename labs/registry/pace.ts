// A stream at a limited rate: a tenth of a second's bytes at once, then a pause.

import { type Clock, elapsedMs } from '../../lib/clock.ts';

const STEPS_PER_SECOND = 10;

/** Rejects with the signal's reason when it aborts. */
export async function* paced(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesPerSecond: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const step = Math.max(1, Math.floor(bytesPerSecond / STEPS_PER_SECOND));
  const began = clock.monotonic();
  let sent = 0;
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; at += step) {
      const due = (sent / bytesPerSecond) * 1000;
      const early = due - elapsedMs(began, clock.monotonic());
      // Until the rate allows the next bytes.
      if (early > 0) await clock.sleep(early, signal);
      const piece = chunk.subarray(at, at + step);
      yield piece;
      sent += piece.length;
    }
  }
}
