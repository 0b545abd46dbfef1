// The files of the node's log directory over HTTP: what Go's file server does for the kubelet's /logs/. Links are followed
// inside the directory alone: containers may write there by hostPath volumes, and the agent reads as root.

import { constants } from 'node:fs';
import { type FileHandle, open, readdir, readlink, realpath } from 'node:fs/promises';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { join, posix } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Clock, epochMs } from '../../lib/clock.ts';
import { errnoOf } from '../../lib/errors.ts';
import { escapeMarkup } from '../../lib/html.ts';
import { parseByteRange } from '../../lib/http-range.ts';
import { getOwn } from '../../lib/own-property.ts';
import { HttpError, sendText } from './http-answer.ts';

/** As much of a file is read to see whether it is text, bytes. */
const SNIFFED_BYTES = 512;

const ANSWERS: Readonly<Record<string, readonly [status: number, text: string]>> = {
  ENOENT: [404, '404 page not found\n'],
  ENOTDIR: [404, '404 page not found\n'],
  ENXIO: [404, '404 page not found\n'],
  ENAMETOOLONG: [404, '404 page not found\n'],
  EACCES: [403, '403 Forbidden\n'],
  EPERM: [403, '403 Forbidden\n'],
  ELOOP: [403, '403 Forbidden\n'],
};

export interface OpenedLog {
  readonly handle: FileHandle;
  readonly isDirectory: boolean;
  /** Bytes. */
  readonly size: number;
  readonly modified: Date;
}

/** Opens a file or directory for reading; the caller closes it. Rejects with HttpError for what may not be served. */
export async function openLog(directory: string, path: string): Promise<OpenedLog> {
  if (path.includes('\0')) throw new HttpError(404, '404 page not found\n');
  try {
    const root = await realpath(directory);
    // A pipe without a writer does not block, and a terminal does not become the agent's.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
    const handle = await open(join(root, posix.normalize(`/${path}`).replace(/\/$/, '')), flags);
    try {
      // The path of what was opened: links on the way may have been changed meanwhile.
      const real = await readlink(`/proc/self/fd/${handle.fd}`);
      const status = await handle.stat();
      const isWithin = real === root || real.startsWith(root === '/' ? '/' : `${root}/`);
      if (!isWithin || !(status.isFile() || status.isDirectory())) throw new HttpError(403, '403 Forbidden\n');
      return { handle, isDirectory: status.isDirectory(), size: status.size, modified: status.mtime };
    } catch (error) {
      await handle.close();
      throw error;
    }
  } catch (error) {
    const answer = getOwn(ANSWERS, errnoOf(error) ?? '');
    if (answer !== undefined) throw new HttpError(...answer, { cause: error });
    throw error;
  }
}

/** `path` is what follows "/logs/" in the URL, decoded. */
export async function serveLogFile(
  directory: string,
  path: string,
  headers: IncomingHttpHeaders,
  response: ServerResponse,
  clock: Clock,
): Promise<void> {
  const opened = await openLog(directory, path);
  try {
    const hasSlash = path === '' || path.endsWith('/');
    const name = posix.basename(path);
    if (opened.isDirectory && !hasSlash) return sendText(response, 301, '', clock, { location: `${encode(name)}/` });
    if (!opened.isDirectory && hasSlash) return sendText(response, 301, '', clock, { location: `../${encode(name)}` });
    // Seconds are what HTTP dates have.
    const modified = epochMs(Math.floor(opened.modified.getTime() / 1000) * 1000);
    const since = epochMs(Date.parse(headers['if-modified-since'] ?? ''));
    const common = { 'last-modified': new Date(modified).toUTCString() };
    if (modified <= since) return void response.writeHead(304, common).end();
    if (!opened.isDirectory) return await sendFile(opened, headers.range, common, response);
    const listing = await listingOf(`/proc/self/fd/${opened.handle.fd}`);
    return sendText(response, 200, listing, clock, { ...common, 'content-type': 'text/html; charset=utf-8' });
  } finally {
    await opened.handle.close();
  }
}

function encode(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}

async function listingOf(directory: string): Promise<string> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  // A name with a colon is no URL with a scheme.
  const link = (name: string): string => (name.includes(':') ? `./${encode(name)}` : encode(name));
  const lines = names.map((name) => `<a href="${escapeMarkup(link(name))}">${escapeMarkup(name)}</a>\n`);
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${lines.join('')}</pre>\n`;
}

/** The requested part of a file; the whole where several parts are requested. */
async function sendFile(
  { handle, size }: OpenedLog,
  requested: string | undefined,
  common: OutgoingHttpHeaders,
  response: ServerResponse,
): Promise<void> {
  const range = parseByteRange(requested, size);
  if (range.kind === 'unsatisfiable') {
    return void response.writeHead(416, { 'content-range': `bytes */${size}` }).end();
  }
  const head = Buffer.alloc(SNIFFED_BYTES);
  const { bytesRead } = await handle.read(head, 0, SNIFFED_BYTES, 0);
  const { start, end } = range.kind === 'part' ? range : { start: 0, end: size };
  response.writeHead(range.kind === 'part' ? 206 : 200, {
    ...common,
    'accept-ranges': 'bytes',
    'content-length': end - start,
    'content-type': isText(head.subarray(0, bytesRead)) ? 'text/plain; charset=utf-8' : 'application/octet-stream',
    // What a container wrote is not to be run by a browser.
    'x-content-type-options': 'nosniff',
    ...(range.kind === 'part' ? { 'content-range': `bytes ${start}-${end - 1}/${size}` } : {}),
  });
  if (end === start) return void response.end();
  await pipeline(readerOf(handle, start, end), response);
}

/** Bytes from `start` up to `end` exclusive. The caller closes the handle. */
export function readerOf(handle: FileHandle, start: number, end: number): Readable {
  return handle.createReadStream({ start, end: end - 1, autoClose: false });
}

/** As browsers decide it (WHATWG MIME Sniffing, binary data bytes). */
function isText(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte > 0x1f || byte === 0x1b || (byte >= 0x09 && byte <= 0x0d && byte !== 0x0b));
}
