// HTTP/2 on one connection of an HTTPS server: the session's limits, and its requests in the form that those of HTTP/1.1 have.
// Knows no callers and no deadlines: connection-guard.ts does.

import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerOptions,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { setSocket } from './http-message.ts';

export interface Http2Options {
  /** Requests of a connection that are open at a time. */
  readonly maxStreams: number;
}

/** What a client may send of one body before it is read, bytes: enough for nearly every object, as kube-apiserver has it. */
const UPLOAD_WINDOW = 256 * 1024;
/** And of all bodies together until the session has taken them from the connection, which does not wait for their readers. */
const CONNECTION_WINDOW = 1024 * 1024;
/** Streams that a client may reset at once, beside those that it may have open: all of its watches may end together. */
const RESET_BURST = 1000;
/** And how many a second after that. */
const RESET_RATE = 33;
/** Memory of a session is in megabytes; one that is used up refuses new streams. This much for a stream, and for none. */
const MEMORY_PER_STREAM = 1;
const MEMORY = 16;

function sessionOptions({ maxStreams }: Http2Options): ServerOptions {
  return {
    settings: { maxConcurrentStreams: maxStreams, initialWindowSize: UPLOAD_WINDOW },
    streamResetBurst: RESET_BURST + maxStreams,
    streamResetRate: RESET_RATE,
    maxSessionMemory: MEMORY + MEMORY_PER_STREAM * maxStreams,
  };
}

/** A response without trailers, for which Node's own waits at the end of each: a turn of the event loop, and a frame. */
class PlainResponse extends Http2ServerResponse {
  override writeHead(
    statusCode: number,
    message?: OutgoingHttpHeaders | readonly string[] | string,
    more?: OutgoingHttpHeaders | readonly string[],
  ): this {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return this;
    const headers = typeof message === 'string' ? more : message;
    for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) this.setHeader(name, value);
    this.statusCode = statusCode;
    stream.respond({ ...this.getHeaders(), ':status': statusCode }, { endStream: this.writableEnded });
    return this;
  }
}

/**
 * Begins HTTP/2 on a connection whose handshake is done. `request` is called with each request; one with the method CONNECT has
 * '' for a path. The protocol of RFC 8441 (WebSocket over HTTP/2) is not offered, as Go's servers do not offer it: a stream
 * that names one is reset.
 */
export function startHttp2(
  socket: TLSSocket,
  options: Http2Options,
  request: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
): ServerHttp2Session {
  const session = performServerHandshake(socket, sessionOptions(options));
  session.setLocalWindowSize(CONNECTION_WINDOW);
  // What the peer does wrong ends its session; there is nothing else to do about it.
  session.on('error', () => session.destroy());
  session.on('stream', (stream, headers, _flags, rawHeaders) => {
    if (headers[':protocol'] !== undefined) {
      stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
      return;
    }
    headers[':path'] ??= '';
    const message = new Http2ServerRequest(stream, headers, {}, rawHeaders);
    const response = new PlainResponse(stream);
    setSocket(message, socket);
    // A body of unknown length, as HTTP/1.1 announces it: who reads bodies looks for one of the two headers.
    if (!stream.endAfterHeaders && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked';
    request(message, response);
  });
  return session;
}
