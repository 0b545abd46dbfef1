// Writes one watch to one connection: a JSON document per line, as soon as it is known. Events are encoded once and
// shared by all watchers that see them the same way. Decides nothing about what is seen: registry/watch.ts does.

import { randomInt } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { internalError, StatusError } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import type { Registry, View } from '../registry/registry.ts';
import { startWatch, type Watch, type WatchEvent, type WatchOptions } from '../registry/watch.ts';
import { type RenderOptions, renderBookmark, renderObject } from './render.ts';

const BOOKMARK_MS = 60_000;
/** A watch without timeoutSeconds ends after half an hour to an hour, so that not all end together. */
const MIN_TIMEOUT_S = 1800;
/** A watcher with this much unread data is sent no more until it has read it; later changes stay in the store. */
const MAX_UNREAD_BYTES = 512 * 1024;
/** How long a watcher may read the rest after its timeout. ms. */
const LAST_READ_MS = 30_000;

export interface WatchResponseOptions {
  readonly watch: WatchOptions;
  readonly render: Omit<RenderOptions, 'now'>;
  readonly timeoutSeconds: number | undefined;
  readonly clock: Clock;
  /** More response headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Serves the watch until the client leaves, the time is up, or the returned function is called. Throws StatusError for
 * bad parameters before anything is written; history that is gone is an ERROR event of the stream.
 */
export function serveWatch(
  registry: Registry,
  row: ResourceKind,
  response: ServerResponse,
  options: WatchResponseOptions,
): () => void {
  const { clock } = options;
  let open = false;
  /** What there was at the start may go out together. */
  let live = false;
  let header = true;
  let watch: Watch | undefined;
  let over = false;
  const timers: (Timer | undefined)[] = [undefined, undefined];
  const begin = (): void => {
    if (open) return;
    open = true;
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-cache, private',
      ...options.headers,
    });
  };
  const end = (): void => {
    over = true;
    watch?.stop();
    for (const timer of timers) timer?.cancel();
    if (response.writableEnded || response.destroyed) return;
    if (response.writableLength > 0) timers[0] = clock.after(LAST_READ_MS, () => response.destroy());
    response.end();
  };
  const closed = (): void => {
    end();
    for (const timer of timers) timer?.cancel();
  };
  const write = (bytes: Buffer | string): void => {
    if (response.writableEnded || response.destroyed) return;
    begin();
    response.write(bytes);
    // Node keeps the data until this turn is over, behind the response to the client that made the change, which then
    // takes the CPU. The watchers wait for this event more.
    if (live) response.socket?.uncork();
  };
  const line = (type: string, view: View): string => {
    const text = renderObject(row, view, { ...options.render, now: clock.now() }, header);
    return `{"type":"${type}","object":${text}}\n`;
  };
  const { form, includeObject } = options.render;
  const keyOf = (type: string): string =>
    `${row.group}/${row.version}|${form.as}|${form.version}|${includeObject}|${type}|${header}`;
  const bookmark = (revision: number | undefined, initialEventsEnd: boolean): void => {
    if (revision === undefined) return;
    write(`{"type":"BOOKMARK","object":${renderBookmark(row, revision, initialEventsEnd, form)}}\n`);
  };
  const event = ({ type, view, change }: WatchEvent): void => {
    let bytes: Buffer | string;
    try {
      bytes = change === undefined ? line(type, view()) : change.encoded(keyOf(type), () => line(type, view()));
    } catch (error) {
      // An object that cannot be rendered must not fail the write that made it: only this watch ends, with an error.
      failed(error);
      return;
    }
    write(bytes);
    header = false;
  };
  const failed = (error: unknown): void => {
    const { status } = error instanceof StatusError ? error : internalError(errorMessage(error));
    write(`${JSON.stringify({ type: 'ERROR', object: status })}\n`);
    end();
  };
  const isFull = (): boolean => response.writableNeedDrain && response.writableLength > MAX_UNREAD_BYTES;
  const whenDrained = (resume: () => void): void => void response.once('drain', resume);
  response.on('close', closed);
  try {
    watch = startWatch(registry, row, options.watch, { event, bookmark, isFull, whenDrained, failed });
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 410) throw error;
    failed(error);
    return end;
  }
  const running = watch;
  if (over) {
    running.stop();
    return end;
  }
  begin();
  response.flushHeaders();
  live = true;
  if (options.watch.allowBookmarks) {
    const tick = (): void => {
      bookmark(running.position(), false);
      timers[0] = clock.after(BOOKMARK_MS, tick);
    };
    timers[0] = clock.after(BOOKMARK_MS, tick);
  }
  const seconds = options.timeoutSeconds || MIN_TIMEOUT_S + randomInt(MIN_TIMEOUT_S);
  timers[1] = clock.after(seconds * 1000, () => {
    if (options.watch.allowBookmarks) bookmark(running.position(), false);
    end();
  });
  return end;
}
