// Who answers requests in this server's place. Types, and several of them as one.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { pathNotFound } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResourceRequest } from '../http/request.ts';

export interface RequestProxy {
  serves(request: ResourceRequest): boolean;
  /** Answers a plain request. Rejects with StatusError before the response is taken over. */
  forward(request: ResourceRequest, exchange: Exchange): Promise<void>;
  /** Takes over an upgrading connection. Rejects with StatusError while nothing has been sent either way. */
  upgrade(request: ResourceRequest, message: IncomingMessage, client: Duplex, head: Buffer): Promise<void>;
  /** Cuts every connection. */
  close(): void;
}

/** The first one that serves a request answers it. */
export class Proxies implements RequestProxy {
  readonly #all: readonly RequestProxy[];

  constructor(all: readonly RequestProxy[]) {
    this.#all = all;
  }

  serves(request: ResourceRequest): boolean {
    return this.#all.some((one) => one.serves(request));
  }

  #for(request: ResourceRequest): RequestProxy {
    const found = this.#all.find((one) => one.serves(request));
    if (found === undefined) throw pathNotFound();
    return found;
  }

  async forward(request: ResourceRequest, exchange: Exchange): Promise<void> {
    await this.#for(request).forward(request, exchange);
  }

  async upgrade(request: ResourceRequest, message: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    await this.#for(request).upgrade(request, message, client, head);
  }

  close(): void {
    for (const one of this.#all) one.close();
  }
}
