// The campaign's end of the server thread: sends requests as the administrator and reports how long each occupied the
// server's event loop. Responses are not checked here.

import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { Worker } from 'node:worker_threads';
import type { Occupation, ThreadReady } from './server-thread.ts';

/** A request without a response by then is one that hangs. */
const LIMIT_MS = 300_000;

export interface HttpInput {
  readonly method: string;
  readonly path: string;
  readonly contentType?: string;
  readonly accept?: string;
  readonly body?: string | Uint8Array;
}

export interface HttpOutcome {
  /** 0 when the connection ended without a response. */
  readonly code: number;
  readonly body: string;
}

export interface MeasuredOutcome extends HttpOutcome, Occupation {}

export class BodiesServer {
  readonly #thread: Worker;
  readonly #ready: ThreadReady;
  readonly #agent: Agent;

  private constructor(thread: Worker, ready: ThreadReady) {
    this.#thread = thread;
    this.#ready = ready;
    this.#agent = new Agent({ keepAlive: true, ca: ready.ca, cert: ready.cert, key: ready.key });
  }

  /** Rejects when the thread does not start. */
  static async start(directory: string): Promise<BodiesServer> {
    const thread = new Worker(new URL('server-thread.ts', import.meta.url), { workerData: directory });
    const [ready] = (await once(thread, 'message')) as [ThreadReady];
    return new BodiesServer(thread, ready);
  }

  send({ method, path, contentType, accept, body }: HttpInput): Promise<HttpOutcome> {
    return new Promise((resolve) => {
      const headers: Record<string, string | number> = { Accept: accept ?? 'application/json' };
      if (contentType !== undefined) headers['Content-Type'] = contentType;
      if (body !== undefined) headers['Content-Length'] = Buffer.byteLength(body);
      const sent = request(
        new URL(this.#ready.url).origin,
        { method, path, headers, agent: this.#agent },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', () => resolve({ code: 0, body: 'the response broke off' }));
          response.on('end', () => {
            resolve({ code: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') });
          });
        },
      );
      sent.setTimeout(LIMIT_MS, () => sent.destroy(new Error(`no response within ${LIMIT_MS / 1000} s`)));
      sent.on('error', (error) => resolve({ code: 0, body: error.message }));
      sent.end(body);
    });
  }

  /** The same with what it cost the server. One at a time. */
  async measure(input: HttpInput): Promise<MeasuredOutcome> {
    this.#thread.postMessage('begin');
    await once(this.#thread, 'message');
    const outcome = await this.send(input);
    this.#thread.postMessage('end');
    const [occupation] = (await once(this.#thread, 'message')) as [Occupation];
    return { ...outcome, ...occupation };
  }

  /** What the same work costs the server's thread each time, in ms of processor time. Not beside `measure`. */
  async floor(): Promise<number> {
    this.#thread.postMessage('floor');
    const [ms] = (await once(this.#thread, 'message')) as [number];
    return ms;
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    this.#thread.postMessage('close');
    await once(this.#thread, 'exit');
  }
}
