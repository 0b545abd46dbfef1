// Clients that speak to an HTTPS server byte by byte, for tests of how it treats the ill-behaved, and a look at the
// connections that it still holds.

import { readFile } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';

/** Bytes as they come; errors of the connection are its end. */
export class Client<S extends Socket = TLSSocket> {
  readonly socket: S;
  received = '';
  /** Resolves when the server has ended the connection in any way. */
  readonly ended: Promise<void>;

  constructor(socket: S) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    socket.on('data', (chunk: Buffer) => {
      this.received += chunk.toString('latin1');
    });
    socket.once('end', resolve);
    socket.once('close', resolve);
    socket.on('error', () => resolve());
  }

  send(text: string | Uint8Array): this {
    // A connection that the server has closed takes no more.
    if (!this.socket.destroyed) this.socket.write(text, () => undefined);
    return this;
  }

  /** Resolves when `text` has come, or the connection has ended. */
  async sees(text: string): Promise<string> {
    if (this.received.includes(text)) return this.received;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (this.received.includes(text)) resolve();
    };
    this.socket.on('data', look);
    await Promise.race([promise, this.ended]);
    this.socket.off('data', look);
    return this.received;
  }
}

export interface DialOptions extends ConnectionOptions {
  /** The client's own: any address in 127.0.0.0/8. */
  readonly from?: string;
}

/** A TLS connection that keeps its own side open when the server has ended. Rejects when the handshake fails. */
export function dial(port: number, { from = '127.0.0.1', ...options }: DialOptions = {}): Promise<Client> {
  return new Promise((resolve, reject) => {
    const transport = connectTcp({ host: '127.0.0.1', port, localAddress: from, allowHalfOpen: true });
    transport.once('error', reject);
    const socket = connect({ socket: transport, rejectUnauthorized: false, ...options });
    socket.allowHalfOpen = true;
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed during the handshake')));
    socket.once('secureConnect', () => resolve(new Client(socket)));
  });
}

/** A TCP connection that says nothing of TLS. */
export function dialPlain(port: number): Promise<Client<Socket>> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host: '127.0.0.1', port, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => resolve(new Client(socket)));
  });
}

/** Connections that some process still holds the server's end of, in whatever state they are. */
export async function openConnections(port: number): Promise<number> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const lines = (await readFile('/proc/net/tcp', 'utf8')).trim().split('\n').slice(1);
  return lines.filter((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    // 0A is the listening socket; a connection without an inode is the kernel's alone.
    return local.endsWith(`:${hex}`) && state !== '0A' && inode !== '0';
  }).length;
}
