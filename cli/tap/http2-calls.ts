// gRPC calls on node:http2 as bytes, for servers that answer or change calls: replay and faults. The plain tap does not use
// it: there bytes pass below HTTP/2.

import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Metadata } from './calls.ts';
import { frameMessage } from './grpc-messages.ts';

export const RESPONSE_HEADERS: OutgoingHttpHeaders = { ':status': 200, 'content-type': 'application/grpc' };

/** Many calls of one client are under way at the same time. */
export function createCallServer(): Http2Server {
  return createServer({ settings: { maxConcurrentStreams: 10_000, initialWindowSize: 1024 * 1024 } });
}

/** Without pseudo headers, in one pair for each name. */
export function metadataOf(headers: IncomingHttpHeaders): Metadata {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (name.startsWith(':') || value === undefined) return [];
    return [[name, Array.isArray(value) ? value.join(', ') : value] as const];
  });
}

/** grpc-message: percent-encoded UTF-8. */
export function statusTrailers(status: number, message: string, more: Metadata = []): OutgoingHttpHeaders {
  return {
    ...Object.fromEntries(more),
    'grpc-status': String(status),
    ...(message === '' ? {} : { 'grpc-message': encodeURIComponent(message) }),
  };
}

/** Ends a call that has no response yet. */
export function failCall(stream: ServerHttp2Stream, status: number, message: string): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond({ ...RESPONSE_HEADERS, ...statusTrailers(status, message) }, { endStream: true });
}

/** Answers a call with messages that come one after the other. */
export class CallResponse {
  readonly #stream: ServerHttp2Stream;
  #trailers: OutgoingHttpHeaders = {};

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream;
    stream.respond(RESPONSE_HEADERS, { waitForTrailers: true });
    stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers));
  }

  write(message: Uint8Array): void {
    if (!this.#stream.destroyed) this.#stream.write(frameMessage(message));
  }

  end(status: number, message: string, trailers: Metadata = []): void {
    this.#trailers = statusTrailers(status, message, trailers);
    if (!this.#stream.destroyed) this.#stream.end();
  }
}
