// The embedded API server on a free port of this machine, with its own certificates and store, and callers of every
// kind for it. No lab, no kubelet.

import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApiServer } from '../../apiserver/main.ts';
import type { ApiServerOptions, RunningApiServer } from '../../apiserver/options.ts';
import { generateKeyPair, issueCertificate, type Signer } from '../../apiserver/pki/keys.ts';
import {
  type Clock,
  type EpochMs,
  epochMs,
  type MonotonicMs,
  monotonicMs,
  plusMs,
  systemClock,
  type Timer,
} from '../../lib/clock.ts';
import { Tracer } from '../../lib/trace.ts';

const HOUR_MS = 3_600_000;

/** The machine's clock with another date, on which time can be made to pass. */
export class ShiftedClock implements Clock {
  readonly #pending = new Set<{ readonly at: number; readonly fire: () => void }>();
  /** ms. */
  shift = 0;
  now(): EpochMs {
    return epochMs(systemClock.now() + this.shift);
  }
  monotonic(): MonotonicMs {
    return monotonicMs(systemClock.monotonic());
  }
  after(ms: number, fn: () => void): Timer {
    const cancel = (): void => {
      this.#pending.delete(entry);
      timer.cancel();
    };
    const fire = (): void => {
      cancel();
      fn();
    };
    const entry = { at: this.monotonic() + ms, fire };
    this.#pending.add(entry);
    const timer = systemClock.after(ms, fire);
    return { cancel };
  }
  /** Fires what is set for the next `ms`; the date stays what it is. */
  elapse(ms: number): void {
    const until = this.monotonic() + ms;
    for (const { fire } of [...this.#pending].filter(({ at }) => at <= until)) fire();
  }
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal);
  }
}

/** How a request says who it comes from. */
export interface Credentials {
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

export interface Call {
  readonly method?: string;
  readonly path: string;
  readonly as?: Credentials;
  readonly body?: unknown;
  /** Values that are lists are sent as so many headers. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

export interface Answer {
  readonly code: number;
  readonly text: string;
  /** Undefined for anything but one JSON document. */
  readonly json: unknown;
  /** Warning headers, each as it was sent. */
  readonly warnings: readonly string[];
  /** By names in lower case. */
  readonly headers: IncomingHttpHeaders;
}

/** What stands at a path inside JSON; undefined where it leads nowhere. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export class TestApiServer {
  readonly #directory: string;
  readonly #agents = new Map<Credentials | undefined, Agent>();
  readonly clock: ShiftedClock;
  readonly server: RunningApiServer;
  /** What the server logged. */
  readonly lines: string[];

  private constructor(directory: string, clock: ShiftedClock, server: RunningApiServer, lines: string[]) {
    this.#directory = directory;
    this.clock = clock;
    this.server = server;
    this.lines = lines;
  }

  static async start(
    options: Pick<
      ApiServerOptions,
      | 'nodeAudiences'
      | 'admission'
      | 'auth'
      | 'audit'
      | 'limits'
      | 'serviceCidrs'
      | 'http2'
      | 'advertiseAddress'
      | 'encryptionProviderConfig'
      | 'encryptionReload'
    > = {},
  ): Promise<TestApiServer> {
    const directory = await mkdtemp(join(tmpdir(), 'nodelet-api-'));
    const clock = new ShiftedClock();
    const lines: string[] = [];
    try {
      const server = await startApiServer({
        pkiDir: join(directory, 'pki'),
        dbPath: join(directory, 'store.db'),
        address: '127.0.0.1',
        port: 0,
        hosts: [],
        nodeName: 'n1',
        tracer: new Tracer(),
        clock,
        log: (line) => lines.push(line),
        ...options,
      });
      return new TestApiServer(directory, clock, server, lines);
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents.values()) agent.destroy();
    await this.server.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** The store's file; its log is beside it. */
  get storePath(): string {
    return join(this.#directory, 'store.db');
  }

  get admin(): Credentials {
    return this.server.pki.clients.admin;
  }

  /** A certificate of the server's CA, or of another. */
  async certificate(
    commonName: string,
    organization?: string,
    more: { readonly usage?: 'client' | 'server'; readonly lifeMs?: number; readonly ca?: Signer } = {},
  ): Promise<Credentials> {
    const { usage = 'client', lifeMs = HOUR_MS, ca = this.server.pki.ca } = more;
    const pair = generateKeyPair();
    const notBefore = epochMs(Math.floor(systemClock.now() / 1000) * 1000 - 2 * HOUR_MS);
    const subject = { commonName, usage, ...(organization === undefined ? {} : { organization }) };
    const life = { notBefore, notAfter: plusMs(notBefore, 2 * HOUR_MS + lifeMs) };
    return { cert: await issueCertificate({ ...subject, ...life }, pair, ca), key: pair.privateKey };
  }

  /** A CA that the server does not know. */
  async otherCa(): Promise<Signer> {
    const pair = generateKeyPair();
    const notBefore = plusMs(systemClock.now(), -HOUR_MS);
    const life = { notBefore, notAfter: plusMs(notBefore, 24 * HOUR_MS) };
    const cert = await issueCertificate({ commonName: 'kubernetes-ca', usage: 'ca', ...life }, pair);
    return { cert, key: pair.privateKey };
  }

  async node(name: string): Promise<Credentials> {
    return this.certificate(`system:node:${name}`, 'system:nodes');
  }

  /** One agent for each identity: callers keep their connections, as real ones do. */
  #agentOf(as: Credentials | undefined): Agent {
    let agent = this.#agents.get(as);
    if (agent === undefined) {
      const { cert, key } = as ?? {};
      const client = cert === undefined || key === undefined ? {} : { cert, key };
      agent = new Agent({ keepAlive: true, maxSockets: 4, ca: this.server.pki.ca.cert, ...client });
      this.#agents.set(as, agent);
    }
    return agent;
  }

  /** Sends one request and reads the whole answer; a connection that is upgraded is closed. */
  async call({ method = 'GET', path, as, body, headers = {} }: Call): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const authorization = as?.token === undefined ? {} : { authorization: `Bearer ${as.token}` };
    const outgoing = httpsRequest(
      `${this.server.url}${path}`,
      { method, agent: this.#agentOf(as), headers: { ...type, ...authorization, ...headers } },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => {
          const warnings = response.headersDistinct['warning'] ?? [];
          resolve({ code: response.statusCode ?? 0, text, json: parsed(text), warnings, headers: response.headers });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.on('upgrade', ({ statusCode = 0, headers }, socket) => {
      socket.destroy();
      resolve({ code: statusCode, text: '', json: undefined, warnings: [], headers });
    });
    outgoing.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
    return promise;
  }

  /** Opens a watch; resolves once it shows something. `ended` resolves when the server has ended it. */
  async watch(path: string, as: Credentials): Promise<{ readonly ended: Promise<void>; readonly close: () => void }> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const outgoing = httpsRequest(`${this.server.url}${path}`, { agent: this.#agentOf(as) }, resolve);
    outgoing.on('error', reject);
    outgoing.end();
    const response = await promise;
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
    response.resume();
    return { ended: new Promise((end) => response.once('end', end)), close: () => outgoing.destroy() };
  }

  /** The same as the admin; throws unless it succeeds. */
  async admit(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<unknown> {
    const { code, text, json } = await this.call({ method, path, as: this.admin, body, headers });
    if (code >= 300) throw new Error(`${method} ${path}: ${code} ${text}`);
    return json;
  }
}
