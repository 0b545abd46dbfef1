// What one pod's part of the agent's trace shows: the newest spans that it keeps, and the calls that are under way.

import type { OpenCall, Span } from '../../../lib/trace.ts';
import { readTraceHistory } from '../../demo/spans.ts';

export interface TraceFacts {
  readonly spans: readonly Span[];
  /** Calls that have not ended, oldest first. */
  readonly open: readonly OpenCall[];
}

const isSpan = (call: Span | OpenCall): call is Span => 'outcome' in call;

/** The lines of a part of the stream; the line that is not complete yet is left out. Pure. */
export function callsIn(text: string, accept: (call: Span | OpenCall) => boolean): TraceFacts {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  const calls = lines
    .filter((line) => line !== '')
    .map((line): Span | OpenCall => JSON.parse(line))
    .filter(accept);
  return { spans: calls.filter(isSpan), open: calls.filter((call): call is OpenCall => !isSpan(call)) };
}

/** Rejects with a system error where no agent serves the socket. */
export async function collectTrace(path: string, accept: (call: Span | OpenCall) => boolean): Promise<TraceFacts> {
  return callsIn(await readTraceHistory(path, true), accept);
}
