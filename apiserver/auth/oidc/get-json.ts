// Reads a JSON document over HTTPS, with CAs of one's own or the machine's, for as long as its headers say that it is good.

import { request } from 'node:https';
import { getCACertificates } from 'node:tls';
import type { Clock } from '../../../lib/clock.ts';

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 10;

export interface Document {
  readonly body: unknown;
  /** How long it may be kept, by Cache-Control. */
  readonly maxAgeMs: number;
}

interface Response {
  readonly code: number;
  readonly text: string;
  readonly location: string | undefined;
  readonly cacheControl: string;
}

/** 0 for what may not be kept by a shared cache, or says nothing. Pure. */
export function maxAgeMsOf(cacheControl: string): number {
  const directives = cacheControl
    .toLowerCase()
    .split(',')
    .map((one) => one.trim());
  if (directives.some((one) => /^(no-store|no-cache|private)\b/.test(one))) return 0;
  const seconds = (name: string): string | undefined =>
    directives.map((one) => new RegExp(`^${name}="?(\\d+)"?$`).exec(one)?.[1]).find((value) => value !== undefined);
  return Number(seconds('s-maxage') ?? seconds('max-age') ?? 0) * 1000;
}

function get(url: string, ca: string | undefined, clock: Clock): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const authorities = ca ?? getCACertificates('system');
  const outgoing = request(
    url,
    { agent: false, ca: authorities, headers: { accept: 'application/json' } },
    (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_BYTES) outgoing.destroy(new Error(`the document has more than ${MAX_BYTES} bytes`));
        else chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          code: response.statusCode ?? 0,
          text: Buffer.concat(chunks).toString('utf8'),
          location: response.headers.location,
          cacheControl: response.headers['cache-control'] ?? '',
        }),
      );
    },
  );
  outgoing.on('error', reject);
  const timer = clock.after(TIMEOUT_MS, () => outgoing.destroy(new Error('context deadline exceeded')));
  outgoing.end();
  return promise.finally(() => timer.cancel());
}

/** Rejects with an Error that names the URL. `ca` is PEM; undefined: the machine's CAs. */
export async function getJson(first: string, ca: string | undefined, { clock }: { clock: Clock }): Promise<Document> {
  let url = first;
  try {
    for (let redirects = 0; ; redirects++) {
      if (new URL(url).protocol !== 'https:') throw new Error('the URL is not of the scheme https');
      const { code, text, location, cacheControl } = await get(url, ca, clock);
      if (code >= 300 && code < 400 && location !== undefined && URL.canParse(location, url)) {
        if (redirects >= MAX_REDIRECTS) throw new Error(`stopped after ${MAX_REDIRECTS} redirects`);
        url = new URL(location, url).href;
        continue;
      }
      if (code !== 200) throw new Error(`${code}: ${text.slice(0, 256)}`);
      return { body: JSON.parse(text), maxAgeMs: maxAgeMsOf(cacheControl) };
    }
  } catch (error) {
    throw new Error(`Get "${url}": ${error instanceof Error ? error.message : String(error)}`);
  }
}
