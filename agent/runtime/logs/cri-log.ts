// The CRI log format, line by line: `<RFC 3339 time> <stdout|stderr> <P|F>[:tags] <content>`. P is a part of a longer
// line, F its end (or the whole of it). Pure.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
export interface CriLogLine {
  /** As the runtime wrote it. */
  readonly timestamp: string;
  readonly stream: 'stdout' | 'stderr';
  /** More of the same line follows. */
  readonly partial: boolean;
  /** With its line feed, unless partial. */
  readonly content: Buffer;
}

const SPACE = 0x20;
const NEWLINE = 0x0a;

/** Reads one line with its line feed; undefined when it is not in the format (torn by a crash, or foreign). */
export function parseCriLogLine(line: Buffer): CriLogLine | undefined {
  const first = line.indexOf(SPACE);
  const second = first < 0 ? -1 : line.indexOf(SPACE, first + 1);
  if (second < 0) return undefined;
  let third = line.indexOf(SPACE, second + 1);
  // An empty line may be written without the space that would separate its content.
  if (third < 0) third = line.at(-1) === NEWLINE ? line.length - 1 : line.length;
  const stream = line.toString('latin1', first + 1, second);
  if (stream !== 'stdout' && stream !== 'stderr') return undefined;
  const timestamp = line.toString('latin1', 0, first);
  if (parseRfc3339(timestamp) === undefined) return undefined;
  const [tag] = line.toString('latin1', second + 1, third).split(':', 1);
  if (tag !== 'P' && tag !== 'F') return undefined;
  const partial = tag === 'P';
  const end = line.at(-1) === NEWLINE && partial ? line.length - 1 : line.length;
  // Where the separating space is missing, content is the line feed alone.
  const from = line[third] === SPACE ? third + 1 : third;
  return { timestamp, stream, partial, content: line.subarray(from, end) };
}

/** A time in nanoseconds since the epoch, exactly; undefined when the text is no time. */
export function timestampNanos(timestamp: string): bigint | undefined {
  const ms = parseRfc3339(timestamp);
  if (ms === undefined) return undefined;
  const fraction = (/\.(\d+)/.exec(timestamp)?.[1] ?? '').slice(0, 9).padEnd(9, '0');
  return BigInt(Math.floor(ms / 1000)) * 1_000_000_000n + BigInt(fraction);
}

/** The time as logs are shown: always nine digits of fraction, so that columns line up. */
export function fixedTimestamp(timestamp: string): string {
  return timestamp.replace(
    /^([^.Z+]*?:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)$/,
    (_whole, seconds, fraction, zone) => {
      return `${seconds}.${String(fraction ?? '')
        .slice(0, 9)
        .padEnd(9, '0')}${zone}`;
    },
  );
}

/** The last `maxLines` lines of `log` (whole file or its end) as text of at most `maxBytes` bytes, cut at the front. */
export function lastLogText(log: Buffer, maxLines: number, maxBytes: number): string {
  const contents: Buffer[] = [];
  let size = 0;
  let end = log.length;
  while (end > 0 && contents.length < maxLines && size < maxBytes) {
    // The line feed that ends this line is at end - 1; find the one before it.
    const start = end < 2 ? 0 : log.lastIndexOf(NEWLINE, end - 2) + 1;
    const line = parseCriLogLine(log.subarray(start, end));
    if (line !== undefined) {
      contents.unshift(line.content);
      size += line.content.length;
    }
    end = start;
  }
  return Buffer.concat(contents).subarray(-maxBytes).toString('utf8');
}
