// Requests that are answered by a kubelet: pods/<name>/log, exec, attach, portforward, and nodes/<name>/proxy. Streams
// answers through as they come, and joins upgraded connections.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { breakOff, type HttpResponse } from '../../lib/http-message.ts';
import { setOwn } from '../../lib/own-property.ts';
import { readBeginning } from '../../lib/read-body.ts';
import { HEADER_PREFIX } from '../auth/impersonate.ts';
import { badRequest, internalError, methodNotAllowed, pathNotFound, StatusError } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequest } from '../http/request.ts';
import type { KubeObject } from '../kinds/resource.ts';
import type { Registry } from '../registry/registry.ts';
import type { KubeletClient } from './kubelet.ts';
import { nodeKubelet } from './location.ts';
import { type KubeletAddress, kubeletAddress } from './node-address.ts';
import { chooseContainer, kubeletPath, nodeOf, type StreamKind } from './pods.ts';
import { streamsOf, translateCommand } from './remote-command.ts';
import { join, requestHead } from './tunnel.ts';
import type { RequestProxy } from './types.ts';
import { logProtocol, PORT_FORWARD_TUNNEL, sendLog, translated, tunnelSpdy } from './websockets.ts';

/** How much of a kubelet's error response is forwarded, bytes. */
const MAX_ERROR_BYTES = 64 * 1024;
const POD_STREAMS: readonly string[] = ['log', 'exec', 'attach', 'portforward'];
/** Headers that are about one hop, or about who the caller is to this server. */
const HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'http2-settings',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'authorization',
  'content-length',
]);

interface Target {
  readonly address: KubeletAddress;
  readonly path: string;
}

export class KubeletProxy implements RequestProxy {
  readonly #registry: Registry;
  readonly #client: KubeletClient;
  readonly #tunnels = new Set<() => void>();

  constructor(registry: Registry, client: KubeletClient) {
    this.#registry = registry;
    this.#client = client;
  }

  /** Whether a kubelet answers this request. */
  serves({ group, resource, subresource }: ResourceRequest): boolean {
    if (group !== '') return false;
    return (
      (resource === 'pods' && POD_STREAMS.includes(subresource)) || (resource === 'nodes' && subresource === 'proxy')
    );
  }

  #pod(request: ResourceRequest): KubeObject {
    return this.#registry.get(this.#registry.rowOf('', 'pods'), request.namespace, request.name).object;
  }

  /** Where the request goes. Undefined is the log of a pod that is on no node yet: there is nothing in it. */
  #target(request: ResourceRequest): Target | undefined {
    const { lookup } = this.#registry;
    if (request.resource === 'nodes') {
      const search = request.query.toString();
      const path = `${request.tail === '' ? '/' : request.tail}${search === '' ? '' : `?${search}`}`;
      return { address: nodeKubelet(lookup, request.name), path };
    }
    const pod = this.#pod(request);
    const kind = streamKind(request.subresource);
    const node = nodeOf(pod);
    if (kind === 'log') {
      const path = kubeletPath(pod, kind, request.query);
      return node === '' ? undefined : { address: kubeletAddress(lookup, node, 'pods'), path };
    }
    // What is wrong with the request's other options is found after its place, as upstream.
    if (kind !== 'portforward') chooseContainer(pod, request.query.get('container') ?? '');
    if (node === '') throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
    const address = kubeletAddress(lookup, node, 'pods');
    return { address, path: kubeletPath(pod, kind, request.query) };
  }

  /** Answers a plain request. Throws StatusError before the response is taken over. */
  async forward(request: ResourceRequest, exchange: Exchange): Promise<void> {
    const isNode = request.resource === 'nodes';
    const isStream = !isNode && request.subresource !== 'log';
    if (!isNode && !isStream && request.verb !== 'get') throw methodNotAllowed();
    const target = this.#target(request);
    if (isStream) throw badRequest('Upgrade request required');
    const { response } = exchange;
    if (target === undefined) {
      exchange.hijack();
      response.writeHead(200, { 'Content-Type': 'text/plain' }).end();
      return;
    }
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    const { method = 'GET', headers } = exchange.request;
    const upstream = await this.#client.request(
      target.address,
      method,
      target.path,
      isNode ? requestPassedOn(headers) : {},
      exchange.body.length === 0 ? undefined : exchange.body,
      abort.signal,
    );
    const { statusCode = 500 } = upstream;
    if (!isNode && (statusCode < 200 || statusCode > 206)) throw await refused(upstream, request);
    exchange.hijack();
    const type = upstream.headers['content-type'];
    response.writeHead(statusCode, isNode ? passedOn(upstream.headers) : { 'Content-Type': type ?? 'text/plain' });
    response.flushHeaders();
    stream(upstream, response);
  }

  /** Joins an upgrading connection with the kubelet. Throws StatusError while nothing has been sent either way. */
  async upgrade(request: ResourceRequest, message: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    if (!this.serves(request)) throw pathNotFound();
    if (request.subresource === 'log') return this.#log(request, message, client, head);
    const target = this.#target(request);
    if (target === undefined) throw internalError('an upgraded request that leads nowhere');
    const protocol = request.resource === 'pods' ? translated(message, request.subresource) : undefined;
    if (protocol !== undefined) return this.#translate(request, target, protocol, message, client, head);
    const method = message.method ?? 'GET';
    const kubelet = await this.#client.connect(target.address, method, target.path);
    if (client.destroyed) {
      kubelet.destroy();
      return;
    }
    kubelet.write(requestHead(method, target.path, target.address, message.rawHeaders));
    if (head.length > 0) kubelet.write(head);
    const cut = join(client, kubelet, () => this.#tunnels.delete(cut));
    this.#tunnels.add(cut);
  }

  /** The log in messages of a WebSocket. */
  async #log(request: ResourceRequest, message: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    if (request.verb !== 'get') throw methodNotAllowed();
    const protocol = logProtocol(message);
    const target = this.#target(request);
    const abort = new AbortController();
    const cut = (): void => abort.abort();
    client.once('close', cut);
    const upstream =
      target === undefined
        ? undefined
        : await this.#client.request(target.address, 'GET', target.path, {}, undefined, abort.signal);
    const { statusCode = 500 } = upstream ?? { statusCode: 200 };
    if (upstream !== undefined && (statusCode < 200 || statusCode > 206)) throw await refused(upstream, request);
    this.#tunnels.add(cut);
    client.once('close', () => this.#tunnels.delete(cut));
    await sendLog(upstream ?? [], protocol, message, client, head);
  }

  /** WebSocket at the client's side, SPDY at the kubelet's. */
  async #translate(
    request: ResourceRequest,
    target: Target,
    protocol: string,
    message: IncomingMessage,
    client: Duplex,
    head: Buffer,
  ): Promise<void> {
    const isForward = protocol === PORT_FORWARD_TUNNEL;
    const version = isForward ? 'portforward.k8s.io' : 'v4.channel.k8s.io';
    const spdy = await this.#client.spdy(target.address, target.path, version, (response) =>
      refused(response, request),
    );
    const { socket } = spdy;
    const cut = (): void => {
      socket.destroy();
      client.destroy();
      this.#tunnels.delete(cut);
    };
    socket.on('error', cut);
    if (client.destroyed) return cut();
    this.#tunnels.add(cut);
    socket.once('close', () => this.#tunnels.delete(cut));
    if (isForward) await tunnelSpdy(spdy, message, client, head);
    else
      await translateCommand(
        spdy,
        streamsOf(new URL(target.path, 'https://kubelet').searchParams),
        message,
        client,
        head,
      );
  }

  /** Cuts every tunnel. */
  close(): void {
    for (const cut of this.#tunnels) cut();
    this.#client.close();
  }
}

function streamKind(subresource: string): StreamKind {
  return subresource === 'exec' || subresource === 'attach' || subresource === 'portforward' ? subresource : 'log';
}

/** The headers without those of one hop and of the caller's identity. Pure. */
export function passedOn(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    // Names with a colon are those of the request line in HTTP/2.
    if (value === undefined || HOP.has(name) || name.startsWith(HEADER_PREFIX) || name.startsWith(':')) continue;
    setOwn(result, name, value);
  }
  return result;
}

/** The same of a request, without the headers by which this server, as a proxy, tells others who a caller is. Pure. */
export function requestPassedOn(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const result = passedOn(headers);
  for (const name of Object.keys(result)) {
    if (/^x-remote-(user|uid|group|extra-.*)$/.test(name)) delete result[name];
  }
  return result;
}

/** Bytes through as they come, for a log that is followed; either side's going ends the other. */
function stream(upstream: IncomingMessage, response: HttpResponse): void {
  // A kubelet that breaks off shows to the client as a response that ends early, which is what it is.
  upstream.on('error', () => breakOff(response));
  upstream.pipe(response);
}

/** What a kubelet's refusal is to the client: its own words, under the same code. */
async function refused(upstream: IncomingMessage, request: ResourceRequest): Promise<StatusError> {
  const text = (await readBeginning(upstream, MAX_ERROR_BYTES)).toString('utf8').trim();
  const code = upstream.statusCode ?? 500;
  if (code === 400) return badRequest(text);
  if (code === 500) return internalError(text);
  const what = `pods/${request.subresource}`;
  const details = { name: request.name, kind: what };
  if (code === 404) {
    const message = `the server could not find the requested resource ( ${what} ${request.name})`;
    return new StatusError(404, 'NotFound', text === '' ? message : `${message}: ${text}`, details);
  }
  return new StatusError(code, 'Unknown', `the kubelet answered ${code} (${what} ${request.name}): ${text}`, details);
}
