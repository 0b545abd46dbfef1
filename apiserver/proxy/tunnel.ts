// Upgraded connections (SPDY, WebSocket) between a client and a kubelet: forwards the request's head with another path,
// then copies bytes both ways until both are done. The protocol is not parsed.

import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { hostPort, type KubeletAddress } from './node-address.ts';

/** What the kubelet must see of the client's request; credentials are not among it. */
const FORWARDED = [
  'upgrade',
  'x-stream-protocol-version',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
  'origin',
  'user-agent',
];

/** The head of the request to the kubelet. Pure. */
export function requestHead(
  method: string,
  path: string,
  address: KubeletAddress,
  rawHeaders: readonly string[],
): string {
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${hostPort(address)}`, 'Connection: Upgrade'];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    if (FORWARDED.includes(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  lines.push('Content-Length: 0');
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** A kubelet that accepts the connection answers the request within this time. ms. */
const ANSWER_TIMEOUT_MS = 60_000;
/** Nothing went either way for so long: the kubelet's default for its own streams. ms. */
const IDLE_TIMEOUT_MS = 4 * 3_600_000;
/** One side has closed; the other may take so long over what it has not read yet, as long as it reads nothing. ms. */
const FLUSH_TIMEOUT_MS = 10_000;
/** The kernel detects a vanished peer after about this long. ms. */
const KEEP_ALIVE_MS = 30_000;

/**
 * Joins the two sockets. The end of one direction is forwarded and leaves the other open; an error or close of either
 * side ends both. `isAnswered`: the response's head has been sent on already. Returns the function that closes both.
 */
export function join(client: Duplex, kubelet: Socket, onClosed: () => void, isAnswered = false): () => void {
  let closed = false;
  const cut = (): void => {
    if (closed) return;
    closed = true;
    client.destroy();
    kubelet.destroy();
    onClosed();
  };
  for (const socket of [client, kubelet]) {
    // An error of one side appears to the other as the end of the stream; there is no other receiver.
    socket.on('error', cut);
  }
  if (client instanceof Socket) client.setKeepAlive(true, KEEP_ALIVE_MS);
  kubelet.setKeepAlive(true, KEEP_ALIVE_MS);
  kubelet.setTimeout(isAnswered ? IDLE_TIMEOUT_MS : ANSWER_TIMEOUT_MS, cut);
  kubelet.once('data', () => kubelet.setTimeout(IDLE_TIMEOUT_MS));
  client.pipe(kubelet);
  kubelet.pipe(client);
  // A side that has closed will read no more; the other may still have to flush what it was sent.
  kubelet.on('close', () => {
    if (client.writableFinished || client.destroyed) return cut();
    if (client instanceof Socket) client.setTimeout(FLUSH_TIMEOUT_MS, cut);
    client.end(cut);
  });
  client.on('close', cut);
  return cut;
}
