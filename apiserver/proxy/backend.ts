// pods/<name>/proxy, services/<name>/proxy and, on ports that are not the kubelet's, nodes/<name>/proxy: the request goes to the pod
// or node itself, over HTTP or HTTPS, and its response comes back, with references that lead through the proxy again. Where that
// is, is location.ts.

import type { IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIPv6, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { deflateRaw, gunzip, gzip, inflateRaw } from 'node:zlib';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { breakOff, type HttpRequest, hostOf, socketOf, streamOf } from '../../lib/http-message.ts';
import { Agent as HttpAgent, request as httpRequest } from '../../lib/node-http.ts';
import type { Tracer } from '../../lib/trace.ts';
import { badRequest, methodNotAllowed, pathNotFound, StatusError } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequest } from '../http/request.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import { backendPath, isOtherNodePort, type Location, nodeLocation, podLocation, serviceLocation } from './location.ts';
import { passedOn, requestPassedOn } from './proxy.ts';
import { type Rewriting, rewriteHtml, rewriteUrl } from './rewrite.ts';
import type { RequestProxy } from './types.ts';
import { joinUpgraded, refuseUpgrade } from './upgraded.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** A page that is larger keeps its references as they are. bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
const METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']);
/** A backend's word on who may read it in a browser is not this server's. */
const CORS = [
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
];

type Headers = Record<string, string | string[]>;

interface Target {
  readonly location: Location;
  /** Never empty. */
  readonly path: string;
  /** This server's path before it. */
  readonly prefix: string;
  /** "" or with its "?", as the client sent it. */
  readonly search: string;
}

function hostPort({ host, port }: Location): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** In the words of Go's net package. */
function dialError(location: Location, error: unknown): string {
  const where = `dial tcp ${hostPort(location)}:`;
  if (isErrno(error, 'ECONNREFUSED')) return `${where} connect: connection refused`;
  if (isErrno(error, 'EHOSTUNREACH')) return `${where} connect: no route to host`;
  if (isErrno(error, 'ENETUNREACH')) return `${where} connect: network is unreachable`;
  if (isErrno(error, 'ETIMEDOUT')) return `${where} i/o timeout`;
  return errorMessage(error);
}

function searchOf(url = ''): string {
  const mark = url.indexOf('?');
  return mark < 0 ? '' : url.slice(mark);
}

/** The headers for the backend: the client's without those of this hop and its credentials, and where the request comes from. Pure. */
export function requestHeaders(
  message: Pick<HttpRequest, 'headers'>,
  remote: string | undefined,
  uri: string,
): Headers {
  const { headers } = message;
  const host = hostOf(headers);
  const dropped = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const kept = Object.entries(requestPassedOn(headers)).filter(([name]) => !dropped.includes(name));
  const before = headers['x-forwarded-for'];
  const chain = [...(before === undefined ? [] : [before].flat()), ...(remote === undefined ? [] : [remote])];
  return {
    ...Object.fromEntries(kept),
    ...(host === undefined ? {} : { host }),
    ...(chain.length === 0 ? {} : { 'x-forwarded-for': chain.join(', ') }),
    'x-forwarded-uri': uri,
  };
}

/** The response's headers for the client. Pure. */
export function responseHeaders(headers: IncomingMessage['headers'], rewriting: Rewriting): Headers {
  const result = passedOn(headers);
  for (const name of CORS) delete result[name];
  const { location, 'content-length': length } = headers;
  if (location !== undefined) result['location'] = rewriteUrl(location, rewriting);
  if (length !== undefined) result['content-length'] = length;
  return result;
}

const CODINGS = new Map([
  ['gzip', { decode: promisify(gunzip), encode: promisify(gzip) }],
  ['deflate', { decode: promisify(inflateRaw), encode: promisify(deflateRaw) }],
]);

/** Whether the response is a page whose references can be rewritten. */
function isPage(method: string, { headers, statusCode }: IncomingMessage): boolean {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim();
  if (method === 'HEAD' || type !== 'text/html' || headers.location !== undefined || statusCode === 304) return false;
  const coding = headers['content-encoding'] ?? '';
  return (coding === '' || CODINGS.has(coding)) && Number(headers['content-length'] ?? 0) <= MAX_PAGE_BYTES;
}

/** The whole page rewritten; as it is where it does not decode, or is more than fits once decoded. */
async function rewritten(page: Buffer, coding: string, rewriting: Rewriting): Promise<Buffer> {
  const coder = CODINGS.get(coding);
  if (coder === undefined) return Buffer.from(rewriteHtml(page.toString('latin1'), rewriting), 'latin1');
  try {
    const plain = await coder.decode(page, { maxOutputLength: MAX_PAGE_BYTES });
    return await coder.encode(Buffer.from(rewriteHtml(plain.toString('latin1'), rewriting), 'latin1'));
  } catch (error) {
    if (error instanceof Error && 'code' in error) return page;
    throw error;
  }
}

export class BackendProxy implements RequestProxy {
  readonly #lookup: ObjectLookup;
  readonly #tracer: Tracer;
  // The connection is to an address, for which certificates of pods are not made: kube-apiserver does not check them either.
  readonly #https = new HttpsAgent({ keepAlive: false, rejectUnauthorized: false });
  readonly #http = new HttpAgent({ keepAlive: false });
  readonly #tunnels = new Set<() => void>();

  constructor(lookup: ObjectLookup, tracer: Tracer) {
    this.#lookup = lookup;
    this.#tracer = tracer;
  }

  serves({ group, resource, subresource, name }: ResourceRequest): boolean {
    if (group !== '' || subresource !== 'proxy') return false;
    return (
      resource === 'pods' || resource === 'services' || (resource === 'nodes' && isOtherNodePort(this.#lookup, name))
    );
  }

  #locate(resource: string, namespace: string, name: string): Location {
    if (resource === 'nodes') return nodeLocation(this.#lookup, name);
    const locate = resource === 'pods' ? podLocation : serviceLocation;
    return locate(this.#lookup, namespace, name);
  }

  #target(request: ResourceRequest, message: Pick<HttpRequest, 'url'>): Target {
    const { resource, namespace, name, tail, path } = request;
    if ((namespace === '' && resource !== 'nodes') || name === '') throw pathNotFound();
    const location = this.#locate(resource, namespace, name);
    const prefix = tail === '' ? path : path.slice(0, path.length - tail.length);
    return { location, path: backendPath(tail), prefix, search: searchOf(message.url) };
  }

  /** Resolves with what `settle` has made of the answer. Rejects with 503 when there is none. */
  #send(
    { location, path, search }: Target,
    method: string,
    headers: Headers,
    options: { readonly body?: Uint8Array; readonly signal?: AbortSignal },
  ): Promise<{ readonly response: IncomingMessage; readonly upgraded?: { socket: Duplex; head: Buffer } }> {
    const { promise, resolve, reject } = Promise.withResolvers<{
      response: IncomingMessage;
      upgraded?: { socket: Duplex; head: Buffer };
    }>();
    const { scheme, host, port } = location;
    const { signal, body } = options;
    // Node leaves the length out where a body is unusual (DELETE), and the backend would read none.
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const where = {
      host,
      port,
      method,
      path: `${path === '' ? '/' : path}${search}`,
      headers: { ...headers, ...length },
    };
    const abortable = signal === undefined ? {} : { signal };
    const outgoing =
      scheme === 'https'
        ? httpsRequest({ ...where, ...abortable, agent: this.#https })
        : httpRequest({ ...where, ...abortable, agent: this.#http });
    outgoing.once('response', (response) => resolve({ response }));
    outgoing.once('upgrade', (response, socket, head) => resolve({ response, upgraded: { socket, head } }));
    outgoing.on('socket', (socket) => {
      const timeout = Object.assign(new Error('i/o timeout'), { code: 'ETIMEDOUT' });
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => outgoing.destroy(timeout));
      socket.once(scheme === 'https' ? 'secureConnect' : 'connect', () => socket.setTimeout(0));
    });
    outgoing.on('error', (error) => {
      const message = `error trying to reach service: ${dialError(location, error)}`;
      reject(new StatusError(503, 'ServiceUnavailable', message));
    });
    outgoing.end(body);
    return this.#tracer.span('api', `${method} backend`, { address: hostPort(location), path }, () => promise);
  }

  async forward(request: ResourceRequest, exchange: Exchange): Promise<void> {
    const { request: message, response } = exchange;
    const { method = 'GET', headers } = message;
    if (!METHODS.has(method)) throw methodNotAllowed();
    const target = this.#target(request, message);
    if (target.path === '' && (method === 'GET' || method === 'HEAD')) {
      // Relative references of a page work below a path that ends with a slash.
      exchange.hijack();
      response.writeHead(301, { Location: `${request.path}/${target.search}`, 'Content-Length': 0 }).end();
      return;
    }
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    const sent = requestHeaders(message, socketOf(message).remoteAddress, `${target.prefix}${target.path}`);
    const { response: upstream, upgraded } = await this.#send(target, method, sent, {
      ...(exchange.body.length === 0 ? {} : { body: exchange.body }),
      signal: abort.signal,
    });
    upgraded?.socket.destroy();
    if (upgraded !== undefined) throw badRequest('the backend upgrades a connection that did not ask for it');
    const rewriting = { backend: hostPort(target.location), host: hostOf(headers) ?? '', prefix: target.prefix };
    await answer(upstream, method, exchange, rewriting);
  }

  async upgrade(request: ResourceRequest, message: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const target = this.#target(request, message);
    const { method = 'GET' } = message;
    const headers = {
      ...requestHeaders(message, socketOf(message).remoteAddress, `${target.prefix}${target.path}`),
      connection: 'Upgrade',
      upgrade: message.headers.upgrade ?? '',
    };
    const { response, upgraded } = await this.#send(target, method, headers, {});
    if (upgraded === undefined || !(upgraded.socket instanceof Socket)) {
      await refuseUpgrade(response, client);
      return;
    }
    const backend = { response, socket: upgraded.socket, head: upgraded.head };
    joinUpgraded(backend, client, head, this.#tunnels);
  }

  close(): void {
    for (const cut of this.#tunnels) cut();
    this.#http.destroy();
    this.#https.destroy();
  }
}

/** The backend's response to the client, a page with its references rewritten. */
async function answer(
  upstream: IncomingMessage,
  method: string,
  { response, hijack }: Exchange,
  rewriting: Rewriting,
): Promise<void> {
  const { statusCode = 502, statusMessage = '' } = upstream;
  if (streamOf(response) === undefined) response.statusMessage = statusMessage;
  const headers = responseHeaders(upstream.headers, rewriting);
  hijack();
  // One that breaks off shows to the client as a response that ends early, which is what it is.
  upstream.on('error', () => breakOff(response));
  const chunks: Buffer[] = [];
  if (isPage(method, upstream)) {
    let size = 0;
    for await (const chunk of upstream.iterator({ destroyOnReturn: false })) {
      const bytes = Buffer.from(chunk);
      chunks.push(bytes);
      size += bytes.length;
      if (size > MAX_PAGE_BYTES) break;
    }
    if (size <= MAX_PAGE_BYTES) {
      const page = await rewritten(Buffer.concat(chunks), upstream.headers['content-encoding'] ?? '', rewriting);
      response.writeHead(statusCode, { ...headers, 'content-length': page.length }).end(page);
      return;
    }
  }
  response.writeHead(statusCode, headers);
  response.flushHeaders();
  for (const chunk of chunks) response.write(chunk);
  upstream.pipe(response);
}
