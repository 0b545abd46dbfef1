// Hands an upgraded connection (exec, attach, port-forward) to the runtime's streaming server: the request is repeated
// there, and from then on bytes go both ways untouched. Neither SPDY nor WebSocket is parsed here.

import type { IncomingMessage } from 'node:http';
import { connect as connectTcp, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { finishSocket } from '../../lib/finish-connection.ts';

/** Hop-by-hop headers, and those that identify the caller. */
const DROPPED: ReadonlySet<string> = new Set(['host', 'authorization', 'content-length', 'transfer-encoding']);

/** The request as the streaming server gets it. Pure. */
export function upgradeRequestText(request: Pick<IncomingMessage, 'method' | 'rawHeaders'>, url: URL): string {
  const lines = [`${request.method ?? 'POST'} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`];
  for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = request.rawHeaders.slice(i, i + 2);
    if (!DROPPED.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** WebSocket subprotocols that runtimes' streaming servers speak. */
const CHANNEL_PROTOCOL = /^(v[234]\.)?(base64\.)?channel\.k8s\.io$/;

/**
 * Why an upgrade cannot be tunnelled, or undefined. A WebSocket caller that offers only what the runtime does not support
 * (v5.channel.k8s.io, tunnelled SPDY) gets a plain HTTP response, upon which kubectl falls back to SPDY. Pure.
 */
export function upgradeProblem(headers: IncomingMessage['headers']): string | undefined {
  const upgrade = (headers.upgrade ?? '').toLowerCase();
  if (upgrade !== 'websocket' && upgrade !== 'spdy/3.1') return `unable to upgrade: "${headers.upgrade}" is not served`;
  if (upgrade !== 'websocket') return undefined;
  const offered = (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '');
  if (offered.length === 0 || offered.some((protocol) => CHANNEL_PROTOCOL.test(protocol))) return undefined;
  return `unable to upgrade: unsupported WebSocket subprotocol: ${offered.join(', ')}`;
}

/** A plain HTTP answer on a connection that was to be upgraded; it ends with it. */
export function refuseUpgrade(socket: Duplex, status: number, reason: string, message: string, clock: Clock): void {
  const body = Buffer.from(message);
  finishSocket(
    socket,
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${message}`,
    clock,
  );
}

/** The kernel detects a vanished peer after about this long. ms. */
const KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** The streaming server answers the request within this time. ms. */
const ANSWER_TIMEOUT_MS = 60_000;
/** One side has closed; the other may take so long over what it has not read yet, as long as it reads nothing. ms. */
const FLUSH_TIMEOUT_MS = 10_000;

function dial(url: URL): Promise<Socket> {
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const ready = (): void => {
      backend.setTimeout(0);
      backend.off('error', reject);
      resolve(backend);
    };
    const tcp = connectTcp({ host, port, allowHalfOpen: true });
    // The runtime's certificate on its loopback address is not verified, as in the kubelet.
    const backend: Socket = url.protocol === 'https:' ? connectTls({ socket: tcp, rejectUnauthorized: false }) : tcp;
    backend.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', ready);
    backend.once('error', reject);
    backend.setTimeout(CONNECT_TIMEOUT_MS, () => backend.destroy(new Error('the connection was not accepted in time')));
  });
}

export interface TunnelOptions {
  readonly clock: Clock;
  /** A tunnel through which nothing went for so long ends; ms, 0 is never. */
  readonly idleTimeoutMs: number;
}

/**
 * Connects `client` with the streaming server at `url`. Resolves when both directions have ended and both sockets are
 * closed. Never rejects: a server that cannot be reached is a 502 to the caller.
 */
export async function tunnel(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  url: URL,
  { clock, idleTimeoutMs }: TunnelOptions,
): Promise<void> {
  let backend: Socket;
  // Without a listener an error of a socket that waits for the dial would end the process.
  const lost = (): void => {
    client.destroy();
  };
  client.on('error', lost);
  try {
    backend = await dial(url);
  } catch (error) {
    refuseUpgrade(client, 502, 'Bad Gateway', `error dialing backend: ${errorMessage(error)}`, clock);
    return;
  }
  // From here on the caller may end its side and still listen.
  client.allowHalfOpen = true;
  if (client instanceof Socket) client.setKeepAlive(true, KEEP_ALIVE_MS);
  backend.setKeepAlive(true, KEEP_ALIVE_MS);
  backend.setNoDelay(true);
  await new Promise<void>((resolve) => {
    let open = 2;
    // The other side gets what is still on its way to it, and is then closed too.
    const closed = (other: Duplex) => (): void => {
      if (--open === 0) resolve();
      else if (other instanceof Socket) {
        other.setTimeout(FLUSH_TIMEOUT_MS, () => other.destroy());
        other.destroySoon();
      } else other.destroy();
    };
    const broken = (): void => {
      client.destroy();
      backend.destroy();
    };
    client.on('error', broken).on('close', closed(backend));
    backend.on('error', broken).on('close', closed(client));
    if (client.destroyed) {
      open = 1;
      backend.destroy();
      return;
    }
    backend.setTimeout(ANSWER_TIMEOUT_MS, broken);
    backend.once('data', () => backend.setTimeout(idleTimeoutMs));
    backend.write(upgradeRequestText(request, url));
    if (head.length > 0) backend.write(head);
    // pipe() passes an end on as an end: half-closed streams stay half-closed.
    client.pipe(backend);
    backend.pipe(client);
  });
}
