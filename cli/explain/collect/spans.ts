// The newest spans of one pod, from what the agent keeps of its trace.

import type { Span } from '../../../lib/trace.ts';
import { readTraceHistory } from '../../demo/spans.ts';

/** The spans in a part of the stream; the line that is not complete yet is left out. Pure. */
export function spansIn(text: string, accept: (span: Span) => boolean): readonly Span[] {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line): Span => JSON.parse(line))
    .filter(accept);
}

/** Rejects with a system error where no agent serves the socket. */
export async function collectSpans(path: string, accept: (span: Span) => boolean): Promise<readonly Span[]> {
  return spansIn(await readTraceHistory(path), accept);
}
