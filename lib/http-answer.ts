// Whether something answers HTTP at a URL, and with what status and headers. No body is read and no redirect followed; a server's
// certificate is verified. Not by `fetch`, which loads the whole of undici.

import type { IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { request as httpRequest } from './node-http.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Undefined where it cannot be reached: no name, no connection, no trust, no HTTP, or the signal aborts first. */
export function httpAnswer(url: string, signal: AbortSignal): Promise<HttpAnswer | undefined> {
  return new Promise((resolve) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = send(url, { signal, agent: false }, (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers });
      response.destroy();
    });
    request.on('error', () => resolve(undefined));
    request.end();
  });
}
