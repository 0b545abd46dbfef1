// The newest spans of one pod from the agent's trace socket. The socket sends what it keeps at once and goes on with live
// spans: reading ends when nothing has come for a moment.

import { connect } from 'node:net';
import type { Clock, Timer } from '../../../lib/clock.ts';
import type { Span } from '../../../lib/trace.ts';

/** What is kept comes in one piece; a pause of this length is its end. ms. */
const QUIET_MS = 60;
/** An agent with much to do sends live spans without a pause. ms. */
const LIMIT_MS = 1_000;

/** The spans in a part of the stream; the line that is not complete yet is left out. Pure. */
export function spansIn(text: string, accept: (span: Span) => boolean): readonly Span[] {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line): Span => JSON.parse(line))
    .filter(accept);
}

/** Rejects with a system error where no agent serves the socket. */
export function collectSpans(path: string, clock: Clock, accept: (span: Span) => boolean): Promise<readonly Span[]> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let quiet: Timer | undefined;
    const socket = connect(path);
    const finish = (): void => {
      limit.cancel();
      quiet?.cancel();
      socket.destroy();
      resolve(spansIn(Buffer.concat(parts).toString('utf8'), accept));
    };
    const limit = clock.after(LIMIT_MS, finish);
    const wait = (): void => {
      quiet?.cancel();
      quiet = clock.after(QUIET_MS, finish);
    };
    socket.once('connect', wait);
    socket.on('data', (chunk: Buffer) => {
      parts.push(chunk);
      wait();
    });
    socket.once('end', finish);
    socket.once('error', (error) => {
      limit.cancel();
      quiet?.cancel();
      reject(error);
    });
  });
}
