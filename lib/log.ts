// The log of every process: pino, one line per record on stderr. JSON when a program reads it, plain words when a
// person does (stderr is a terminal, or NODELET_LOG=text).

import pino from 'pino';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type Fields = Readonly<Record<string, unknown>>;

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

/** The log of one process. `verbosity` as the kubelet's -v: above 2 shows debug lines. */
export function createLog(name: string, options: { readonly verbosity?: number; readonly text?: boolean } = {}): Log {
  const text = options.text ?? (process.stderr.isTTY || process.env['NODELET_LOG'] === 'text');
  const destination: pino.DestinationStream = text
    ? { write: (line) => void process.stderr.write(formatRecord(line)) }
    : pino.destination({ dest: 2, sync: true });
  const logger = pino(
    {
      name,
      level: (options.verbosity ?? 2) > 2 ? 'debug' : 'info',
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return (level, message, fields) => logger[level](fields ?? {}, message);
}
