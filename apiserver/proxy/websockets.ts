// WebSockets of clients that end here: logs in messages, and port-forwards, whose SPDY connection to the kubelet a WebSocket
// carries. The streams of a command are remote-command.ts.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, type RawData, WebSocket, WebSocketServer } from 'ws';
import { badRequest, StatusError } from '../errors.ts';
import { join } from './tunnel.ts';

export const PORT_FORWARD_TUNNEL = 'SPDY/3.1+portforward.k8s.io';
export const COMMAND_V5 = 'v5.channel.k8s.io';
/** '' is a client that offers none. */
const LOG_PROTOCOLS = ['', 'binary.k8s.io', 'base64.binary.k8s.io'];

export interface Spdy {
  readonly socket: Socket;
  /** What came with the kubelet's answer. */
  readonly head: Buffer;
}

function offered({ headers }: IncomingMessage): string[] {
  const names = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  return names.filter((name) => name !== '');
}

export function isWebSocket({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return (headers.upgrade ?? '').toLowerCase() === 'websocket';
}

/** The protocol of a WebSocket that this server translates to SPDY; undefined for what a kubelet takes as it is. Pure. */
export function translated(message: IncomingMessage, subresource: string): string | undefined {
  if (!isWebSocket(message)) return undefined;
  const wanted = subresource === 'portforward' ? PORT_FORWARD_TUNNEL : COMMAND_V5;
  return offered(message).includes(wanted) ? wanted : undefined;
}

/** The first protocol of the client's that logs are sent in. Throws 400 and 403. Pure. */
export function logProtocol(message: IncomingMessage): string {
  if (!isWebSocket(message)) throw badRequest('unable to upgrade: logs are sent over WebSocket alone');
  const names = offered(message);
  if (names.length === 0) return '';
  const found = names.find((name) => LOG_PROTOCOLS.includes(name));
  if (found !== undefined) return found;
  const text = `requested protocol(s) are not supported: [${names.join(' ')}]; supports [${LOG_PROTOCOLS.join(' ').trim()}]`;
  throw new StatusError(403, 'Forbidden', text);
}

export function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/**
 * The open WebSocket, with the protocol ('' for none). Undefined when the client's handshake is none, which it has been answered, or when it
 * has gone.
 */
export function accept(
  protocol: string,
  message: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<WebSocket | undefined> {
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  // The protocol of a port-forward has a slash, which the library takes for an error: it sees none, and the answer gets ours.
  delete message.headers['sec-websocket-protocol'];
  server.on('headers', (headers) => {
    if (protocol !== '') headers.push(`Sec-WebSocket-Protocol: ${protocol}`);
  });
  return new Promise((resolve) => {
    client.once('close', () => resolve(undefined));
    server.handleUpgrade(message, client, head, (socket) => {
      // An error is followed by `close`.
      socket.on('error', () => socket.terminate());
      resolve(socket);
    });
  });
}

/** Sends one message; resolves once it is on its way, so that a slow client slows the source. */
export function send(socket: WebSocket, data: Buffer | string): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(data, () => resolve());
    else resolve();
  });
}

/** The log to its end or the client's; first an empty message, as kube-apiserver sends. */
export async function sendLog(
  log: AsyncIterable<unknown> | Iterable<unknown>,
  protocol: string,
  message: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<void> {
  const socket = await accept(protocol, message, client, head);
  if (socket === undefined) return;
  const isText = protocol === 'base64.binary.k8s.io';
  await send(socket, isText ? '' : Buffer.alloc(0));
  try {
    for await (const chunk of log) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
      await send(socket, isText ? bytes.toString('base64') : bytes);
      if (socket.readyState !== WebSocket.OPEN) return;
    }
    socket.close(1000);
  } catch {
    // The kubelet has broken off, or the client has gone: there is no more to come, and no message that says so.
    socket.terminate();
  }
}

/** The bytes of the SPDY connection, both ways, in binary messages. */
export async function tunnelSpdy(spdy: Spdy, message: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
  const socket = await accept(PORT_FORWARD_TUNNEL, message, client, head);
  if (socket === undefined) {
    spdy.socket.destroy();
    return;
  }
  const stream = createWebSocketStream(socket);
  if (spdy.head.length > 0) stream.write(spdy.head);
  join(stream, spdy.socket, () => undefined, true);
}
