// The registry's HTTP server: OCI's distribution API for pulls, without TLS. What is decided is elsewhere (names, access, limit, range); here
// requests become those decisions' facts, and decisions responses.

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { whenAborted } from '../../lib/abort.ts';
import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { parseByteRange } from '../../lib/http-range.ts';
import type { Fields } from '../../lib/log-lines.ts';
import { createServer } from '../../lib/node-http.ts';
import { readText } from '../../lib/read-body.ts';
import { basicCredentials, decideAccess, decideBaseAccess, isAccount, issueToken, TOKEN_MS } from './access.ts';
import type { Catalog, Repository } from './catalog.ts';
import type { Content } from './content.ts';
import { errorBody, type RegistryError, statusOf } from './errors.ts';
import { decidePull, type PullLimit } from './limit.ts';
import { DOCKER_HUB, parseTarget, repositoryKind, type Target } from './names.ts';
import { paced } from './pace.ts';

const MAX_FORM = 64 * 1024;

export interface RegistryOptions {
  readonly catalog: Catalog;
  /** Registries that clients fall back to: for what is not here, they get no challenge but "not found". */
  readonly reachable: ReadonlySet<string>;
  /** Of blobs of slow/…, for each request. */
  readonly slowBytesPerSecond: number;
  /** Of limited/…. */
  readonly limit: PullLimit;
  readonly clock: Clock;
  readonly log: (level: 'info' | 'warn', message: string, fields?: Fields) => void;
}

/** A request and what is known of it. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  /** Which registry the client asks for: containerd names it to a mirror. */
  readonly host: string;
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
  user: string | undefined;
}

type RepositoryTarget = Extract<Target, { readonly repository: string }>;

export class RegistryServer {
  readonly #options: RegistryOptions;
  readonly #server: Server;
  /** Tokens of an earlier process are worth nothing; clients get new ones. */
  readonly #key = randomBytes(32);
  readonly #pulls = new Map<string, readonly MonotonicMs[]>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Resolves with the port. Rejects with a system error. */
  listen(address: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: address, port }, () => {
        const bound = this.#server.address();
        resolve(typeof bound === 'object' && bound !== null ? bound.port : port);
      });
    });
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, log } = this.#options;
    const began = clock.monotonic();
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client is gone')));
    // A client may name any host and path.
    const url = URL.canParse(request.url ?? '', 'http://registry')
      ? new URL(request.url ?? '', 'http://registry')
      : undefined;
    let user: string | undefined;
    let problem: string | undefined;
    try {
      if (url === undefined) await refuse(response, { code: 'UNSUPPORTED' }, request.method);
      else {
        const host = url.searchParams.get('ns') ?? DOCKER_HUB;
        const exchange: Exchange = { request, response, url, host, gone: gone.signal, user };
        await this.#answer(exchange);
        user = exchange.user;
      }
    } catch (error) {
      problem = errorMessage(error);
      if (response.headersSent || gone.signal.aborted) response.destroy();
      else if (error instanceof UserError)
        await refuse(response, { code: 'UNAVAILABLE', message: problem }, request.method);
      else await refuse(response, { code: 'UNAVAILABLE' }, request.method);
    }
    const { statusCode } = response;
    log(problem === undefined ? 'info' : 'warn', `${request.method} ${request.url}`, {
      status: statusCode,
      ...(user === undefined ? {} : { user }),
      ms: Math.round(elapsedMs(began, clock.monotonic())),
      ...(problem === undefined ? {} : { error: problem }),
    });
  }

  async #answer(exchange: Exchange): Promise<void> {
    const { request, response, url, host } = exchange;
    const { method } = request;
    response.setHeader('docker-distribution-api-version', 'registry/2.0');
    const target = parseTarget(url.pathname);
    if (target.kind === 'token' && method === 'POST') return this.#token(exchange);
    if (method !== 'GET' && method !== 'HEAD') {
      return refuse(response, { code: 'UNSUPPORTED', message: 'this registry takes no pushes' }, method);
    }
    switch (target.kind) {
      case 'refused':
        return refuse(response, target.error, method);
      case 'token':
        return this.#token(exchange);
      case 'base': {
        const { clock } = this.#options;
        const { authorization } = request.headers;
        const access = decideBaseAccess({ authorization, realm: realmOf(request) }, this.#key, clock.now());
        if (access.kind === 'granted') return sendJson(response, {});
        response.setHeader('www-authenticate', access.header);
        return refuse(response, { code: 'UNAUTHORIZED' }, method);
      }
      case 'catalog':
        return sendJson(response, { repositories: await this.#options.catalog.names(host) });
      default:
        return this.#ofRepository(exchange, target);
    }
  }

  async #ofRepository(exchange: Exchange, target: RepositoryTarget): Promise<void> {
    const { request, response, url, host } = exchange;
    const { catalog, reachable, clock } = this.#options;
    const repository = await catalog.find(host, target.repository);
    const hides = url.searchParams.get('ns') === DOCKER_HUB && !reachable.has(DOCKER_HUB);
    if (repository === undefined && !hides) {
      return refuse(response, { code: 'NAME_UNKNOWN', detail: { name: target.repository } }, request.method);
    }
    const facts = {
      authorization: request.headers.authorization,
      repository: target.repository,
      exists: repository !== undefined,
      realm: realmOf(request),
    };
    const access = decideAccess(facts, this.#key, clock.now());
    if (access.kind === 'challenge' || repository === undefined) {
      if (access.kind === 'challenge') response.setHeader('www-authenticate', access.header);
      return refuse(response, { code: 'UNAUTHORIZED', detail: { name: target.repository } }, request.method);
    }
    exchange.user = access.user;
    if (target.kind === 'tags') return this.#tags(exchange, repository);
    if (target.kind === 'manifest') return this.#manifest(exchange, repository, target.reference);
    const blob = await repository.blob(target.digest);
    if (blob === undefined) return refuse(response, { code: 'BLOB_UNKNOWN', detail: target.digest }, request.method);
    return this.#send(exchange, blob, repositoryKind(repository.name) === 'slow');
  }

  /** In pages, where the client wants them so. */
  async #tags({ response, url }: Exchange, { name, tags }: Repository): Promise<void> {
    const last = url.searchParams.get('last') ?? '';
    const most = url.searchParams.get('n');
    const rest = tags.filter((tag) => tag > last);
    const page = most !== null && /^\d{1,9}$/.test(most) ? rest.slice(0, Number(most)) : rest;
    if (page.length < rest.length && page.length > 0) {
      response.setHeader('link', `</v2/${name}/tags/list?n=${most}&last=${page.at(-1)}>; rel="next"`);
    }
    return sendJson(response, { name, tags: page });
  }

  async #manifest(exchange: Exchange, repository: Repository, reference: string): Promise<void> {
    const { request, response, user } = exchange;
    const { clock, limit } = this.#options;
    const manifest = await repository.manifest(reference);
    if (manifest === undefined) {
      const detail = { name: repository.name, reference };
      return refuse(response, { code: 'MANIFEST_UNKNOWN', detail }, request.method);
    }
    if (repositoryKind(repository.name) === 'limited') {
      const address = request.socket.remoteAddress ?? '';
      const client = user === undefined ? `address ${address}` : `user ${user}`;
      const facts = { user, address, counts: request.method === 'GET', now: clock.monotonic() };
      const { allowed, pulls, headers, message } = decidePull(this.#pulls.get(client) ?? [], facts, limit);
      this.#pulls.set(client, pulls);
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (!allowed) return refuse(response, { code: 'TOOMANYREQUESTS', message }, request.method);
    }
    return this.#send(exchange, manifest, false);
  }

  async #send({ request, response, gone }: Exchange, content: Content, slowly: boolean): Promise<void> {
    const { clock, slowBytesPerSecond } = this.#options;
    const { mediaType, digest, size, takesMs } = content;
    const range = parseByteRange(request.headers.range, size);
    if (range.kind === 'unsatisfiable') {
      response.setHeader('content-range', `bytes */${size}`);
      return refuse(response, { code: 'RANGE_INVALID' }, request.method);
    }
    const part = range.kind === 'part' ? range : { start: 0, end: size };
    response.writeHead(range.kind === 'part' ? 206 : 200, {
      'content-type': mediaType,
      'content-length': part.end - part.start,
      'docker-content-digest': digest,
      'accept-ranges': 'bytes',
      ...(range.kind === 'part' ? { 'content-range': `bytes ${part.start}-${part.end - 1}/${size}` } : {}),
    });
    if (request.method === 'HEAD') return end(response);
    const bytes = content.read(part);
    const rate = takesMs === undefined ? slowBytesPerSecond : (size * 1000) / takesMs;
    const stream = slowly || takesMs !== undefined ? paced(bytes, rate, clock, gone) : bytes;
    await pipeline(Readable.from(stream, { objectMode: false, highWaterMark: 64 * 1024 }), response);
  }

  /** As the token specification has it: GET with Basic credentials or none, or POST with a form (OAuth 2). */
  async #token(exchange: Exchange): Promise<void> {
    const { request, response, url } = exchange;
    const form =
      request.method === 'POST' ? new URLSearchParams(await readText(request, MAX_FORM, 'too large')) : undefined;
    const basic = basicCredentials(request.headers.authorization);
    const name = form?.get('username');
    const account = typeof name === 'string' ? { user: name, password: form?.get('password') ?? '' } : basic;
    if (account !== undefined && !isAccount(account)) {
      return refuse(response, { code: 'UNAUTHORIZED', message: 'incorrect username or password' }, request.method);
    }
    exchange.user = account?.user;
    const scopes = (form ?? url.searchParams).getAll('scope').flatMap((scope) => scope.split(' '));
    const token = issueToken(account?.user, scopes, this.#key, this.#options.clock.now());
    return sendJson(response, { token, access_token: token, expires_in: TOKEN_MS / 1000 });
  }
}

/** Where tokens are had, under the name by which the client knows this server. */
function realmOf({ headers, socket }: IncomingMessage): string {
  const { host = '' } = headers;
  const known = /^[\w.:[\]-]+$/.test(host) ? host : `${socket.localAddress}:${socket.localPort}`;
  return `http://${known}/token`;
}

function end(response: ServerResponse, body = ''): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.closed) return resolve();
    response.once('error', reject);
    response.once('close', resolve);
    response.end(body);
  });
}

async function refuse(response: ServerResponse, error: RegistryError, method: string | undefined): Promise<void> {
  const body = errorBody(error);
  response.writeHead(statusOf(error), {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  await end(response, method === 'HEAD' ? '' : body);
}

async function sendJson(response: ServerResponse, value: object): Promise<void> {
  const body = JSON.stringify(value);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  await end(response, body);
}

/** Listens, and serves until the signal aborts. Rejects with UserError where the address is taken. */
export async function runRegistry(
  options: RegistryOptions & { readonly address: string; readonly port: number; readonly signal: AbortSignal },
): Promise<void> {
  const server = new RegistryServer(options);
  const { address, port, signal, log } = options;
  try {
    log('info', `serving images on http://${address}:${await server.listen(address, port)}`);
  } catch (error) {
    if (isErrno(error, 'EADDRINUSE', 'EADDRNOTAVAIL'))
      throw new UserError(`the registry cannot listen: ${errorMessage(error)}`);
    throw error;
  }
  await whenAborted(signal);
  await server.close();
}
