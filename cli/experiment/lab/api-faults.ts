// Faults of API calls on a lab: they are encrypted, so this stands between the agent and the API server as both of them. To the
// agent it is the server, with the server's own certificate; to the server it is the agent, with the agent's. All other calls,
// watches among them, pass as they are.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { requestInfo } from '../../../client/paths.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { createServer } from '../../../lib/node-http.ts';
import { listenOnSocket } from '../../../lib/unix-socket.ts';
import { apiFailure, delayOf, FaultSet, podOfPath } from '../fault-set.ts';
import type { FaultRule } from '../model.ts';

/** PEM texts, and where the API server listens on 127.0.0.1. */
export interface ApiParties {
  readonly ca: string;
  readonly server: { readonly cert: string; readonly key: string; readonly port: number };
  readonly agent: { readonly cert: string; readonly key: string };
}

export interface ApiFaultsOptions {
  readonly parties: ApiParties;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

/** "PATCH /api/v1/namespaces/demo/pods/web/status"; LIST and WATCH are calls of their own, as they are for authorization. Pure. */
export function callName(method: string, url: string): { readonly call: string; readonly path: string } {
  const { pathname: path, searchParams } = new URL(url, 'https://server');
  const watches = ['true', '1'].includes(searchParams.get('watch') ?? '');
  const verb = method !== 'GET' ? method : watches ? 'WATCH' : requestInfo(path).collection ? 'LIST' : 'GET';
  return { call: `${verb} ${path}`, path };
}

export class ApiFaults {
  readonly #options: ApiFaultsOptions;
  readonly #http: Server;
  readonly #tls: TlsServer;
  readonly #upstream: Agent;
  #faults = new FaultSet([]);

  constructor(options: ApiFaultsOptions) {
    this.#options = options;
    const { server, agent, ca } = options.parties;
    this.#http = createServer((call, answer) => this.#serve(call, answer));
    // A watch lasts, and a call that is delayed does.
    this.#http.requestTimeout = 0;
    this.#http.headersTimeout = 0;
    this.#tls = createTlsServer({ cert: server.cert, key: server.key, ALPNProtocols: ['http/1.1'] }, (socket) =>
      this.#http.emit('connection', socket),
    );
    this.#upstream = new Agent({ keepAlive: true, ca, cert: agent.cert, key: agent.key });
  }

  /** Rejects with UserError when the socket is in use. */
  listenAt(path: string): Promise<void> {
    return listenOnSocket(this.#tls, path);
  }

  /** Other rules from now on, whose counts begin anew. */
  setFaults(rules: readonly FaultRule[]): void {
    this.#faults = new FaultSet(rules);
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#upstream.destroy();
    if (this.#tls.listening) await new Promise<void>((resolve) => this.#tls.close(() => resolve()));
  }

  #serve(call: IncomingMessage, answer: ServerResponse): void {
    const { clock, log } = this.#options;
    const { call: name, path } = callName(call.method ?? '', call.url ?? '');
    const rule = this.#faults.take(name, podOfPath(path));
    // An end is seen in `close`.
    answer.on('error', () => undefined);
    if (rule === undefined) {
      this.#pass(call, answer);
      return;
    }
    log(`${name}: ${rule.action}`);
    const { action, delay } = rule;
    if (action === 'hang') call.resume();
    else if (delay === undefined && action !== 'delay') this.#act(rule, name, call, answer);
    else {
      const timer = clock.after(delayOf(rule), () => this.#act(rule, name, call, answer));
      answer.once('close', () => timer.cancel());
    }
  }

  #act(rule: FaultRule, name: string, call: IncomingMessage, answer: ServerResponse): void {
    if (rule.action !== 'fail') {
      this.#pass(call, answer, rule.action === 'drop');
      return;
    }
    const status = apiFailure(rule, name);
    call.resume();
    answer.writeHead(status.code, { 'content-type': 'application/json' }).end(JSON.stringify(status));
  }

  /** `isLost`: the server does it, and its answer does not come. */
  #pass(call: IncomingMessage, answer: ServerResponse, isLost = false): void {
    const { method, url: path, headers } = call;
    const { port } = this.#options.parties.server;
    const onward = request({ agent: this.#upstream, host: '127.0.0.1', port, method, path, headers }, (response) => {
      response.on('error', () => answer.destroy());
      if (isLost) {
        response.resume();
        return;
      }
      answer.writeHead(response.statusCode ?? 502, response.headers);
      // The beginning of a watch is known before its first event.
      answer.flushHeaders();
      response.pipe(answer);
    });
    onward.on('error', (error) => {
      this.#options.log(`the API server: ${errorMessage(error)}`);
      answer.destroy();
    });
    answer.once('close', () => {
      if (!answer.writableFinished) onward.destroy();
    });
    call.pipe(onward);
  }
}
