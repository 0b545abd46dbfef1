// A request and its response on a server that speaks HTTP/1.1 and HTTP/2: what Node's objects of both have in common, and
// where they differ. Those of HTTP/2 are Node's compatibility layer.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { Http2ServerRequest, Http2ServerResponse, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

/** An IncomingMessage, or a Http2ServerRequest, whose headers have those of HTTP/2 that begin with a colon. */
export interface HttpRequest extends Readable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  /** Of HTTP/2 a stand-in that is new for each request: use `socketOf`. */
  readonly socket: Socket;
  /** Whether all of the body has come. */
  readonly complete: boolean;
}

/** A ServerResponse, or a Http2ServerResponse. */
export interface HttpResponse extends Writable {
  readonly req: HttpRequest;
  readonly headersSent: boolean;
  statusCode: number;
  /** In HTTP/2 there is none: nothing is to be set. */
  statusMessage: string;
  setHeader(name: string, value: number | string | readonly string[]): unknown;
  writeHead(statusCode: number, headers?: OutgoingHttpHeaders): this;
  flushHeaders(): void;
  writeContinue(): void;
}

/** Of requests of HTTP/2: a closed stream no longer knows its connection. */
const sockets = new WeakMap<HttpRequest, Socket>();

/** Remembers the connection of a request of HTTP/2. */
export function setSocket(request: HttpRequest, socket: Socket): void {
  sockets.set(request, socket);
}

/** The connection, a TLSSocket on a server with TLS: the same object for all requests that it brings. */
export function socketOf(request: HttpRequest): Socket {
  return sockets.get(request) ?? request.socket;
}

/** The stream of a request or a response of HTTP/2; undefined for one of HTTP/1.1. */
export function streamOf(message: HttpRequest | HttpResponse): ServerHttp2Stream | undefined {
  return message instanceof Http2ServerRequest || message instanceof Http2ServerResponse ? message.stream : undefined;
}

/** Whether nothing can be written any more. */
export function isGone(response: HttpResponse): boolean {
  return response.writableEnded || (streamOf(response)?.destroyed ?? response.destroyed);
}

/**
 * Ends a response before its end, which the client notices: the connection is closed, of HTTP/2 the stream reset with
 * INTERNAL_ERROR. (Closing the stream with a code would first send what looks like its proper end.)
 */
export function breakOff(response: HttpResponse): void {
  const stream = streamOf(response);
  if (stream === undefined) response.destroy();
  else stream.destroy(new Error('the response was broken off'));
}

/** The host that the client has named, in HTTP/2 by the header `:authority`. */
export function hostOf(headers: IncomingHttpHeaders): string | undefined {
  const { ':authority': authority } = headers;
  return headers.host ?? (typeof authority === 'string' ? authority : undefined);
}
