// A connection that a server behind this one has upgraded, or has refused to: its own answer goes to the client, then bytes
// go both ways.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { readBeginning } from '../../lib/read-body.ts';
import { StatusError } from '../errors.ts';
import { join } from './tunnel.ts';

const MAX_REFUSAL_BYTES = 64 * 1024;

/** What a server answers an upgrade with. */
export interface Upgraded {
  readonly response: IncomingMessage;
  readonly socket: Socket;
  /** Bytes that came with the answer. */
  readonly head: Buffer;
}

/** Joins the client with the server; `head` are bytes that came with the client's request. `tunnels` has what cuts them. */
export function joinUpgraded(backend: Upgraded, client: Duplex, head: Buffer, tunnels: Set<() => void>): void {
  const { response, socket } = backend;
  if (client.destroyed) {
    socket.destroy();
    return;
  }
  client.write(headOf(response));
  if (backend.head.length > 0) client.write(backend.head);
  if (head.length > 0) socket.write(head);
  const cut = join(client, socket, () => tunnels.delete(cut), true);
  tunnels.add(cut);
}

/** A response's head as it came. Pure. */
function headOf({ statusCode = 502, statusMessage = '', rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** An upgrade that the server refuses: its own refusal to the client. Throws 500 for an answer that is none. */
export async function refuseUpgrade(upstream: IncomingMessage, client: Duplex): Promise<void> {
  const { statusCode = 502, statusMessage = '', headers } = upstream;
  if (statusCode < 400) {
    upstream.destroy();
    throw new StatusError(500, '', `invalid upgrade response: status code ${statusCode}`);
  }
  const body = await readBeginning(upstream, MAX_REFUSAL_BYTES);
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`, `Content-Length: ${body.length}`, 'Connection: close'];
  if (headers['content-type'] !== undefined) lines.push(`Content-Type: ${headers['content-type']}`);
  client.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
}
