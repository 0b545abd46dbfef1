// The HTTP server of the API server: connections, the head of each request, its body, and what is sent for it. What a request means
// is http/handler.ts's.

import type { Server } from 'node:https';
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RouteGenericInterface,
} from 'fastify';
import type { ConnectionGuard } from '../lib/connection-guard.ts';
import { errorMessage, isErrno, UserError } from '../lib/errors.ts';
import {
  continueBody,
  endResponse,
  isBodyUnread,
  LARGE_RESPONSE_BYTES,
  sendParts,
  sendResponse,
} from '../lib/finish-connection.ts';
import { breakOff, type HttpRequest } from '../lib/http-message.ts';
import type { AggregationProxy } from './aggregation/proxy.ts';
import { auditIdOf } from './audit/audit.ts';
import type { ClientCa } from './auth/client-ca.ts';
import { badRequest, tooLarge } from './errors.ts';
import { OverloadError } from './flowcontrol/overload.ts';
import { acceptsGzip, COMPRESSED_FROM, compressed, compressedHeaders, varyByEncoding } from './http/compress.ts';
import type { AdmittedRequest, Reply } from './http/exchange.ts';
import type { Handler } from './http/handler.ts';
import { type MeasureParts, measure, measureBody, note } from './http/measure.ts';
import { refuseConnect } from './http/refuse-connect.ts';
import { handleUpgrade } from './http/upgrade.ts';
import type { Visit } from './http/visit.ts';
import { MAX_BODY_BYTES } from './limits.ts';
import type { Http2ServingOptions } from './options.ts';
import type { Pki } from './pki/types.ts';
import type { RequestProxy } from './proxy/types.ts';

const EMPTY = Buffer.alloc(0);
/** A response that a kubelet sends ends after this long, as the kubelet's own connections do. ms. */
const LONG_RUNNING_MS = 4 * 3_600_000;

type App = ReturnType<typeof buildApp>;

export interface AppParts extends MeasureParts {
  readonly pki: Pki;
  /** Of clients, and of authenticating proxies. */
  readonly cas: readonly ClientCa[];
  readonly handler: Handler;
  readonly proxy: RequestProxy;
  readonly aggregation: AggregationProxy;
  readonly guard: ConnectionGuard;
  readonly http2: Http2ServingOptions;
}

/** Of connections from now on. */
export function tlsOf(pki: Pki, cas: readonly ClientCa[]) {
  const { cert, key } = pki.serving;
  return { cert, key, ca: cas.map(({ bundle }) => bundle), minVersion: 'TLSv1.2' as const };
}

function noCompiler(): never {
  throw new Error('a route of the API server has a schema, and there is no compiler for it');
}

export function buildApp(parts: AppParts) {
  const { pki, cas, handler, guard, clock, http2 } = parts;
  const tls = {
    ...tlsOf(pki, cas),
    requestCert: true,
    // A client without a certificate may have a token; auth/ checks both.
    rejectUnauthorized: false,
  };
  const app = fastify<Server>({
    serverFactory: (request) =>
      guard.createServer(tls, {
        request: (message, response) => {
          // No route is for it.
          if (message.method === 'CONNECT') void refuseConnect(handler, message, response, clock);
          else request(message, response);
        },
        upgrade: (message, socket, head) => void handleUpgrade(parts, message, socket, head),
        ...(http2.isDisabled ? {} : { http2: { maxStreams: http2.maxStreams } }),
      }),
    // No route has a schema. Without these, ajv and two compilers are loaded at each start.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    frameworkErrors: (error, request, reply) => {
      void sendFailure(parts, badRequest(error.message), request, reply);
    },
  });
  const admitted = new WeakMap<HttpRequest, AdmittedRequest>();
  admitHeads(app, parts, admitted);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.all('/*', async (request, reply) => {
    const received = admitted.get(request.raw);
    if (received === undefined) throw new Error('the request was not admitted before its body was read');
    await serve(parts, received, request, reply);
    return reply;
  });
  app.setErrorHandler(async (error, request, reply) => {
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
    const status = code === 'FST_ERR_CTP_BODY_TOO_LARGE' ? tooLarge(MAX_BODY_BYTES) : badRequest(errorMessage(error));
    await sendFailure(parts, status, request, reply);
    return reply;
  });
  return app;
}

/** Who calls, and whether they may, before any byte of a body is read. */
function admitHeads(
  app: FastifyInstance<Server>,
  parts: AppParts,
  admitted: WeakMap<HttpRequest, AdmittedRequest>,
): void {
  const { handler, guard, http2 } = parts;
  app.addHook('onRequest', async (request, reply) => {
    measure(parts, request.raw, reply.raw);
    // What is under way on the connection goes on, this request as well.
    if (http2.goawayChance > 0 && Math.random() < http2.goawayChance) guard.goAway(request.raw);
    try {
      const auditId = auditIdOf(request.raw);
      reply.raw.setHeader('Audit-Id', auditId);
      const endWithResponse = (visit: Visit): void => {
        visit.setHeader = (name, value) => reply.raw.setHeader(name, value);
        visit.onWaited = (ms) => note(reply.raw, { waited: ms / 1000 });
        reply.raw.once('close', () => visit.end(reply.raw.headersSent ? reply.raw.statusCode : undefined));
      };
      const received = await handler.receive(request.raw, endWithResponse, auditId);
      admitted.set(request.raw, received);
      if (handler.isLongRunning(received)) guard.allowTime(reply.raw, LONG_RUNNING_MS);
      // A body that is too large is refused by its length, unsent.
      if (Number(request.headers['content-length'] ?? 0) <= MAX_BODY_BYTES) continueBody(request.raw, reply.raw);
    } catch (error) {
      await sendFailure(parts, error, request, reply);
      return reply;
    }
  });
}

type Request = FastifyRequest<RouteGenericInterface, Server>;
type Response = FastifyReply<RouteGenericInterface, Server>;

async function serve(parts: AppParts, admitted: AdmittedRequest, request: Request, reply: Response): Promise<void> {
  const body = request.body instanceof Buffer ? request.body : EMPTY;
  measureBody(parts, admitted.parsed, body.length);
  const answer = await parts.handler.handle({
    admitted,
    request: request.raw,
    response: reply.raw,
    body,
    hijack: () => reply.hijack(),
  });
  if (answer !== undefined) send(parts, answer, request, reply);
}

/**
 * Without fastify: to the type of a string it adds a charset, and the first kubectls of 1.27 know discovery by its exact type.
 * A short text goes out as it is: Node puts it behind the head into one TLS record, where bytes would have one of their own.
 */
function send({ clock }: AppParts, answer: Reply, request: Request, reply: Response): void {
  reply.hijack();
  const { code, parts } = answer;
  const isUnread = isBodyUnread(request.raw);
  const whole = (): string | Uint8Array => (parts === undefined ? answer.body : Buffer.concat(parts));
  const length =
    parts === undefined ? Buffer.byteLength(answer.body) : parts.reduce((sum, part) => sum + part.length, 0);
  note(reply.raw, { bytes: length });
  const isLarge = length > COMPRESSED_FROM;
  const headers = {
    'content-type': answer.contentType,
    ...(isLarge ? varyByEncoding(answer.headers) : answer.headers),
  };
  if (isLarge && request.method !== 'HEAD' && acceptsGzip(request.headers['accept-encoding'])) {
    void compressed(bytesOf(whole())).then(
      (bytes) => sendResponse(reply.raw, code, compressedHeaders(headers), bytes, clock),
      () => breakOff(reply.raw),
    );
    return;
  }
  if (parts !== undefined && !isUnread) {
    void sendParts(reply.raw, code, headers, parts);
    return;
  }
  const body = whole();
  if (isUnread || length >= LARGE_RESPONSE_BYTES) {
    sendResponse(reply.raw, code, headers, bytesOf(body), clock);
    return;
  }
  reply.raw.writeHead(code, { ...headers, 'content-length': length });
  endResponse(reply.raw, body);
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

async function sendFailure(parts: AppParts, error: unknown, request: Request, reply: Response): Promise<void> {
  if (error instanceof OverloadError) note(reply.raw, { terminated: true });
  send(parts, await parts.handler.failure(error, request.raw), request, reply);
}

/** Resolves with the port. Rejects with UserError: it is taken, or not to be listened on. */
export async function listen(app: App, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const where = `${host}:${port}`;
    if (isErrno(error, 'EADDRINUSE'))
      throw new UserError(`port ${port} on ${host} is taken; choose another with --port`);
    if (isErrno(error, 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND')) {
      throw new UserError(`cannot listen on ${where}: ${errorMessage(error)}`);
    }
    throw error;
  }
  const bound = app.server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : port;
}
