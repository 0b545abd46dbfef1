// Reads the agent's trace socket: one JSON line per span, the newest ones first and then live.

import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Span } from '../../lib/trace.ts';

export interface SpanStream {
  /** Resolves when the agent has closed the connection. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Resolves when connected; `onSpan` is then called for every span. A broken connection ends the stream silently. */
export async function followSpans(socketPath: string, onSpan: (span: Span) => void): Promise<SpanStream> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opened = connect(socketPath, () => resolve(opened));
    opened.once('error', reject);
  });
  // The agent going away is what the demo itself brings about in the end.
  socket.on('error', () => socket.destroy());
  const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY });
  lines.on('line', (line) => onSpan(JSON.parse(line) as Span));
  return {
    ended: new Promise((resolve) => socket.once('close', () => resolve())),
    close: () => {
      lines.close();
      socket.destroy();
    },
  };
}
