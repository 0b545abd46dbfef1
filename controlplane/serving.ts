// The HTTPS server of a control plane's part, on the port and with the paths that kube-scheduler's and kube-controller-manager's
// have: /healthz, /livez and /readyz for everybody, /metrics and /metrics/slis for those who may get them. Decides no figures.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import {
  ANONYMOUS,
  accessSpec,
  bearerToken,
  certificateUser,
  type ReviewClient,
  reviewAccess,
  reviewToken,
  type User,
} from '../client/reviews.ts';
import type { ConfigMap } from '../client/types.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage, UserError } from '../lib/errors.ts';
import { answerHealth, type HealthCheck, isHealthPath } from '../lib/health-checks.ts';
import { HealthSlis } from '../lib/health-slis.ts';
import type { ServingCertificate } from '../lib/made-certificate.ts';
import { METRICS_CONTENT_TYPE } from '../lib/metrics.ts';
import { retryUntilAborted, steadyPauses } from '../lib/retry.ts';

/** Where kube-apiserver publishes the CA of client certificates. */
const AUTHENTICATION = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
/** Between two tries to read it, ms. */
const CA_AGAIN_MS = 5000;
/** A request that takes longer is given up, ms. */
const REQUEST_MS = 10_000;

export interface SecureServing {
  readonly address: string;
  readonly port: number;
  readonly certificate: ServingCertificate;
}

export interface ServedPart {
  readonly checks: readonly HealthCheck[];
  /** The page of /metrics. */
  metrics(): Promise<string>;
}

export interface ServingOptions extends SecureServing {
  readonly part: ServedPart;
  readonly client: ReviewClient & { get<T>(path: string): Promise<T> };
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Ends the server. */
  readonly signal: AbortSignal;
}

/** Resolves with the port when it listens. Rejects with UserError where the address is taken, or the certificate cannot be used. */
export async function serve(options: ServingOptions): Promise<number> {
  const { address, port, certificate, log, signal } = options;
  // No client certificate is trusted until the CA is known. A caller whose certificate is not trusted may still have a token.
  const tls = { ...certificate, ca: [], requestCert: true, rejectUnauthorized: false };
  const slis = new HealthSlis();
  let server: Server;
  try {
    server = createServer({ ...tls, requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
      answer(request, response, options, slis).catch((error: unknown) => {
        log(`${request.url}: ${errorMessage(error)}`);
        send(response, status(500, 'InternalError', errorMessage(error)));
      });
    });
  } catch (error) {
    throw new UserError(`the serving certificate cannot be used: ${errorMessage(error)}`, { cause: error });
  }
  server.on('clientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      reject(new UserError(`${address}:${port} cannot be listened on: ${errorMessage(error)}`, { cause: error }));
    });
    server.listen(port, address, resolve);
  });
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  void followClientCa(options, (ca) => server.setSecureContext({ ...certificate, ca }));
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : port;
}

/** Until it has been read once. Never rejects. */
async function followClientCa(
  { client, clock, log, signal }: ServingOptions,
  use: (ca: string) => void,
): Promise<void> {
  let isLogged = false;
  await retryUntilAborted(
    async () => {
      try {
        const { data } = await client.get<ConfigMap>(AUTHENTICATION);
        const ca = data?.['client-ca-file'];
        if (ca !== undefined) use(ca);
      } catch (error) {
        if (!isLogged && !signal.aborted) log(`the CA of client certificates is not known yet: ${errorMessage(error)}`);
        isLogged = true;
        throw error;
      }
    },
    { clock, policy: steadyPauses(CA_AGAIN_MS), signal },
  );
}

interface Answer {
  readonly code: number;
  readonly type: string;
  readonly body: string;
}

function status(code: number, reason: string, message: string): Answer {
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
  return { code, type: 'application/json', body: `${JSON.stringify(body)}\n` };
}

function send(response: ServerResponse, { code, type, body }: Answer): void {
  response.writeHead(code, { 'content-type': type, 'x-content-type-options': 'nosniff' }).end(body);
}

const text = (code: number, body: string): Answer => ({ code, type: 'text/plain; charset=utf-8', body });

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: ServingOptions,
  slis: HealthSlis,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://component');
  const { part, log } = options;
  if (isHealthPath(pathname)) {
    const health = await answerHealth(pathname, searchParams, part.checks, slis);
    for (const failure of health?.failures ?? []) log(`health check failed: ${failure}`);
    send(response, health === undefined ? text(404, '404 page not found\n') : text(health.code, health.body));
    return;
  }
  const user = await callerOf(request, options);
  if (user === undefined) {
    send(response, status(401, 'Unauthorized', 'Unauthorized'));
    return;
  }
  const verb = (request.method ?? 'GET').toLowerCase();
  const access = { nonResourceAttributes: { path: pathname, verb: verb === 'head' ? 'get' : verb } };
  if (!(await reviewAccess(accessSpec(user, access), options.client))) {
    send(response, status(403, 'Forbidden', `forbidden: User "${user.name}" cannot ${verb} path "${pathname}"`));
    return;
  }
  const page = (body: string): Answer => ({ code: 200, type: METRICS_CONTENT_TYPE, body });
  if (pathname === '/metrics') send(response, page(await part.metrics()));
  else if (pathname === '/metrics/slis') send(response, page(slis.text()));
  else send(response, text(404, '404 page not found\n'));
}

async function callerOf(request: IncomingMessage, { client, clock }: ServingOptions): Promise<User | undefined> {
  const certified = certificateUser(request, clock.now());
  if (certified !== undefined) return certified;
  const token = bearerToken(request.headers.authorization);
  return token === undefined ? ANONYMOUS : await reviewToken(token, client);
}
