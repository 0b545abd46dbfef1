// The trace, on a unix socket: a client gets the newest spans and then every new one, as lines of JSON. One that sends the line
// "detail" gets new spans with what was sent and received, one that sends "open" the calls that are under way. A reader that does not keep up is dropped; nothing here ever makes
// the agent wait.

import { mkdir } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { DETAIL_REQUEST, OPEN_REQUEST, type Span, SpanRing, type Tracer } from '../../lib/trace.ts';
import { listenOnSocket } from '../../lib/unix-socket.ts';

export interface TraceSocketOptions {
  readonly path: string;
  readonly tracer: Tracer;
  /** How many spans are kept for those who come later. */
  readonly capacity?: number;
  /** Called when a reader is dropped. */
  readonly log?: (message: string) => void;
}

export interface TraceSocket {
  /** Keeps spans from now on and listens. Rejects with UserError when another process serves the socket. */
  listen(): Promise<void>;
  /** Ends every reader and removes the socket. Idempotent. */
  close(): Promise<void>;
}

const CAPACITY = 2048;
/** Bytes a reader may lag behind: more than the whole ring, so that only a reader that stopped is dropped. */
const MAX_LAG_BYTES = 8 * 1024 * 1024;
/** Each reader costs a descriptor, and up to `MAX_LAG_BYTES`. */
const MAX_READERS = 16;
/** The kernel's limit on a socket's path. */
const MAX_PATH_BYTES = 107;

export function createTraceSocket(options: TraceSocketOptions): TraceSocket {
  const { path, tracer, log } = options;
  const ring = new SpanRing(options.capacity ?? CAPACITY);
  const readers = new Set<Socket>();
  const detailed = new Set<Socket>();
  let unsubscribe: (() => void) | undefined;

  const send = (reader: Socket, text: string): void => {
    reader.write(text);
    if (reader.writableLength <= MAX_LAG_BYTES) return;
    readers.delete(reader);
    reader.destroy();
    log?.('a reader of the trace socket did not keep up and was dropped');
  };

  const sink = (span: Span): void => {
    const { detail, ...plain } = span;
    // What is kept has no details: they are many times as large.
    ring.push(detail === undefined ? span : plain);
    if (readers.size === 0) return;
    const line = `${JSON.stringify(detail === undefined ? span : plain)}\n`;
    for (const reader of [...readers]) send(reader, detailed.has(reader) ? `${JSON.stringify(span)}\n` : line);
  };

  const server = createServer((reader) => {
    // A disconnecting reader is no error.
    reader.on('error', () => reader.destroy());
    if (readers.size >= MAX_READERS) {
      reader.destroy();
      log?.(`a reader of the trace socket was refused: there are ${MAX_READERS} already`);
      return;
    }
    readers.add(reader);
    reader.on('close', () => readers.delete(reader));
    // Who has closed its side wants what is kept: a new span, written after the end, would cut that off.
    reader.on('end', () => readers.delete(reader));
    reader.once('data', (request: Buffer) => {
      const wanted = request.toString('latin1');
      if (!readers.has(reader)) return;
      if (wanted.startsWith(OPEN_REQUEST)) {
        for (const call of tracer.openCalls()) send(reader, `${JSON.stringify(call)}\n`);
        return;
      }
      if (!wanted.startsWith(DETAIL_REQUEST)) return;
      detailed.add(reader);
      const unwanted = tracer.wantDetail();
      reader.once('close', () => {
        detailed.delete(reader);
        unwanted();
      });
    });
    // Nothing else is expected; reading detects the end.
    reader.resume();
    const kept = ring.list();
    if (kept.length > 0) send(reader, `${kept.map((span) => JSON.stringify(span)).join('\n')}\n`);
  });

  return {
    async listen() {
      if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
        throw new UserError(`the trace socket's path is too long for a socket (${MAX_PATH_BYTES} bytes): ${path}`);
      }
      await mkdir(dirname(path), { recursive: true, mode: 0o750 });
      // Spans name images, addresses and paths: only root may read them.
      await listenOnSocket(server, path, `another agent already uses ${path}: one root directory serves one agent`);
      unsubscribe = tracer.subscribe(sink);
      // Without a descriptor for a reader the agent goes on.
      server.on('error', (error) => log?.(`the trace socket cannot take a reader: ${error.message}`));
    },
    async close() {
      unsubscribe?.();
      unsubscribe = undefined;
      for (const reader of readers) reader.destroy();
      if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
