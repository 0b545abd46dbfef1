// A container's log through the API server, as the bytes come. Never parses or decodes them.

import type { ApiClient } from './api.ts';
import { resourcePath } from './paths.ts';

export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container?: string;
  readonly follow?: boolean;
  /** Of the container's last instance. */
  readonly previous?: boolean;
  readonly tailLines?: number;
  readonly sinceSeconds?: number;
  readonly timestamps?: boolean;
}

/** Ends when the log does (or the container, when following), or when `signal` aborts. */
export function streamLogs(client: ApiClient, request: LogRequest, signal: AbortSignal): AsyncGenerator<Buffer> {
  const { namespace, pod, ...query } = request;
  return client.stream(resourcePath('v1', 'pods', { namespace, name: pod, subresource: 'log' }), query, signal);
}

/** The log as it is now. */
export async function readLogs(client: ApiClient, request: Omit<LogRequest, 'follow'>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of streamLogs(client, request, new AbortController().signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
