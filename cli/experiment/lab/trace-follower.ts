// Follows the trace of an agent through its restarts: what its socket sends again after each connection comes once.

import type { Clock } from '../../../lib/clock.ts';
import { errnoOf } from '../../../lib/errors.ts';
import { repeat } from '../../../lib/retry.ts';
import type { Span } from '../../../lib/trace.ts';
import { followSpans } from '../../demo/spans.ts';

/** Between two tries to reach an agent that is away, ms. */
const RETRY_MS = 100;

/** Until `signal` aborts. The socket sends the spans that the agent keeps, and then new ones. */
export async function followTrace(
  socket: string,
  onSpan: (span: Span) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let newest: Pick<Span, 'id' | 'start'> | undefined;
  const follow = async (): Promise<undefined> => {
    const reached = newest;
    const stream = await followSpans(socket, (span) => {
      // Ids begin anew with each agent; one that was killed and started has later moments.
      if (reached !== undefined && span.id <= reached.id && span.start <= reached.start) return;
      if (newest === undefined || span.start > newest.start) newest = { id: span.id, start: span.start };
      onSpan(span);
    }).catch((error: unknown) => {
      // The agent is not there: it was killed, or is being started.
      if (errnoOf(error) === undefined) throw error;
      return undefined;
    });
    if (stream === undefined) return;
    const stop = (): void => stream.close();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    await stream.ended;
    signal.removeEventListener('abort', stop);
  };
  await repeat(follow, { clock, everyMs: RETRY_MS, signal });
}
