// Failures of the kubelet API as HTTP answers. The body is the bare message, as the kubelet's.

import type { ServerResponse } from 'node:http';

/** A request that cannot be served, with the status the kubelet gives it. */
export class HttpError extends Error {
  override name = 'HttpError';
  readonly status: number;
  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export function sendText(response: ServerResponse, status: number, text: string, headers: object = {}): void {
  const body = Buffer.from(text);
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'content-length': body.length,
    ...headers,
  });
  response.end(body);
}

export function sendJson(response: ServerResponse, value: unknown): void {
  const body = Buffer.from(`${JSON.stringify(value)}\n`);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}
