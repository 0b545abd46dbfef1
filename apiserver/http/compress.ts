// Compression of responses, as kube-apiserver does it: gzip at its fastest level for whole responses beyond 128 KiB, for clients that
// name it; streams are never compressed. The work is done by the runtime's threads. And what ETags mean for both forms.

import { constants, gzip } from 'node:zlib';

/** Bytes. Less is sent faster as it is. */
export const COMPRESSED_FROM = 128 * 1024;
/** Bytes that a thread makes before the event loop takes it over. */
const CHUNK = 256 * 1024;

/** Whether a client wants gzip, by Accept-Encoding: only where it names it as such, as upstream. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const values = Array.isArray(header) ? header : [header ?? ''];
  return values.some((value) => value.split(',').some((coding) => coding.trim() === 'gzip'));
}

/** Rejects where the runtime has no memory left. */
export function compressed(body: Uint8Array): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  gzip(body, { level: constants.Z_BEST_SPEED, chunkSize: CHUNK }, (error, result) => {
    if (error === null) resolve(result);
    else reject(error);
  });
  return promise;
}

/** Headers of the compressed form: it has another length and other bytes, so that a strong ETag would not hold for it. */
export function compressedHeaders(
  headers: Readonly<Record<string, string | string[]>>,
): Record<string, string | string[]> {
  const { ETag: tag } = headers;
  return {
    ...headers,
    ...(typeof tag === 'string' && !tag.startsWith('W/') ? { ETag: `W/${tag}` } : {}),
    'Content-Encoding': 'gzip',
  };
}

/** With Accept-Encoding among what the response depends on: caches keep both forms apart. */
export function varyByEncoding(
  headers: Readonly<Record<string, string | string[]>>,
): Record<string, string | string[]> {
  const { Vary: vary = [] } = headers;
  return { ...headers, Vary: [...(Array.isArray(vary) ? vary : [vary]), 'Accept-Encoding'].join(', ') };
}

/** Whether the client has this form already: If-None-Match compares weakly (RFC 9110, section 13.1.2). */
export function isKnown(tag: string | undefined, ifNoneMatch: string | undefined): boolean {
  if (tag === undefined || ifNoneMatch === undefined) return false;
  const bare = (text: string): string => text.trim().replace(/^W\//, '');
  return ifNoneMatch.split(',').some((one) => bare(one) === '*' || bare(one) === bare(tag));
}
