// A real HTTPS server for tests of the client: responds as a handler decides and records requests.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { KeyPair } from './tls.ts';

export interface RecordedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Common name of the client's certificate. */
  readonly client: string | undefined;
  /** Which connection it came over: 1 for the first. */
  readonly connection: number;
}

export type Handler = (request: RecordedRequest, response: ServerResponse) => void | Promise<void>;

export class TestServer implements AsyncDisposable {
  readonly requests: RecordedRequest[] = [];
  handler: Handler;
  readonly server: Server;
  readonly #sockets = new Map<Socket, number>();

  private constructor(server: Server, handler: Handler) {
    this.server = server;
    this.handler = handler;
  }

  static async start(keys: KeyPair, clientCa: string, handler: Handler): Promise<TestServer> {
    const server = createServer({ ...keys, ca: clientCa, requestCert: true, rejectUnauthorized: false });
    const self = new TestServer(server, handler);
    server.on('secureConnection', (socket) => self.#sockets.set(socket, self.#sockets.size + 1));
    server.on('request', (request, response) => void self.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return self;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }
  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }
  get connections(): number {
    return this.#sockets.size;
  }
  /** Breaks every connection. */
  breakConnections(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const peer = 'getPeerCertificate' in request.socket ? certificateOf(request.socket.getPeerCertificate) : undefined;
    const recorded: RecordedRequest = {
      method: request.method ?? '',
      url: new URL(request.url ?? '/', this.url),
      headers: request.headers,
      body,
      client: peer?.call(request.socket)?.subject?.CN,
      connection: this.#sockets.get(request.socket) ?? 0,
    };
    this.requests.push(recorded);
    await this.handler(recorded, response);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

type GetPeer = (this: Socket) => { readonly subject?: { readonly CN?: string } } | undefined;

function certificateOf(method: unknown): GetPeer | undefined {
  return typeof method === 'function' ? (method as GetPeer) : undefined;
}

export function json(
  response: ServerResponse,
  code: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** A meta/v1 Status. */
export function failure(code: number, reason: string, message: string): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message };
}
