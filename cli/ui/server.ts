// The pages of `nodelet ui`, on a loopback address. Spans name images, addresses and paths of the node: a caller needs the token
// that only the terminal showed, and a page of another site cannot have it sent. Reads only.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { createServer } from '../../lib/node-http.ts';
import { compareTimelines } from '../timeline/compare.ts';
import { pageData, renderHtml } from '../timeline/html.ts';
import type { Timeline } from '../timeline/model.ts';
import type { PageData } from '../timeline/page/data.ts';
import { renderList } from './list.ts';
import type { UiStore } from './store.ts';
import { concerns, PAUSE_MS, Timelines } from './timelines.ts';

export interface UiServerOptions {
  readonly store: UiStore;
  readonly clock: Clock;
  /** 0: any that is free. */
  readonly port: number;
}

export interface UiServer {
  /** With the token: "http://127.0.0.1:41235/?token=…". */
  readonly url: string;
  close(): Promise<void>;
}

const ADDRESS = '127.0.0.1';
const COOKIE = 'nodelet-ui';
/** Each open page has one connection for events. */
const MAX_LISTENERS = 64;

const HEADERS = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const equal = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};

function cookieOf({ headers }: IncomingMessage): string {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
  return pairs.find(([name]) => name === COOKIE)?.[1] ?? '';
}

/** The pods that a page is about, at most two; none: everything. */
function podsOf(url: URL): readonly string[] {
  const wanted = [url.searchParams.get('pod'), url.searchParams.get('with')];
  return wanted.filter((name) => name !== null && name !== '').map(String);
}

export class UiHandler {
  readonly #store: UiStore;
  readonly #clock: Clock;
  readonly #token: string;
  readonly #timelines: Timelines;
  readonly #listeners = new Set<ServerResponse>();

  constructor(store: UiStore, clock: Clock, token: string) {
    this.#store = store;
    this.#clock = clock;
    this.#token = token;
    this.#timelines = new Timelines(store, clock);
  }

  /** Ends the connections for events, which end by themselves never. */
  close(): void {
    for (const listener of this.#listeners) listener.end();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#serve(request, response);
    } catch (error) {
      const code = error instanceof Refusal ? error.code : error instanceof UserError ? 404 : 500;
      this.#send(response, code, 'text/plain; charset=utf-8', `${errorMessage(error)}\n`);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host = '' } = request.headers;
    // A foreign name that resolves to this address is another site (DNS rebinding).
    if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(host)) throw new Refusal(421, `nodelet ui is not served as ${host}`);
    if (request.method !== 'GET') throw new Refusal(405, 'nodelet ui only reads');
    const url = new URL(request.url ?? '/', `http://${host}`);
    const token = url.searchParams.get('token');
    if (token !== null) {
      this.#takeToken(token, url, response);
      return;
    }
    if (!equal(cookieOf(request), this.#token))
      throw new Refusal(401, 'open the address that nodelet ui printed: it has the token');
    await this.#page(url, response);
  }

  /** The token goes from the address into a cookie, out of the browser's history and of what is copied. */
  #takeToken(token: string, url: URL, response: ServerResponse): void {
    if (!equal(token, this.#token)) throw new Refusal(401, 'this is not the token of this nodelet ui');
    url.searchParams.delete('token');
    response.writeHead(303, {
      ...HEADERS,
      location: `${url.pathname}${url.search}`,
      'set-cookie': `${COOKIE}=${this.#token}; HttpOnly; SameSite=Strict; Path=/`,
    });
    response.end();
  }

  async #page(url: URL, response: ServerResponse): Promise<void> {
    switch (url.pathname) {
      case '/':
        this.#send(response, 200, 'text/html; charset=utf-8', await renderList());
        return;
      case '/pods':
        this.#json(response, { pods: this.#store.rows(), problems: this.#store.problems });
        return;
      case '/timeline': {
        const timelines = this.#timelinesOf(url);
        this.#send(
          response,
          200,
          'text/html; charset=utf-8',
          await renderHtml(timelines, comparison(timelines), this.#live(url)),
        );
        return;
      }
      case '/data': {
        const timelines = this.#timelinesOf(url);
        this.#json(response, pageData(timelines, comparison(timelines), this.#live(url)));
        return;
      }
      case '/events':
        this.#follow(podsOf(url), url.searchParams.has('pods'), response);
        return;
      default:
        throw new Refusal(404, `nodelet ui has no page ${url.pathname}`);
    }
  }

  #live({ search }: URL): PageData['live'] {
    return { data: `/data${search}`, events: `/events${search}` };
  }

  /** Throws UserError for a pod that nothing is known of. */
  #timelinesOf(url: URL): readonly [Timeline, ...Timeline[]] {
    const [first, ...others] = podsOf(url);
    return [this.#timelines.of(first), ...others.map((pod) => this.#timelines.of(pod))];
  }

  /** Server-sent events: "changed", whenever there is something new of one of the pods. */
  #follow(pods: readonly string[], isList: boolean, response: ServerResponse): void {
    if (this.#listeners.size >= MAX_LISTENERS) throw new Refusal(503, `${MAX_LISTENERS} pages are open already`);
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' });
    // The page may have been built before this connection was there.
    response.write('data: changed\n\n');
    let pause: Timer | undefined;
    const unsubscribe = this.#store.changed.subscribe((change) => {
      const isNews = pods.length === 0 || pods.some((pod) => concerns(pod, change));
      if (!isNews || pause !== undefined) return;
      pause = this.#clock.after(isList ? PAUSE_MS : this.#timelines.pauseMs(pods), () => {
        pause = undefined;
        response.write('data: changed\n\n');
      });
    });
    this.#listeners.add(response);
    response.on('close', () => {
      this.#listeners.delete(response);
      unsubscribe();
      pause?.cancel();
    });
  }

  #json(response: ServerResponse, value: unknown): void {
    this.#send(response, 200, 'application/json', JSON.stringify(value));
  }

  #send(response: ServerResponse, code: number, type: string, body: string): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.writeHead(code, { ...HEADERS, 'content-type': type });
    response.end(body);
  }
}

function comparison([one, other]: readonly [Timeline, ...Timeline[]]): PageData['comparison'] {
  return other === undefined ? undefined : compareTimelines(one, other);
}

/** Rejects with UserError when the port is in use. */
export async function startUiServer({ store, clock, port }: UiServerOptions): Promise<UiServer> {
  const token = randomBytes(24).toString('base64url');
  const handler = new UiHandler(store, clock, token);
  const server: Server = createServer((request, response) => void handler.handle(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new UserError(`nodelet ui cannot listen: ${errorMessage(error)}`)));
    server.listen(port, ADDRESS, resolve);
  });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${ADDRESS}:${bound}/?token=${token}`,
    async close() {
      handler.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
