// The proxy itself: every connection of a client has one of its own to the runtime, and bytes pass between the two as they
// come. So nothing of HTTP/2 or gRPC is ever changed: flow control, deadlines, cancellation, pings and settings are between
// client and runtime. An observer reads along after the bytes are on their way.

import { connect, createServer, type Server, type Socket } from 'node:net';
import { errorMessage } from '../../lib/errors.ts';
import { listenOnSocket } from '../../lib/unix-socket.ts';

/** What reads along on a connection. Never throws. */
export interface ByteObserver {
  fromClient(chunk: Buffer): void;
  fromServer(chunk: Buffer): void;
  close(why: string): void;
}

export interface ProxyOptions {
  /** Paths of unix sockets. */
  readonly listen: string;
  readonly to: string;
  readonly observe: (connection: number) => ByteObserver | undefined;
  /** One line for a person. */
  readonly log: (line: string) => void;
}

export class TapProxy {
  readonly #options: ProxyOptions;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  #connections = 0;
  #unreachable: string | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#serve(client));
  }

  get open(): number {
    return this.#clients.size;
  }

  /** Rejects with UserError when the socket cannot be had. */
  async listen(): Promise<void> {
    await listenOnSocket(this.#server, this.#options.listen);
    // Without a descriptor for one client, the others go on.
    this.#server.on('error', (error) => this.#options.log(`cannot take a connection: ${errorMessage(error)}`));
  }

  /** Ends every connection and removes the socket. */
  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(client: Socket): void {
    const { to } = this.#options;
    const runtime = connect({ path: to, allowHalfOpen: true });
    const observer = this.#options.observe(++this.#connections);
    this.#clients.add(client);
    let closed = false;
    const close = (why: string): void => {
      if (closed) return;
      closed = true;
      // What has come already still reaches the other side, as it would without anything between.
      client.destroySoon();
      runtime.destroySoon();
      observer?.close(why);
    };
    client.on('error', (error) => close(`the client's connection failed: ${errorMessage(error)}`));
    client.on('close', () => {
      this.#clients.delete(client);
      close('the client closed the connection');
    });
    runtime.on('error', (error) => {
      if (runtime.bytesRead === 0) this.#noteUnreachable(errorMessage(error));
      close(`the connection to ${to} failed: ${errorMessage(error)}`);
    });
    runtime.on('close', () => close('the runtime closed the connection'));
    runtime.on('connect', () => {
      this.#unreachable = undefined;
    });
    pass(client, runtime, (chunk) => observer?.fromClient(chunk));
    pass(runtime, client, (chunk) => observer?.fromServer(chunk));
  }

  /** A client tries again and again while a runtime restarts: one line is enough. */
  #noteUnreachable(why: string): void {
    if (this.#unreachable === why) return;
    this.#unreachable = why;
    this.#options.log(`${this.#options.to} cannot be reached: ${why}; clients are turned away until it can`);
  }
}

/** Passes bytes, and the end of them, from one socket to the other, no faster than the other takes them. */
function pass(from: Socket, to: Socket, observe: (chunk: Buffer) => void): void {
  from.on('data', (chunk: Buffer) => {
    if (!to.write(chunk)) from.pause();
    observe(chunk);
  });
  to.on('drain', () => from.resume());
  from.on('end', () => to.end());
}
