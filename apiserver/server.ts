// The embedded API server: puts the parts together and listens. Composition only: what a request means is registry/,
// how it is read and answered is http/.

import { hostname } from 'node:os';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { errorMessage, isErrno, UserError } from '../lib/errors.ts';
import { Authenticator } from './auth/authenticate.ts';
import { ServiceAccountTokens } from './auth/tokens.ts';
import { bootstrap } from './bootstrap.ts';
import { MAX_BODY_BYTES } from './http/body.ts';
import { badRequest, tooLarge } from './http/errors.ts';
import { Handler, type Reply } from './http/handler.ts';
import { ResourceHandler } from './http/resources.ts';
import { handleUpgrade } from './http/upgrade.ts';
import type { ApiServerOptions, RunningApiServer } from './options.ts';
import { ensurePki } from './pki/ensure.ts';
import type { Pki } from './pki/types.ts';
import type { KindParts } from './ports.ts';
import { KubeletClient } from './proxy/kubelet.ts';
import { KubeletProxy } from './proxy/proxy.ts';
import { startEventCleanup } from './registry/event-ttl.ts';
import { Registry } from './registry/registry.ts';
import { Store } from './storage/store.ts';

/** Longer than Go clients keep idle connections (90 s), so that it is they who close them. */
const KEEP_ALIVE_MS = 120_000;
const EMPTY = Buffer.alloc(0);

function unspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

/**
 * Starts the server. Rejects with UserError when the address is taken or cannot be listened on, or when the store is
 * in use.
 */
export async function startApiServer(options: ApiServerOptions, kinds: KindParts): Promise<RunningApiServer> {
  const { clock, tracer, address } = options;
  const log = options.log ?? (() => undefined);
  const pki = await ensurePki(options.pkiDir, {
    hosts: unspecified(address) ? options.hosts : [address, ...options.hosts],
    nodeName: options.nodeName ?? hostname().toLowerCase(),
    now: clock.now(),
  });
  const store = new Store(options.dbPath, { clock });
  try {
    const registry = new Registry({ store, clock, kinds: kinds.kinds, checkBody: kinds.checkBody });
    const tokens = new ServiceAccountTokens(pki.serviceAccount.key);
    const proxy = new KubeletProxy(registry, new KubeletClient(pki.clients['kubelet-client'], tracer));
    const resources = new ResourceHandler(registry, { tokens, lookup: registry.lookup, now: () => clock.now() });
    const authenticator = new Authenticator(tokens, registry.lookup);
    const handler = new Handler({ registry, resources, authenticator, tokens, discovery: kinds.discovery, proxy, log });
    const app = buildApp(pki, handler, proxy);
    const port = await listen(app, address, options.port);
    bootstrap(registry, port);
    const stopCleanup = startEventCleanup(registry, clock);
    const host = options.advertiseHost ?? (unspecified(address) ? '127.0.0.1' : address);
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      stopCleanup();
      handler.close();
      proxy.close();
      app.server.closeAllConnections();
      await app.close();
      store.close();
    };
    return {
      url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      port,
      pki,
      close: () => {
        closing ??= close();
        return closing;
      },
    };
  } catch (error) {
    store.close();
    throw error;
  }
}

type App = ReturnType<typeof buildApp>;

function buildApp(pki: Pki, handler: Handler, proxy: KubeletProxy) {
  const app = fastify({
    https: {
      cert: pki.serving.cert,
      key: pki.serving.key,
      ca: pki.ca.cert,
      requestCert: true,
      // Those without a certificate may still have a token; auth/ looks at what there is.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
    },
    bodyLimit: MAX_BODY_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: 0,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    frameworkErrors: (error, _request, reply) => {
      void sendFailure(handler, badRequest(error.message), reply);
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.all('/*', async (request, reply) => {
    await serve(handler, request, reply);
    return reply;
  });
  app.setErrorHandler(async (error, _request, reply) => {
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
    const status = code === 'FST_ERR_CTP_BODY_TOO_LARGE' ? tooLarge(MAX_BODY_BYTES) : badRequest(errorMessage(error));
    await sendFailure(handler, status, reply);
    return reply;
  });
  app.server.on('upgrade', (message, socket, head) => {
    void handleUpgrade(handler, proxy, message, socket, head);
  });
  return app;
}

async function serve(handler: Handler, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const answer = await handler.handle({
    request: request.raw,
    response: reply.raw,
    body: request.body instanceof Buffer ? request.body : EMPTY,
    hijack: () => reply.hijack(),
  });
  if (answer !== undefined) send(answer, reply);
}

/** As bytes: to the type of a string fastify adds a charset, and the first kubectls of 1.27 know discovery by its exact type. */
function send(answer: Reply, reply: FastifyReply): void {
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  reply.code(answer.code).header('Content-Type', answer.contentType).headers(answer.headers).send(body);
}

async function sendFailure(handler: Handler, error: unknown, reply: FastifyReply): Promise<void> {
  send(await handler.failure(error), reply);
}

async function listen(app: App, host: string, port: number): Promise<number> {
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
