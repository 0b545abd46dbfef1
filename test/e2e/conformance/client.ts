// A plain client of the API server for the tests of conformance: JSON requests as the administrator, refusals as values, and
// watches whose events can be waited for.

import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Answer, at, TestApiServer } from '../../support/api-server.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Content types of patches by their short names. */
const PATCHES = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** For giving up only. */
const DEADLINE_MS = 120_000;

/** The events of one watch, in order. */
export class Watch implements Disposable {
  readonly events: WatchEvent[] = [];
  readonly #close: () => void;
  readonly #waiting = new Set<() => void>();

  constructor(response: IncomingMessage, close: () => void) {
    this.#close = close;
    let rest = '';
    response.setEncoding('utf8').on('data', (text: string) => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const event: unknown = JSON.parse(line);
        this.events.push({ type: String(at(event, 'type')), object: at(event, 'object') });
      }
      for (const check of this.#waiting) check();
    });
  }

  /** "ADDED one", "DELETED one", …: types and names so far. */
  get shown(): readonly string[] {
    return this.events.map(({ type, object }) => `${type} ${String(at(object, 'metadata', 'name'))}`);
  }

  /** Resolves when the events so far satisfy `enough`. Throws with them after two minutes. */
  until(enough: (watch: Watch) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.#waiting.delete(check);
        reject(new Error(`the watch has shown only ${JSON.stringify(this.shown)}`));
      }, DEADLINE_MS);
      const check = (): void => {
        if (!enough(this)) return;
        this.#waiting.delete(check);
        clearTimeout(deadline);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }

  [Symbol.dispose](): void {
    this.#close();
  }
}

export class Client {
  readonly stand: TestApiServer;

  private constructor(stand: TestApiServer) {
    this.stand = stand;
  }

  static async start(): Promise<Client> {
    return new Client(await TestApiServer.start());
  }

  stop(): Promise<void> {
    return this.stand.stop();
  }

  /** One request, whatever its answer. */
  send(method: string, path: string, body?: unknown, type = 'application/json'): Promise<Answer> {
    return this.stand.call({ method, path, as: this.stand.admin, body, headers: { 'content-type': type } });
  }

  /** One request; throws unless it succeeds. */
  async #done(method: string, path: string, body?: unknown, type?: string): Promise<unknown> {
    const { code, text, json } = await this.send(method, path, body, type);
    if (code >= 300) throw new Error(`${method} ${path}: ${code} ${text}`);
    return json;
  }

  get(path: string): Promise<unknown> {
    return this.#done('GET', path);
  }
  create(path: string, body: object): Promise<unknown> {
    return this.#done('POST', path, body);
  }
  update(path: string, body: object): Promise<unknown> {
    return this.#done('PUT', path, body);
  }
  patch(path: string, body: unknown, type: keyof typeof PATCHES = 'merge'): Promise<unknown> {
    return this.#done('PATCH', path, body, PATCHES[type]);
  }
  apply(path: string, manager: string, body: unknown): Promise<unknown> {
    return this.#done('PATCH', `${path}?fieldManager=${manager}`, body, PATCHES.apply);
  }
  delete(path: string): Promise<unknown> {
    return this.#done('DELETE', path);
  }

  /** The code and reason of a refusal; throws when the request succeeds. */
  async refusal(method: string, path: string, body?: unknown, type?: keyof typeof PATCHES): Promise<[number, string]> {
    const { code, text, json } = await this.send(method, path, body, type === undefined ? undefined : PATCHES[type]);
    if (code < 300) throw new Error(`${method} ${path} was to be refused: ${code} ${text}`);
    return [code, String(at(json, 'reason'))];
  }

  /** Names of the objects of a list, sorted. */
  async names(path: string): Promise<readonly string[]> {
    return objects(await this.get(path))
      .map(nameOf)
      .toSorted();
  }

  /** A namespace with the service account that pods need. */
  async namespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<string> {
    await this.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await this.create(`/api/v1/namespaces/${name}/serviceaccounts`, account);
    return name;
  }

  /** Watches until it is disposed of. `query`: "labelSelector=a%3Db". */
  async watch(path: string, query = ''): Promise<Watch> {
    const { server, admin } = this.stand;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { cert, key } = admin;
    if (cert === undefined || key === undefined) throw new Error('the administrator has a certificate');
    const url = `${server.url}${path}?watch=1${query === '' ? '' : `&${query}`}`;
    const outgoing = httpsRequest(url, { agent: false, ca: server.pki.ca.cert, cert, key }, resolve);
    outgoing.on('error', reject);
    outgoing.end();
    const response = await promise;
    if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`);
    // A watch that is closed here ends in the middle.
    response.on('error', () => undefined);
    return new Watch(response, () => outgoing.destroy());
  }
}

export const nameOf = (object: unknown): string => String(at(object, 'metadata', 'name'));
export const versionOf = (object: unknown): string => String(at(object, 'metadata', 'resourceVersion'));

export function objects(list: unknown): readonly unknown[] {
  const found = at(list, 'items');
  if (!Array.isArray(found)) throw new Error(`not a list: ${JSON.stringify(list)}`);
  return found;
}
