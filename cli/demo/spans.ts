// Reads the agent's trace socket: one JSON line per span, the newest ones first and then, where wanted, live.

import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { errorMessage } from '../../lib/errors.ts';
import { DETAIL_REQUEST, OPEN_REQUEST, type Span } from '../../lib/trace.ts';

export interface SpanStream {
  /** Resolves when the agent has closed the connection. */
  readonly ended: Promise<void>;
  close(): void;
}

/**
 * Resolves when connected; `onSpan` is then called for every span, new ones with their details where `detail` is set. A broken
 * connection ends the stream silently.
 */
export async function followSpans(
  socketPath: string,
  onSpan: (span: Span) => void,
  detail = false,
): Promise<SpanStream> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opened = connect(socketPath, () => resolve(opened));
    opened.once('error', reject);
  });
  // The agent going away is what the demo itself brings about in the end.
  socket.on('error', () => socket.destroy());
  if (detail) socket.write(`${DETAIL_REQUEST}\n`);
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

/** What a person reads where the socket cannot be connected to. */
export function noTrace(socketPath: string, error: unknown): string {
  return `no agent serves its trace on ${socketPath}: ${errorMessage(error)}`;
}

/** An agent that does not answer for this long counts as away, ms. */
const HISTORY_LIMIT_MS = 3_000;

/**
 * The spans that the agent keeps, as the socket's text: one JSON line each, and with `open` the calls that are under way. The
 * connection is half-closed at once: the agent sends what it has and ends it. Rejects with a system error where no agent serves
 * the socket.
 */
export async function readTraceHistory(socketPath: string, open = false): Promise<string> {
  const socket = connect({ path: socketPath, allowHalfOpen: true });
  const late = Object.assign(new Error(`${socketPath} does not answer`), { code: 'ETIMEDOUT' });
  socket.setTimeout(HISTORY_LIMIT_MS, () => socket.destroy(late));
  socket.setEncoding('utf8').end(open ? `${OPEN_REQUEST}\n` : '');
  let text = '';
  for await (const part of socket) text += part;
  return text;
}
