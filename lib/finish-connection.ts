// The last response on a connection that is closed afterwards: a refused upgrade, or a request whose body is not read.
// The client receives the response, then the connection is closed within a time that the client cannot extend.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from './clock.ts';
import { type HttpRequest, type HttpResponse, isGone, streamOf } from './http-message.ts';
import { nextTurn } from './turns.ts';

/**
 * How long a client has to read its response, ms. Closing at once, while the client still sends, would reset the
 * connection, and the client might lose the response. (Go's HTTP server waits as long.)
 */
export const LINGER_MS = 500;
/** How much a refused client may still send, which is read and dropped, bytes. */
const MAX_DROPPED_BYTES = 64 * 1024;

/** Writes `bytes` and closes the socket: when the client has closed its side, after `lingerMs` in any case. */
export function finishSocket(socket: Duplex, bytes: Uint8Array | string, clock: Clock, lingerMs = LINGER_MS): void {
  // The client has closed the connection.
  socket.on('error', () => socket.destroy());
  if (socket.destroyed) return;
  const timer = clock.after(lingerMs, () => socket.destroy());
  socket.once('close', () => timer.cancel());
  let dropped = 0;
  socket.on('data', (chunk: Uint8Array) => {
    dropped += chunk.length;
    if (dropped > MAX_DROPPED_BYTES) socket.pause();
  });
  const clientEnded = (): void => {
    if (socket.writableFinished) socket.destroy();
    else socket.once('finish', () => socket.destroy());
  };
  if (socket.readableEnded) clientEnded();
  else socket.once('end', clientEnded);
  socket.end(bytes);
}

/** Whether a request has a body by its headers (RFC 9112, section 6.3). Pure. */
export function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** Whether bytes of the request's body are still to come. */
export function isBodyUnread(request: HttpRequest): boolean {
  return hasBody(request.headers) && !request.complete;
}

/**
 * Sends a whole response. A request body that has not been read is not read any more: the response says
 * that the connection closes, and `lingerMs` later it does. In HTTP/2 it is its stream alone that is closed (RFC 9113,
 * section 8.1).
 */
export function sendResponse(
  response: HttpResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body: Uint8Array,
  clock: Clock,
  lingerMs = LINGER_MS,
): void {
  const { req: request } = response;
  const stream = streamOf(response);
  if (stream !== undefined) {
    response.writeHead(status, { ...headers, 'content-length': body.length });
    endResponse(response, body);
    if (isBodyUnread(request)) stream.close();
    return;
  }
  if (!isBodyUnread(request)) {
    response.writeHead(status, { ...headers, 'content-length': body.length });
    endWhenFlushed(response, body);
    return;
  }
  request.pause();
  response.writeHead(status, { ...headers, 'content-length': body.length, connection: 'close' });
  // Not end(): with the end of a response Node reads what is left of the request.
  if (body.length === 0 || request.method === 'HEAD') response.flushHeaders();
  else response.write(body);
  const timer = clock.after(lingerMs, () => response.destroy());
  response.once('close', () => timer.cancel());
}

/** Ends a response whose head is written. That of a HEAD has no body, which HTTP/2 takes for an error where it is written. */
export function endResponse(response: HttpResponse, body: Uint8Array | string): void {
  if (response.req.method === 'HEAD') response.end();
  else response.end(body);
}

/** A response of this many bytes or more is more than the socket takes at once (Node's highWaterMark). */
export const LARGE_RESPONSE_BYTES = 16 * 1024;

/**
 * Ends the response with `body`: a large one but for its last byte first, and that byte when all of it is on its way. A
 * client that has the whole response may send its next request before Node has seen that its writes are done. Node then
 * pauses the parser of that request while more of it comes in over TLS, and closes the connection ("Parse Error: Paused").
 */
function endWhenFlushed(response: HttpResponse, body: Uint8Array): void {
  if (body.length < LARGE_RESPONSE_BYTES || response.req.method === 'HEAD') {
    response.end(body);
    return;
  }
  const last = body.subarray(-1);
  if (response.write(body.subarray(0, -1))) response.end(last);
  else response.once('drain', () => response.end(last));
}

/**
 * Sends a long response part by part, no faster than the client reads it. Resolves when all of it is written, or the client
 * has gone.
 */
export async function sendParts(
  response: HttpResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  parts: readonly Uint8Array[],
): Promise<void> {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  response.writeHead(status, { ...headers, 'content-length': length });
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  const closed = new Promise<void>((resolve) => response.once('close', () => resolve()));
  for (const part of parts) {
    if (isGone(response)) return;
    if (response.write(part)) continue;
    const drained = new Promise<void>((resolve) => response.once('drain', () => resolve()));
    await Promise.race([drained, closed]);
    // Where the socket takes everything at once, nothing else would run before the end.
    await nextTurn();
  }
  response.end();
}

/** Sends "100 Continue" to a client that waits for it (Expect: 100-continue) before it sends its body. */
export function continueBody(request: HttpRequest, response: HttpResponse): void {
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue();
}
