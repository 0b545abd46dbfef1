// Reads SPDY/3.1 header blocks: one zlib stream for each connection, with the dictionary that the protocol's draft 3 fixes
// (section 2.6.10.1). Clients that need none, such as nodelet's own, are read as well.

import { constants, createInflate, type Inflate } from 'node:zlib';
import { setOwn } from './own-property.ts';

/** Each with its length in four bytes before it. */
const WORDS =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow ' +
  'authorization cache-control connection content-base content-encoding content-language content-length ' +
  'content-location content-md5 content-range content-type date etag expect expires from host if-match ' +
  'if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma ' +
  'proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade ' +
  'user-agent vary via warning www-authenticate method get status';
const MORE_WORDS = ['200 OK', 'version', 'HTTP/1.1', 'url', 'public', 'set-cookie', 'keep-alive', 'origin'];
/** Without lengths. */
const TEXT =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505' +
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized' +
  '403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable' +
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,' +
  'text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.';

function withLength(word: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(word.length);
  return Buffer.concat([length, Buffer.from(word)]);
}

export const SPDY_DICTIONARY: Buffer = Buffer.concat([
  ...[...WORDS.split(' '), ...MORE_WORDS].map(withLength),
  Buffer.from(TEXT),
]);

/** Far more than a stream of exec or port-forward has. */
const MAX_HEADERS = 64 * 1024;

/** The names and values of an inflated block. Throws RangeError for one that is cut short. Pure. */
export function parseHeaders(plain: Buffer): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  let at = 4;
  const text = (): string => {
    const length = plain.readUInt32BE(at);
    if (at + 4 + length > plain.length) throw new RangeError('a header block is cut short');
    at += 4 + length;
    return plain.toString('utf8', at - length, at);
  };
  for (let left = plain.readUInt32BE(0); left > 0; left--) setOwn(headers, text(), text());
  return headers;
}

/** Of one connection. Blocks have to be read in the order in which they came, each after the other. */
export class HeaderReader {
  readonly #inflate: Inflate = createInflate({
    dictionary: SPDY_DICTIONARY,
    flush: constants.Z_SYNC_FLUSH,
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  #plain: Buffer[] = [];

  constructor() {
    this.#inflate.on('data', (chunk: Buffer) => this.#plain.push(chunk));
    // A read listens for its own error; between two reads there is no listener.
    this.#inflate.on('error', () => undefined);
  }

  /** Rejects for what is no block of this stream. */
  async read(block: Buffer): Promise<Readonly<Record<string, string>>> {
    await new Promise<void>((resolve, reject) => {
      // A failure of the inflater is an event, and never a callback.
      this.#inflate.once('error', reject);
      this.#inflate.write(block, (error) => {
        this.#inflate.off('error', reject);
        if (error) reject(error);
        else resolve();
      });
    });
    const plain = Buffer.concat(this.#plain);
    this.#plain = [];
    if (plain.length > MAX_HEADERS) throw new RangeError(`a header block of ${plain.length} bytes`);
    return parseHeaders(plain);
  }

  close(): void {
    this.#inflate.destroy();
  }
}
