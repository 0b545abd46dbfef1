// Failures of the kubelet API as HTTP answers. The body is the bare message, as the kubelet's.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import { sendResponse } from '../../lib/finish-connection.ts';

/** A request that cannot be served, with the kubelet's status code. */
export class HttpError extends Error {
  override name = 'HttpError';
  readonly status: number;
  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** A request body that is still to come is not read. */
export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  clock: Clock,
  headers: OutgoingHttpHeaders = {},
): void {
  const plain = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
  sendResponse(response, status, { ...plain, ...headers }, Buffer.from(text), clock);
}

export function sendJson(response: ServerResponse, value: unknown, clock: Clock): void {
  const body = Buffer.from(`${JSON.stringify(value)}\n`);
  sendResponse(response, 200, { 'content-type': 'application/json' }, body, clock);
}
