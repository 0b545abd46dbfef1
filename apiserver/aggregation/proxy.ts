// Requests that another API server answers: passed on with the front proxy's certificate and the caller's name in headers, and
// the response passed back as it comes.

import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorMessage } from '../../lib/errors.ts';
import { breakOff } from '../../lib/http-message.ts';
import { setOwn } from '../../lib/own-property.ts';
import { StatusError } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ApiRequest } from '../http/request.ts';
import { type ApiService, apiServiceOf } from '../kinds/apiservices.ts';
import type { Credential } from '../pki/types.ts';
import { passedOn, requestPassedOn } from '../proxy/proxy.ts';
import { joinUpgraded, refuseUpgrade, type Upgraded } from '../proxy/upgraded.ts';
import type { Caller, Registry } from '../registry/registry.ts';
import { type Address, resolveService, type Unavailable } from './resolve.ts';

const CONNECT_TIMEOUT_MS = 10_000;
export const REMOTE_HEADERS = {
  user: 'X-Remote-User',
  group: 'X-Remote-Group',
  uid: 'X-Remote-Uid',
  extra: 'X-Remote-Extra-',
} as const;

/** Who the caller is, for the other server. Pure. */
export function identityHeaders(caller: Caller): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {
    [REMOTE_HEADERS.user]: encode(caller.name),
    [REMOTE_HEADERS.group]: caller.groups.map(encode),
  };
  if (caller.uid !== undefined) headers[REMOTE_HEADERS.uid] = encode(caller.uid);
  for (const [key, values] of Object.entries(caller.extra ?? {})) {
    setOwn(headers, `${REMOTE_HEADERS.extra}${encodeURIComponent(key)}`, values.map(encode));
  }
  return headers;
}

/** Headers have no line breaks, and no characters beyond Latin 1. */
function encode(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '?');
}

export interface RemoteRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Uint8Array;
  readonly signal: AbortSignal;
}

function unavailable(message: string): StatusError {
  return new StatusError(503, 'ServiceUnavailable', message);
}

function requireAvailable({ status }: ApiService): void {
  const condition = status?.conditions?.find((one) => one.type === 'Available');
  if (condition?.status !== 'True') throw unavailable('service unavailable');
}

export class AggregationProxy {
  readonly #registry: Registry;
  readonly #client: Credential;
  readonly #agent = new Agent({ keepAlive: false });
  readonly #tunnels = new Set<() => void>();

  constructor(registry: Registry, client: Credential) {
    this.#registry = registry;
    this.#client = client;
  }

  /** The APIService of another server that answers this request. */
  serviceFor(parsed: ApiRequest): ApiService | undefined {
    const [group, version] = parsed.kind === 'resource' ? [parsed.group, parsed.version] : groupOf(parsed.path);
    if (group === undefined || group === '' || version === undefined) return undefined;
    const { rows, lookup } = this.#registry;
    if (!rows.remote.some((one) => one.group === group && one.version === version)) return undefined;
    const found = lookup.get('apiregistration.k8s.io', 'apiservices', '', `${version}.${group}`);
    return found === undefined ? undefined : apiServiceOf(found);
  }

  /** Answers the request with the other server's response. Throws 503 before the response is taken over. */
  async forward(service: ApiService, caller: Caller, exchange: Exchange): Promise<void> {
    requireAvailable(service);
    const { request, response, body } = exchange;
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    const { method = 'GET', url = '/', headers } = request;
    const upstream = await this.send(service, {
      method,
      path: url,
      headers: { ...requestPassedOn(headers), ...identityHeaders(caller) },
      ...(body.length === 0 ? {} : { body }),
      signal: abort.signal,
    });
    exchange.hijack();
    response.writeHead(upstream.statusCode ?? 502, passedOn(upstream.headers));
    response.flushHeaders();
    // One that breaks off shows to the client as a response that ends early, which is what it is.
    upstream.on('error', () => breakOff(response));
    upstream.pipe(response);
  }

  /** Joins an upgrading connection with the other server. Throws StatusError while nothing has been sent either way. */
  async upgrade(
    service: ApiService,
    caller: Caller,
    message: IncomingMessage,
    client: Duplex,
    head: Buffer,
  ): Promise<void> {
    requireAvailable(service);
    const { method = 'GET', url = '/', headers } = message;
    const abort = new AbortController();
    const gone = (): void => abort.abort();
    client.once('close', gone);
    const upgrade = { connection: 'Upgrade', upgrade: headers.upgrade ?? '' };
    const { promise, resolve, reject } = Promise.withResolvers<Upgraded | IncomingMessage>();
    const outgoing = this.#open(
      service,
      {
        method,
        path: url,
        headers: { ...requestPassedOn(headers), ...identityHeaders(caller), ...upgrade },
        signal: abort.signal,
      },
      resolve,
      reject,
    );
    outgoing?.on('upgrade', (response, socket, rest) => resolve({ response, socket, head: rest }));
    outgoing?.end();
    const answer = await promise;
    client.off('close', gone);
    if ('socket' in answer && 'response' in answer) joinUpgraded(answer, client, head, this.#tunnels);
    else await refuseUpgrade(answer, client);
  }

  /** Where the APIService's server is, or why there is none. */
  resolve({ spec }: ApiService): Address | Unavailable {
    const { namespace = '', name = '', port = 443 } = spec?.service ?? {};
    return resolveService(this.#registry.lookup, namespace, name, port);
  }

  /** Resolves with the response once its head is there. Rejects with 503. */
  send(service: ApiService, remote: RemoteRequest): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    this.#open(service, remote, resolve, reject)?.end(remote.body);
    return promise;
  }

  /** The request, to be ended; undefined where there is nowhere to send it, which is rejected, too. */
  #open(
    service: ApiService,
    { method, path, headers, body, signal }: RemoteRequest,
    resolve: (response: IncomingMessage) => void,
    reject: (error: StatusError) => void,
  ): ClientRequest | undefined {
    const address = this.resolve(service);
    if ('reason' in address) {
      reject(unavailable(address.message));
      return undefined;
    }
    const { service: target, caBundle, insecureSkipTLSVerify } = service.spec ?? {};
    const outgoing = httpsRequest(
      {
        host: address.host,
        port: address.port,
        servername: `${target?.name ?? ''}.${target?.namespace ?? ''}.svc`,
        cert: this.#client.cert,
        key: this.#client.key,
        rejectUnauthorized: insecureSkipTLSVerify !== true,
        ...(caBundle === undefined ? {} : { ca: Buffer.from(caBundle, 'base64').toString('utf8') }),
        agent: this.#agent,
        method,
        path,
        // Node leaves the length out where a body is unusual (DELETE), and the other server would read none.
        headers: body === undefined ? headers : { ...headers, 'content-length': String(body.length) },
        signal,
      },
      resolve,
    );
    outgoing.on('socket', (socket) => {
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => outgoing.destroy(new Error('i/o timeout')));
      socket.once('secureConnect', () => socket.setTimeout(0));
    });
    outgoing.on('error', (error) => {
      const host = isIP(address.host) === 6 ? `[${address.host}]` : address.host;
      reject(
        unavailable(`error trying to reach service: https://${host}:${address.port}${path}: ${errorMessage(error)}`),
      );
    });
    return outgoing;
  }

  close(): void {
    for (const cut of this.#tunnels) cut();
    this.#agent.destroy();
  }
}

/** "/apis/<group>/<version>" and "/openapi/v3/apis/<group>/<version>". */
function groupOf(path: string): [string, string] | [undefined, undefined] {
  const [, group, version] = /^(?:\/openapi\/v3)?\/apis\/([^/]+)\/([^/]+)\/?$/.exec(path) ?? [];
  return group === undefined || version === undefined ? [undefined, undefined] : [group, version];
}
