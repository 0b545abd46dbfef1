// Bodies of HTTP responses with a limit on what is kept of them, by the async iterator. lib/http-get.ts reads those of probes,
// which are many and small, by events.

import type { IncomingMessage } from 'node:http';

async function chunksOf(response: IncomingMessage, isEnough: (bytes: number) => boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    size += bytes.length;
    if (isEnough(size)) break;
  }
  return Buffer.concat(chunks);
}

/** The beginning: whole chunks until there are `bytes`. The rest is not read, and the connection is closed then. */
export function readBeginning(response: IncomingMessage, bytes: number): Promise<Buffer> {
  return chunksOf(response, (size) => size >= bytes);
}

/** The whole body as UTF-8. Throws RangeError with `tooLarge` when it has more than `maxBytes`. */
export async function readText(response: IncomingMessage, maxBytes: number, tooLarge: string): Promise<string> {
  const body = await chunksOf(response, (size) => {
    if (size > maxBytes) throw new RangeError(tooLarge);
    return false;
  });
  return body.toString('utf8');
}
