// Serves /logs/: the files of the node's log directory, and with enableSystemLogQuery the logs of its services, from the
// journal or from the files that they write.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { aggregate } from '../../lib/aggregate.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { DEFAULT_OUTPUT_BYTES, type Exec } from '../../lib/exec.ts';
import { HttpError } from './http-answer.ts';
import { openLog, readerOf, serveLogFile } from './log-files.ts';
import {
  journalctlArguments,
  logFilesOf,
  type NodeLogQuery,
  nodeLogQueryErrors,
  parseNodeLogQuery,
} from './node-log-query.ts';

/** A query of the journal is given up after this long, ms. */
const JOURNAL_MS = 30_000;

export interface NodeLogs {
  /** Of the node: /var/log. */
  readonly directory: string;
  /** enableSystemLogQuery. */
  readonly queries: boolean;
  readonly exec: Exec;
}

/** `path` is what follows "/logs/". Rejects with HttpError for what cannot be served. */
export async function serveNodeLogs(
  { directory, queries, exec }: NodeLogs,
  path: string,
  parameters: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
  clock: Clock,
): Promise<void> {
  const query = queries ? readQuery(path, parameters) : undefined;
  if (query === undefined || query.services.length === 0) {
    const [file = path] = query?.files ?? [];
    return await serveLogFile(directory, file.replaceAll('\\', '/'), request.headers, response, clock);
  }
  const zipped = request.headers['accept-encoding'] === 'gzip';
  response.writeHead(200, {
    'content-type': 'text/plain;charset=UTF-8',
    ...(zipped ? { 'content-encoding': 'gzip' } : {}),
  });
  const log = logsOfServices(directory, query, exec);
  if (zipped) await pipeline(log, createGzip({ level: constants.Z_BEST_SPEED }), response);
  else await pipeline(log, new PassThrough(), response);
}

function readQuery(path: string, parameters: URLSearchParams): NodeLogQuery | undefined {
  const { query, errors } = parseNodeLogQuery(parameters);
  if (errors !== undefined) throw new HttpError(400, `${aggregate(errors)}\n`);
  if (query === undefined) return undefined;
  if (path !== '' && path !== '/') throw new HttpError(406, 'path not allowed in query mode\n');
  const wrong = nodeLogQueryErrors(query);
  if (wrong.length > 0) throw new HttpError(406, `${aggregate(wrong)}\n`);
  return query;
}

/** What is wrong with one service is a line of the answer: the others are served. */
async function* logsOfServices(
  directory: string,
  { services, options }: NodeLogQuery,
  exec: Exec,
): AsyncGenerator<string | Uint8Array> {
  const units = await journalUnits(exec);
  const inJournal = services.filter((service) => units.has(`${service}.service`) || units.has(service));
  const inFiles = services.filter((service) => !inJournal.includes(service));
  if (inJournal.length > 0) yield* journalOf(inJournal, options, exec);
  if (inFiles.length === 0) return;
  if (Object.keys(options).length > 0) {
    yield `\noptions present and query resolved to log files for [${inFiles.join(' ')}]\ntry without specifying options\n`;
    return;
  }
  for (const service of inFiles) yield* fileOf(directory, service);
}

/** The units that the journal knows; none where there is no journal. */
async function journalUnits(exec: Exec): Promise<ReadonlySet<string>> {
  try {
    const { code, stdout } = await exec('journalctl', ['--field', '_SYSTEMD_UNIT'], { timeoutMs: JOURNAL_MS });
    return new Set(code === 0 ? stdout.split('\n') : []);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return new Set();
    throw error;
  }
}

async function* journalOf(
  services: readonly string[],
  options: NodeLogQuery['options'],
  exec: Exec,
): AsyncGenerator<string> {
  const result = await exec('journalctl', journalctlArguments(services, options), { timeoutMs: JOURNAL_MS });
  yield result.stdout;
  yield result.stderr;
  if (result.timedOut) yield '\nerror: journal output not available\n';
  if (Buffer.byteLength(result.stdout) >= DEFAULT_OUTPUT_BYTES) {
    yield `\nonly the first ${DEFAULT_OUTPUT_BYTES} bytes are shown: ask for tailLines, sinceTime or a pattern\n`;
  }
}

async function* fileOf(directory: string, service: string): AsyncGenerator<string | Uint8Array> {
  for (const name of logFilesOf(service)) {
    let opened: Awaited<ReturnType<typeof openLog>>;
    try {
      opened = await openLog(directory, name);
    } catch (error) {
      if (error instanceof HttpError && error.status === 404) continue;
      yield `\nerror getting log for ${service}: ${errorMessage(error).trim()}\n`;
      return;
    }
    try {
      if (opened.isDirectory) continue;
      if (opened.size > 0) yield* readerOf(opened.handle, 0, opened.size);
      return;
    } finally {
      await opened.handle.close();
    }
  }
  yield `\nlog not found for ${service}\n`;
}
