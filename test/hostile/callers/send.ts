// Sends generated requests over TLS as their callers, each on connections of its own. Watches are cut off after a
// moment; whatever else does not end is a hang.

import { Agent, request as httpsRequest } from 'node:https';
import type { Credentials } from '../../support/api-server.ts';

/** For giving up only. */
const HANG_MS = 180_000;
const WATCH_MS = 25;
const MAX_BYTES = 4 * 1024 * 1024;

export interface Sent {
  /** 0 when there was no answer. */
  readonly code: number;
  /** The body, or why there was no answer. */
  readonly text: string;
  /** The body as it came; empty where there was no answer. */
  readonly bytes: Buffer;
}

const NOTHING = Buffer.alloc(0);

export interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, in place of `body`. */
  readonly raw?: string | Uint8Array;
  /** A bearer token. */
  readonly token?: string;
}

export class Sender {
  readonly #url: string;
  readonly #agents = new Map<Credentials | undefined, Agent>();
  readonly #checksServer: { readonly ca: string } | { readonly rejectUnauthorized: false };

  /** `ca` verifies the server; without it any server is accepted. */
  constructor(url: string, ca?: string) {
    this.#url = url;
    this.#checksServer = ca === undefined ? { rejectUnauthorized: false } : { ca };
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #agent(as: Credentials | undefined): Agent {
    let agent = this.#agents.get(as);
    if (agent === undefined) {
      const { cert, key } = as ?? {};
      const client = cert === undefined || key === undefined ? {} : { cert, key };
      agent = new Agent({ keepAlive: true, maxSockets: 4, ...this.#checksServer, ...client });
      this.#agents.set(as, agent);
    }
    return agent;
  }

  /** The answer. A connection that the server had just closed, as it may between requests, is tried once more. */
  async send(as: Credentials | undefined, outgoing: Outgoing): Promise<Sent> {
    const first = await this.#once(as, outgoing);
    return first.code === 0 && first.reused ? await this.#once(as, outgoing) : first;
  }

  #once(
    as: Credentials | undefined,
    { method, path, headers, body, raw, token }: Outgoing,
  ): Promise<Sent & { reused: boolean }> {
    const { promise, resolve } = Promise.withResolvers<Sent & { reused: boolean }>();
    const isWatch = /[?&]watch=|\/watch\//.test(path);
    // Of a DELETE, Node would send the body without any.
    const length = raw === undefined ? {} : { 'content-length': String(Buffer.byteLength(raw)) };
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const message = httpsRequest(`${this.#url}`, {
      // Given apart from the address, which would be made tidy.
      path,
      method,
      agent: this.#agent(as),
      headers: { ...type, ...length, ...authorization, ...headers },
      timeout: HANG_MS,
    });
    const fail = (error: Error): void =>
      resolve({ code: 0, text: error.message, bytes: NOTHING, reused: message.reusedSocket });
    message.on('timeout', () => message.destroy(new Error(`no answer within ${HANG_MS} ms`)));
    message.on('error', fail);
    message.on('upgrade', ({ statusCode = 0 }, socket) => {
      socket.destroy();
      resolve({ code: statusCode, text: '', bytes: NOTHING, reused: false });
    });
    message.on('response', (response) => {
      const { statusCode = 0 } = response;
      const chunks: Buffer[] = [];
      let length = 0;
      const end = (): void => {
        const whole = Buffer.concat(chunks);
        resolve({ code: statusCode, text: whole.toString('utf8'), bytes: whole, reused: false });
      };
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > MAX_BYTES) message.destroy(new Error('an answer without end'));
      });
      response.on('end', end);
      response.on('error', (error) => (isWatch ? end() : fail(error)));
      if (isWatch) setTimeout(() => message.destroy(), WATCH_MS).unref();
    });
    message.end(raw ?? (body === undefined ? undefined : JSON.stringify(body)));
    return promise;
  }
}
