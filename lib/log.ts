// The log of every process: pino, one line per record on stderr. JSON for programs, text where stderr is a terminal or
// NODELET_LOG=text. Records have a maximum size, equal ones are written less and less often, and a log file that cannot
// be written costs lines but never the process (log-lines.ts).

import pino from 'pino';
import { type MonotonicMs, systemClock } from './clock.ts';
import { type Fields, LineWriter, limitFields, limitMessage, RepeatFilter, type WriteBytes } from './log-lines.ts';
import { rfc3339Milli } from './rfc3339.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type { Fields } from './log-lines.ts';

/** Writes one record. */
export type Log = (level: LogLevel, message: string, fields?: Fields) => void;

/** "03:12:40.123 warn  agent  message  key=value …" from one line of pino's JSON. */
export function formatRecord(line: string): string {
  const { level, time, name, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 23);
  const fields = Object.entries(rest).map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return ` ${key}=${/[\s"]/.test(text) ? JSON.stringify(text) : text}`;
  });
  return `${clock} ${String(level).padEnd(5)} ${String(name)}: ${String(msg)}${fields.join('')}\n`;
}

export interface LogOptions {
  /** As the kubelet's -v: above 2 shows debug lines. */
  readonly verbosity?: number;
  readonly text?: boolean;
  /** Where lines go; standard error by default. */
  readonly write?: WriteBytes;
  /** Monotonic ms. */
  readonly now?: () => MonotonicMs;
}

/** The field that two equal records may differ in: the time until the next try. */
const VARYING = 'inMs';

/** The log of one process. Warnings and errors that repeat are counted more than written: `repeated` says how many. */
export function createLog(name: string, options: LogOptions = {}): Log {
  const text = options.text ?? (process.stderr.isTTY || process.env['NODELET_LOG'] === 'text');
  const lost = (count: number, error: string): string => {
    const record = { level: 'warn', time: rfc3339Milli(systemClock.now()), name, msg: 'lines of this log were lost' };
    const line = `${JSON.stringify({ ...record, lines: count, error })}\n`;
    return text ? formatRecord(line) : line;
  };
  const lines = new LineWriter(lost, options.write);
  const logger = pino(
    {
      name,
      level: (options.verbosity ?? 2) > 2 ? 'debug' : 'info',
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => lines.write(text ? formatRecord(line) : line) },
  );
  const repeats = new RepeatFilter(options.now ?? systemClock.monotonic);
  return (level, message, fields = {}) => {
    if (!logger.isLevelEnabled(level)) return;
    const [limited, limitedMessage] = [limitFields(fields), limitMessage(message)];
    if (level === 'debug' || level === 'info') {
      logger[level](limited, limitedMessage);
      return;
    }
    const repeated = repeats.admit(JSON.stringify([level, limitedMessage, { ...limited, [VARYING]: undefined }]));
    if (repeated === undefined) return;
    logger[level](repeated === 0 ? limited : { ...limited, repeated }, limitedMessage);
  };
}
