// A client of HTTP/2 for tests: whole answers, watches line by line, and frames by hand for what no good client sends.

import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from 'node:http2';
import type { ConnectionOptions } from 'node:tls';

export interface Http2Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

export interface OpenStream {
  readonly stream: ClientHttp2Stream;
  /** Whole lines that have come so far. */
  readonly lines: () => readonly string[];
  /** Resolves when the stream is closed, with the code of RST_STREAM: 0 for one that ended as it should. */
  readonly closed: Promise<number>;
}

export class Http2Client {
  readonly session: ClientHttp2Session;
  /** Resolves when the server has sent GOAWAY, with its code. */
  readonly goneAway: Promise<number>;
  readonly closed: Promise<void>;

  private constructor(session: ClientHttp2Session) {
    this.session = session;
    this.goneAway = new Promise((resolve) => session.once('goaway', resolve));
    this.closed = new Promise((resolve) => session.once('close', resolve));
    // The server may end the connection at any time; `closed` shows it.
    session.on('error', () => undefined);
  }

  /** Resolves once the server's settings are known. */
  static async connect(
    url: string,
    tls: ConnectionOptions,
    options: { readonly windowSize?: number } = {},
  ): Promise<Http2Client> {
    const settings = options.windowSize === undefined ? {} : { initialWindowSize: options.windowSize };
    const session = connect(url, { ...tls, settings });
    const client = new Http2Client(session);
    await once(session, 'remoteSettings');
    return client;
  }

  async send(path: string, headers: OutgoingHttpHeaders = {}, body?: string | Buffer): Promise<Http2Answer> {
    const stream = this.session.request({ ':path': path, ...headers }, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    const { promise, resolve, reject } = Promise.withResolvers<Http2Answer>();
    const chunks: Buffer[] = [];
    let head: Record<string, unknown> = {};
    stream.on('response', (received) => {
      head = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () =>
      resolve({ code: Number(head[':status'] ?? 0), headers: head, body: Buffer.concat(chunks) }),
    );
    return promise;
  }

  /** Opens a watch, or any response that goes on; resolves with its head. */
  async open(path: string, headers: OutgoingHttpHeaders = {}): Promise<OpenStream> {
    const stream = this.session.request({ ':path': path, ...headers });
    let text = '';
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
    stream.on('error', () => undefined);
    const closed = new Promise<number>((resolve) => stream.once('close', () => resolve(stream.rstCode ?? 0)));
    const [{ ':status': status }] = await once(stream, 'response');
    if (status !== 200) throw new Error(`${path}: ${status}`);
    return { stream, lines: () => text.split('\n').slice(0, -1), closed };
  }

  close(): void {
    this.session.destroy();
  }
}

/** What a client sends first, before any frame. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const FRAMES = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, continuation: 9 } as const;

/** One frame (RFC 9113, section 4.1). */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The whole head of a GET without a body, uncompressed (RFC 7541). `path` has less than 127 bytes. */
export function getHeaders(stream: number, path: string): Buffer {
  const literal = (index: number, text: string): Buffer =>
    Buffer.concat([Buffer.from([index, text.length]), Buffer.from(text)]);
  // Indexed: ":method: GET", ":scheme: https"; END_STREAM and END_HEADERS.
  const block = Buffer.concat([Buffer.from([0x82, 0x87]), literal(0x04, path), literal(0x01, 'localhost')]);
  return frame(FRAMES.headers, 0x5, stream, block);
}

/** RST_STREAM with CANCEL. */
export function reset(stream: number): Buffer {
  return frame(FRAMES.reset, 0, stream, Buffer.from([0, 0, 0, 8]));
}
