// Small HTTP servers beside a program's work, for /metrics and health checks, at addresses as flags have them.

import type { RequestListener, Server, ServerResponse } from 'node:http';
import { errorMessage } from './errors.ts';
import { METRICS_CONTENT_TYPE } from './metrics.ts';
import { createServer } from './node-http.ts';

/** "127.0.0.1:10249", "[::]:10256"; ":10249" is every IPv4 address. Port 0 is any. */
export function splitHostPort(address: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
  return { host: host === '' ? '0.0.0.0' : host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

/** Resolves when it listens at "host:port". Rejects when the address is taken. */
export function listen(handler: RequestListener, address: string): Promise<Server> {
  const { host, port } = splitHostPort(address);
  return new Promise((resolve, reject) => {
    const server = createServer(handler);
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

/** Stops listening, and ends what is under way. */
export function closeServer(server: Server): void {
  server.close();
  server.closeAllConnections();
}

/** Responds with a page of metrics, or with the error that kept it from being made. */
export function respondMetrics(response: ServerResponse, page: Promise<string>): void {
  page.then(
    (text) => response.writeHead(200, { 'content-type': METRICS_CONTENT_TYPE }).end(text),
    (error: unknown) => response.writeHead(500).end(errorMessage(error)),
  );
}
