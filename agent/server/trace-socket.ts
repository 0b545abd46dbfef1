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
  return new SocketServer(options);
}

class SocketServer implements TraceSocket {
  readonly #path: string;
  readonly #tracer: Tracer;
  readonly #log: TraceSocketOptions['log'];
  readonly #ring: SpanRing;
  readonly #server = createServer((reader) => this.#accept(reader));
  readonly #readers = new Set<Socket>();
  /** Those of the readers that want details. */
  readonly #detailed = new Set<Socket>();
  #unsubscribe: (() => void) | undefined;

  constructor({ path, tracer, log, capacity = CAPACITY }: TraceSocketOptions) {
    this.#path = path;
    this.#tracer = tracer;
    this.#log = log;
    this.#ring = new SpanRing(capacity);
  }

  async listen(): Promise<void> {
    const path = this.#path;
    if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
      throw new UserError(`the trace socket's path is too long for a socket (${MAX_PATH_BYTES} bytes): ${path}`);
    }
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    // Spans name images, addresses and paths: only root may read them.
    await listenOnSocket(this.#server, path, `another agent already uses ${path}: one root directory serves one agent`);
    this.#unsubscribe = this.#tracer.subscribe((span) => this.#publish(span));
    // Without a descriptor for a reader the agent goes on.
    this.#server.on('error', (error) => this.#log?.(`the trace socket cannot take a reader: ${error.message}`));
  }

  async close(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    for (const reader of this.#readers) reader.destroy();
    if (this.#server.listening) await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #publish(span: Span): void {
    const { detail, ...plain } = span;
    // What is kept has no details: they are many times as large.
    this.#ring.push(detail === undefined ? span : plain);
    if (this.#readers.size === 0) return;
    const line = `${JSON.stringify(detail === undefined ? span : plain)}\n`;
    for (const reader of [...this.#readers]) {
      this.#send(reader, this.#detailed.has(reader) ? `${JSON.stringify(span)}\n` : line);
    }
  }

  #send(reader: Socket, text: string): void {
    reader.write(text);
    if (reader.writableLength <= MAX_LAG_BYTES) return;
    this.#readers.delete(reader);
    reader.destroy();
    this.#log?.('a reader of the trace socket did not keep up and was dropped');
  }

  #accept(reader: Socket): void {
    // A disconnecting reader is no error.
    reader.on('error', () => reader.destroy());
    if (this.#readers.size >= MAX_READERS) {
      reader.destroy();
      this.#log?.(`a reader of the trace socket was refused: there are ${MAX_READERS} already`);
      return;
    }
    this.#readers.add(reader);
    reader.on('close', () => this.#readers.delete(reader));
    // Who has closed its side wants what is kept: a new span, written after the end, would cut that off.
    reader.on('end', () => this.#readers.delete(reader));
    reader.once('data', (request: Buffer) => this.#serve(reader, request.toString('latin1')));
    // Nothing else is expected; reading detects the end.
    reader.resume();
    const kept = this.#ring.list();
    if (kept.length > 0) this.#send(reader, `${kept.map((span) => JSON.stringify(span)).join('\n')}\n`);
  }

  /** `wanted`: the line that a reader may send. */
  #serve(reader: Socket, wanted: string): void {
    if (!this.#readers.has(reader)) return;
    if (wanted.startsWith(OPEN_REQUEST)) {
      for (const call of this.#tracer.openCalls()) this.#send(reader, `${JSON.stringify(call)}\n`);
    } else if (wanted.startsWith(DETAIL_REQUEST)) {
      this.#detailed.add(reader);
      const unwanted = this.#tracer.wantDetail();
      reader.once('close', () => {
        this.#detailed.delete(reader);
        unwanted();
      });
    }
  }
}
