// A connection that can be cut: bytes pass between a client and a server until `cut`, and then none do, as when a cable is
// pulled out. Connections stay open meanwhile and new ones are accepted; after `heal` everything goes on. Reads no byte.

import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { UserError } from '../../../lib/errors.ts';
import { listenOnSocket } from '../../../lib/unix-socket.ts';

export interface LinkOptions {
  /** Where the server is, looked up for each connection: it may not be known before the first. */
  readonly to: () => Promise<NetConnectOpts | undefined>;
}

interface Pair {
  readonly client: Socket;
  server?: Socket;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isCut = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => this.#accept(client));
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** Rejects with UserError when the socket is in use. */
  listenAt(path: string): Promise<void> {
    return listenOnSocket(this.#server, path);
  }

  /** On a free port of 127.0.0.1, which it resolves to. */
  async listenOnPort(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: '127.0.0.1', port: 0 }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new UserError('no port of 127.0.0.1 is free');
    return address.port;
  }

  cut(): void {
    this.#isCut = true;
    for (const { client, server } of this.#pairs) {
      client.pause();
      server?.pause();
    }
  }

  heal(): void {
    this.#isCut = false;
    for (const pair of this.#pairs) this.#go(pair);
  }

  async close(): Promise<void> {
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server?.destroy();
    }
    if (this.#server.listening) await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    const pair: Pair = { client };
    this.#pairs.add(pair);
    // An end is seen in `close`.
    client.on('error', () => undefined);
    client.once('close', () => {
      this.#pairs.delete(pair);
      pair.server?.destroy();
    });
    if (!this.#isCut) this.#go(pair);
  }

  #go(pair: Pair): void {
    if (pair.server === undefined) void this.#connect(pair);
    else {
      pair.client.resume();
      pair.server.resume();
    }
  }

  async #connect(pair: Pair): Promise<void> {
    const { client } = pair;
    const to = await this.#options.to();
    if (to === undefined || client.destroyed) {
      client.destroy();
      return;
    }
    const server = connect({ ...to, allowHalfOpen: true });
    pair.server = server;
    server.on('error', () => client.destroy());
    server.once('close', () => client.destroy());
    for (const [from, into] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('data', (bytes) => {
        if (into.write(bytes)) return;
        from.pause();
        into.once('drain', () => {
          if (!this.#isCut) from.resume();
        });
      });
      from.on('end', () => into.end());
    }
    if (this.#isCut) {
      client.pause();
      server.pause();
    } else client.resume();
  }
}
