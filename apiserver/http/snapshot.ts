// Sends a snapshot of the store to `nodelet apiserver snapshot save`, which only system:masters may ask for: the store's file
// is locked by the server, and no other process can copy it.

import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { errnoOf } from '../../lib/errors.ts';
import type { Exchange } from './exchange.ts';

export const SNAPSHOT_PATH = '/nodelet/snapshot';

/** Takes the response over once the file is open. A client that goes away is none of the server's faults. */
export async function sendFile({ response, hijack }: Exchange, path: string): Promise<void> {
  const file = await open(path);
  const { size } = await file.stat();
  hijack();
  response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': size });
  try {
    await pipeline(file.createReadStream(), response);
  } catch (error) {
    if (errnoOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}
