// Watches, and the few requests around them whose response is of interest.

import { once } from 'node:events';
import { Agent, request } from 'node:https';
import type { ClusterAccess } from '../../../client/kubeconfig.ts';

export class Watching {
  readonly #access: ClusterAccess;
  readonly #requests: Agent;
  readonly #watches: Agent;

  /** `atOnce`: requests at a time; watches have connections of their own. */
  constructor(access: ClusterAccess, atOnce: number) {
    const tls = { ca: access.ca, cert: access.clientCert, key: access.clientKey };
    this.#access = access;
    this.#requests = new Agent({ ...tls, keepAlive: true, maxSockets: atOnce });
    this.#watches = new Agent({ ...tls, keepAlive: false });
  }

  /** The body of the response. Rejects for a failure. */
  async call(method: string, path: string, body?: object, type = 'application/json'): Promise<string> {
    const url = `${this.#access.server}${path}`;
    const outgoing = request(url, { method, agent: this.#requests, headers: { 'content-type': type } });
    const answered = once(outgoing, 'response');
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = await answered;
    let text = '';
    response.setEncoding('utf8');
    for await (const chunk of response) text += chunk;
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
    return text;
  }

  /** The revision of now. */
  async revision(path: string): Promise<string> {
    return /"resourceVersion":"(\d+)"/.exec(await this.call('GET', `${path}?limit=1`))?.[1] ?? '';
  }

  /** Calls `onText` with what comes. Resolves, when the watch is open, with what ends it. */
  async open(path: string, query: string, onText: (chunk: string) => void, token?: string): Promise<() => void> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const outgoing = request(`${this.#access.server}${path}?watch=1&${query}`, { agent: this.#watches, headers });
    const answered = once(outgoing, 'response');
    outgoing.end();
    const [response] = await answered;
    if (response.statusCode !== 200) throw new Error(`watch: ${response.statusCode}`);
    response.setEncoding('utf8');
    response.on('data', onText);
    // It is ended by who opened it.
    response.on('error', () => undefined);
    outgoing.on('error', () => undefined);
    return () => outgoing.destroy();
  }

  close(): void {
    this.#requests.destroy();
    this.#watches.destroy();
  }
}

/** `run` for 0 to count, some at a time. */
export async function each(count: number, atOnce: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Number of lines that end in the text. Pure. */
export function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
