// The agent's end of the shim's socket: reads requests from it and writes the responses. What an invocation means is in
// invocations.ts.

import { mkdir } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { finishSocket } from '../lib/finish-connection.ts';
import { listenOnSocket } from '../lib/unix-socket.ts';
import { CniInvocations, type InvocationsOptions } from './invocations.ts';
import { decodeRequest, encodeAnswer, errorAnswer, type ShimAnswer } from './request.ts';

export interface CniServerOptions extends InvocationsOptions {
  /** Made with mode 0600; what a killed agent left there is replaced. */
  readonly socketPath: string;
  readonly clock: Clock;
}

/** A shim sends its whole request at once; one that does not is cut off after this long. ms. */
const REQUEST_TIMEOUT_MS = 10_000;
/** How long a shim may take to close after its answer: it may be late, and only the answer counts. ms. */
const LINGER_MS = 10_000;
/** Far more than the containers a runtime starts and stops at a time. */
const MAX_CALLERS = 256;

export class CniServer {
  readonly #options: CniServerOptions;
  readonly #invocations: CniInvocations;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(options: CniServerOptions) {
    this.#options = options;
    this.#invocations = new CniInvocations(options);
  }

  get listening(): boolean {
    return this.#server?.listening === true;
  }

  /** Rejects with UserError when the socket cannot be made, or when a living process already listens on it. */
  async start(): Promise<void> {
    const { socketPath } = this.#options;
    await mkdir(dirname(socketPath), { recursive: true });
    const server = createServer((socket) => this.#serve(socket));
    await listenOnSocket(server, socketPath, `another process listens on ${socketPath}`);
    server.on('error', (error) => this.#options.onError(`CNI socket ${socketPath}`, error));
    this.#server = server;
  }

  /** Stops listening, drops callers and removes the socket. Idempotent. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    if (this.#sockets.size >= MAX_CALLERS) {
      socket.destroy();
      this.#options.onError('CNI socket', new Error(`a caller was refused: there are ${MAX_CALLERS} already`));
      return;
    }
    const { clock } = this.#options;
    const chunks: Buffer[] = [];
    let decided = false;
    const timer = clock.after(REQUEST_TIMEOUT_MS, () => socket.destroy());
    this.#sockets.add(socket);
    socket.on('close', () => {
      timer.cancel();
      this.#sockets.delete(socket);
    });
    // A killed caller is noticed when its response cannot be written.
    socket.on('error', () => socket.destroy());
    const answer = (reply: ShimAnswer): void => {
      finishSocket(socket, encodeAnswer(reply), clock, LINGER_MS);
    };
    socket.on('data', (chunk: Buffer) => {
      if (decided) return;
      chunks.push(chunk);
      try {
        const request = decodeRequest(chunks.length === 1 ? chunk : Buffer.concat(chunks));
        if (request === undefined) return;
        decided = true;
        timer.cancel();
        // The shim keeps its side open until it has the answer; an end before that is its death.
        const isGone = (): boolean => socket.destroyed || socket.readableEnded;
        void this.#invocations.answer(request, isGone).then(answer);
      } catch (error) {
        decided = true;
        timer.cancel();
        answer(errorAnswer(error));
      }
    });
  }
}
