// The HTTP servers of a proxy: /healthz and /livez, /metrics, and one for each service that has a health check node port, by which a
// load balancer finds out whether this node has endpoints.

import type { Server } from 'node:http';
import { type EpochMs, elapsedMs } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { closeServer } from '../lib/http-listen.ts';
import { createServer } from '../lib/node-http.ts';
import { rfc3339Milli } from '../lib/rfc3339.ts';

/** When rules were last written, and since when some wait to be; undefined: none do. */
export interface SyncTimes {
  readonly lastUpdated: EpochMs;
  readonly waitingSince: EpochMs | undefined;
}

/** Unhealthy: what waits has waited for this long. kube-proxy's: twice the time between full syncs. Pure. */
export function isHealthy({ waitingSince }: SyncTimes, now: EpochMs, limitMs: number): boolean {
  return waitingSince === undefined || elapsedMs(waitingSince, now) < limitMs;
}

export function healthzBody({ lastUpdated }: SyncTimes, now: EpochMs, nodeEligible: boolean | undefined): string {
  const eligible = nodeEligible === undefined ? {} : { nodeEligible };
  return JSON.stringify({ lastUpdated: rfc3339Milli(lastUpdated), currentTime: rfc3339Milli(now), ...eligible });
}

/** What a load balancer gets: 200 where this node has endpoints and its rules are written, else 503. Pure. */
export function serviceHealth(
  key: string,
  localEndpoints: number,
  healthy: boolean,
): { readonly code: number; readonly body: string } {
  const [namespace, name] = key.split('/');
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy: healthy };
  return { code: localEndpoints > 0 && healthy ? 200 : 503, body: `${JSON.stringify(body, undefined, '\t')}\n` };
}

interface Checked {
  readonly port: number;
  localEndpoints: number;
  readonly server: Server;
}

/** The servers of services; those of one process. */
export class ServiceHealth {
  readonly #servers = new Map<string, Checked>();
  readonly #isHealthy: () => boolean;
  readonly #log: (message: string) => void;

  constructor(isHealthyNow: () => boolean, log: (message: string) => void) {
    this.#isHealthy = isHealthyNow;
    this.#log = log;
  }

  update(services: ReadonlyMap<string, { readonly localReady: number; readonly healthCheckNodePort: number }>): void {
    for (const [key, { port, server }] of this.#servers) {
      if (services.get(key)?.healthCheckNodePort === port) continue;
      closeServer(server);
      this.#servers.delete(key);
    }
    for (const [key, { localReady, healthCheckNodePort }] of services) {
      if (healthCheckNodePort === 0) continue;
      const known = this.#servers.get(key);
      if (known !== undefined) known.localEndpoints = localReady;
      else this.#start(key, healthCheckNodePort, localReady);
    }
  }

  #start(key: string, port: number, localEndpoints: number): void {
    const server = createServer((_request, response) => {
      const count = this.#servers.get(key)?.localEndpoints ?? 0;
      const { code, body } = serviceHealth(key, count, this.#isHealthy());
      response.writeHead(code, {
        'content-type': 'application/json',
        'x-content-type-options': 'nosniff',
        'x-load-balancing-endpoint-weight': String(count),
      });
      response.end(body);
    });
    server.once('error', (error) => {
      this.#log(`health check node port ${port} of ${key}: ${errorMessage(error)}`);
      this.#servers.delete(key);
    });
    server.listen(port);
    this.#servers.set(key, { port, localEndpoints, server });
  }

  close(): void {
    this.update(new Map());
  }
}
