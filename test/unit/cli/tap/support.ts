// What the tests of `nodelet tap` share: a runtime of the test's own on node:http2, a client that sees bytes, recordings.

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import type { CallEnd, CallObserver, CallSink, Metadata } from '../../../../cli/tap/calls.ts';
import { frameMessage } from '../../../../cli/tap/grpc-messages.ts';

export interface SeenCall {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

/** A runtime whose calls a test answers itself. */
export class TestRuntime {
  readonly path: string;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #answer: (call: SeenCall) => void;
  #server: Http2Server | undefined;

  constructor(path: string, answer: (call: SeenCall) => void) {
    this.path = path;
    this.#answer = answer;
  }

  async start(): Promise<void> {
    const server = createServer();
    server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('close', () => this.#sessions.delete(session));
      session.on('error', () => undefined);
    });
    server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      this.#answer({ stream, headers });
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.path, resolve));
  }

  async stop(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise<void>((resolve) => this.#server?.close(() => resolve()) ?? resolve());
  }
}

export function openClient(path: string): ClientHttp2Session {
  const session = connect('http://localhost', { createConnection: () => connectSocket(path) });
  session.on('error', () => undefined);
  return session;
}

export function startCall(session: ClientHttp2Session, method: string, headers: object = {}): ClientHttp2Stream {
  return session.request({
    ':method': 'POST',
    ':path': method,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
}

export interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: IncomingHttpHeaders;
}

export function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const parts: Buffer[] = [];
    stream.on('response', (fields) => {
      headers = fields;
    });
    stream.on('trailers', (fields) => {
      trailers = fields;
    });
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('error', reject);
    stream.on('end', () => resolve({ headers, trailers, body: Buffer.concat(parts) }));
  });
}

export async function call(
  session: ClientHttp2Session,
  method: string,
  body: Buffer,
  headers: object = {},
): Promise<Answer> {
  const stream = startCall(session, method, headers);
  const answer = answerOf(stream);
  stream.end(body);
  return await answer;
}

/** Answers with these bytes, status OK. */
export function respond({ stream }: SeenCall, body: Uint8Array, trailers: object = {}): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', ...trailers }));
  stream.end(body);
}

export function bodyOf(stream: ServerHttp2Stream): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', () => resolve(Buffer.concat(parts)));
  });
}

/** Answers every call with what it was sent. */
export function echo(call: SeenCall): void {
  void bodyOf(call.stream).then((body) => respond(call, body));
}

export const message = (text: string): Buffer => frameMessage(Buffer.from(text));

export interface ObservedCall {
  readonly connection: number;
  readonly method: string;
  readonly metadata: Metadata;
  readonly request: Buffer;
  readonly response: Buffer;
  headers: Metadata;
  end: CallEnd | undefined;
}

export class CollectingSink implements CallSink {
  readonly calls: ObservedCall[] = [];
  readonly unreadables: string[] = [];

  begin(connection: number, method: string, metadata: Metadata): CallObserver {
    const requests: Buffer[] = [];
    const responses: Buffer[] = [];
    const seen: ObservedCall = {
      connection,
      method,
      metadata,
      get request() {
        return Buffer.concat(requests);
      },
      get response() {
        return Buffer.concat(responses);
      },
      headers: [],
      end: undefined,
    };
    this.calls.push(seen);
    return {
      request: (bytes) => {
        requests.push(bytes);
      },
      requestEnd: () => undefined,
      headers: (headers) => {
        seen.headers = headers;
      },
      response: (bytes) => {
        responses.push(bytes);
      },
      end: (end) => {
        seen.end = end;
      },
    };
  }

  unreadable(_connection: number, why: string): void {
    this.unreadables.push(why);
  }
}
