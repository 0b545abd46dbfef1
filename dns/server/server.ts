// The server: a Corefile's instance, the sockets and HTTP servers that it needs, and another instance in its place when the Corefile
// has changed. What cannot be used leaves the one before at work.

import { createHash } from 'node:crypto';
import type { Server } from 'node:http';
import { errorMessage } from '../../lib/errors.ts';
import { createServer } from '../../lib/node-http.ts';
import { ConnectionPool } from '../forward/connections.ts';
import type { LoopDetector } from '../plugins/loop.ts';
import type { Answerer } from './answer.ts';
import { findLoop } from './find-loop.ts';
import { type HttpPath, type Instance, type InstanceParts, makeInstance, serverName } from './instance.ts';
import { type Listener, listenAt } from './listeners.ts';

/** For the question by which a loop is found. ms */
const SELF_TIMEOUT_MS = 2000;

export interface ServerParts extends InstanceParts {
  readonly signal: AbortSignal;
  /** Plugins that are not ready, by name. */
  readonly notReady: () => readonly string[];
}

interface HttpServer {
  readonly server: Server;
  paths: ReadonlySet<HttpPath>;
}

interface Opened {
  readonly listeners: ReadonlyMap<string, Listener>;
  readonly https: ReadonlyMap<string, HttpServer>;
}

export class DnsServer {
  readonly #parts: ServerParts;
  #instance: Instance | undefined;
  #opened: Opened = { listeners: new Map(), https: new Map() };
  #isLeaving = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** Undefined until a Corefile has been accepted. */
  get instance(): Instance | undefined {
    return this.#instance;
  }

  /** For how long the health check still says that all is well while the server ends, ms. */
  get lameduckMs(): number {
    return Math.max(0, ...(this.#instance?.settings ?? []).map(({ health }) => health?.lameduckMs ?? 0));
  }

  /** From now on /ready says no. */
  leave(): void {
    this.#isLeaving = true;
  }

  /** Puts this Corefile in the place of the one before. Rejects where it cannot be used; then nothing has changed. */
  async apply(text: string): Promise<void> {
    const instance = await makeInstance(text, this.#parts);
    let opened: Opened;
    try {
      opened = await this.#open(instance);
    } catch (error) {
      instance.close();
      throw error;
    }
    const old = { instance: this.#instance, opened: this.#opened };
    for (const { port, answerers } of instance.ports) {
      for (const [address, answerer] of answerers) {
        const listener = opened.listeners.get(serverName(address, port));
        if (listener !== undefined) listener.answerer = answerer;
      }
    }
    this.#instance = instance;
    this.#opened = opened;
    for (const [name, listener] of old.opened.listeners) if (!opened.listeners.has(name)) listener.close();
    for (const [name, http] of old.opened.https) if (!opened.https.has(name)) closeHttp(http);
    for (const [name, paths] of this.#httpPaths(instance)) {
      const http = opened.https.get(name);
      if (http !== undefined) http.paths = paths;
    }
    old.instance?.close();
    this.#parts.metrics.loaded(createHash('sha512').update(text).digest('hex'));
    for (const { detector, port } of instance.loops) void this.#findLoop(detector, port);
  }

  close(): void {
    for (const listener of this.#opened.listeners.values()) listener.close();
    for (const http of this.#opened.https.values()) closeHttp(http);
    this.#instance?.close();
    this.#opened = { listeners: new Map(), https: new Map() };
  }

  /** All that the instance needs: what is open already, and the rest. */
  async #open(instance: Instance): Promise<Opened> {
    const listeners = new Map<string, Listener>();
    const https = new Map<string, HttpServer>();
    const added: (() => void)[] = [];
    try {
      for (const { port, answerers } of instance.ports) {
        for (const [address, answerer] of answerers) {
          const name = serverName(address, port);
          const known = this.#opened.listeners.get(name);
          const listener = known ?? (await this.#listen(address, port, answerer));
          listeners.set(name, listener);
          if (known === undefined) added.push(() => listener.close());
        }
      }
      for (const [name, paths] of this.#httpPaths(instance)) {
        const known = this.#opened.https.get(name);
        const http = known ?? (await this.#serveHttp(name, paths));
        https.set(name, http);
        if (known === undefined) added.push(() => closeHttp(http));
      }
    } catch (error) {
      for (const close of added) close();
      throw error;
    }
    return { listeners, https };
  }

  #listen(address: string, port: number, answerer: Answerer): Promise<Listener> {
    return listenAt(address, port, answerer, this.#parts.log);
  }

  /** "host:port" → what is served there. An address without a host is the server's own. */
  #httpPaths({ http }: Instance): ReadonlyMap<string, ReadonlySet<HttpPath>> {
    const [own = ''] = this.#parts.addresses;
    const found = new Map<string, Set<HttpPath>>();
    for (const { at, path } of http) {
      const name = `${at.host === '' ? own : at.host} ${at.port}`;
      found.set(name, (found.get(name) ?? new Set()).add(path));
    }
    return found;
  }

  #serveHttp(name: string, paths: ReadonlySet<HttpPath>): Promise<HttpServer> {
    const [host = '', port = ''] = name.split(' ');
    return new Promise((resolve, reject) => {
      const server = createServer((request, response) => {
        const path = request.url?.split('?')[0];
        if (path === '/health' && http.paths.has(path)) response.end('OK');
        else if (path === '/ready' && http.paths.has(path)) {
          const waiting = this.#isLeaving ? ['Shutting down'] : this.#parts.notReady();
          response.writeHead(waiting.length === 0 ? 200 : 503).end(waiting.length === 0 ? 'OK' : waiting.join(','));
        } else if (path === '/metrics' && http.paths.has(path)) {
          this.#parts.metrics.text().then(
            (text) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text),
            (error: unknown) => response.writeHead(500).end(errorMessage(error)),
          );
        } else response.writeHead(404).end();
      });
      const http: HttpServer = { server, paths };
      server.once('error', reject);
      server.listen(Number(port), host, () => {
        server.off('error', reject);
        resolve(http);
      });
    });
  }

  async #findLoop(detector: LoopDetector, port: number): Promise<void> {
    const { clock, addresses } = this.#parts;
    const [address = ''] = addresses;
    const counts = { reused: () => undefined, opened: () => undefined };
    const pool = new ConnectionPool({ address, port }, { clock, expireMs: 0, maxIdle: 1, counts });
    const send = (query: Buffer): Promise<Buffer> => pool.exchange(query, 'udp', SELF_TIMEOUT_MS);
    try {
      await findLoop(detector, { ...this.#parts, server: serverName(address, port), send });
    } finally {
      pool.close();
    }
  }
}

function closeHttp({ server }: HttpServer): void {
  server.close();
  server.closeAllConnections();
}
