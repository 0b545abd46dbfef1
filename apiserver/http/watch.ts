// Writes one watch to one connection: a JSON document per line, or a frame of protobuf, as soon as it is known. Events are encoded once and
// shared by all watchers that see them the same way. Decides nothing about what is seen: registry/watch.ts does.

import { randomInt } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { breakOff, type HttpResponse, isGone, streamOf } from '../../lib/http-message.ts';
import { internalError, StatusError } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import type { Registry, View } from '../registry/registry.ts';
import { startWatch, type Watch, type WatchEvent, type WatchOptions, type WatchSink } from '../registry/watch.ts';
import { type RenderOptions, renderBookmark, renderObject } from './render.ts';

const BOOKMARK_MS = 60_000;
/** A watch without timeoutSeconds ends after half an hour to an hour, so that not all end together. */
const MIN_TIMEOUT_S = 1800;
/** A watcher with this much unread data is sent no more until it has read it; later changes stay in the store. */
const MAX_UNREAD_BYTES = 512 * 1024;
/** How long a watcher may read the rest after its timeout. ms. */
const LAST_READ_MS = 30_000;

/** What events are on the wire. */
export interface WatchEncoding {
  readonly contentType: string;
  /** `object`: its JSON text. */
  readonly event: (type: string, object: string) => string | Buffer;
}

export const JSON_LINES: WatchEncoding = {
  contentType: 'application/json',
  event: (type, object) => `{"type":"${type}","object":${object}}\n`,
};

export interface WatchResponseOptions {
  readonly watch: WatchOptions;
  readonly render: Omit<RenderOptions, 'now'>;
  readonly encoding: WatchEncoding;
  readonly timeoutSeconds: number | undefined;
  readonly clock: Clock;
  /** Called with each event that is sent, bookmarks left out. */
  readonly onEvent?: (bytes: number) => void;
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
  response: HttpResponse,
  options: WatchResponseOptions,
): () => void {
  const stream = new WatchStream(row, response, options);
  stream.start(registry);
  return () => stream.end();
}

class WatchStream implements WatchSink {
  readonly #row: ResourceKind;
  readonly #response: HttpResponse;
  readonly #options: WatchResponseOptions;
  /** Of HTTP/1.1. */
  readonly #connection: Socket | undefined;
  #watch: Watch | undefined;
  #isOpen = false;
  /** What there was at the start may go out together. */
  #isLive = false;
  #isOver = false;
  /** The first event of a table has its columns. */
  #withHeader = true;
  #bookmarkTimer: Timer | undefined;
  #timeout: Timer | undefined;
  #lastRead: Timer | undefined;

  constructor(row: ResourceKind, response: HttpResponse, options: WatchResponseOptions) {
    this.#row = row;
    this.#response = response;
    this.#options = options;
    this.#connection = streamOf(response) === undefined ? response.req.socket : undefined;
  }

  /** Throws StatusError. */
  start(registry: Registry): void {
    this.#response.on('close', () => {
      this.end();
      this.#lastRead?.cancel();
    });
    try {
      this.#watch = startWatch(registry, this.#row, this.#options.watch, this);
    } catch (error) {
      if (!(error instanceof StatusError) || error.status.code !== 410) throw error;
      this.failed(error);
      return;
    }
    if (this.#isOver) {
      this.#watch.stop();
      return;
    }
    this.#open();
    this.#response.flushHeaders();
    this.#isLive = true;
    this.#startTimers(this.#watch);
  }

  #startTimers(watch: Watch): void {
    const { clock, timeoutSeconds } = this.#options;
    const { allowBookmarks } = this.#options.watch;
    const tick = (): void => {
      this.bookmark(watch.position(), false);
      this.#bookmarkTimer = clock.after(BOOKMARK_MS, tick);
    };
    if (allowBookmarks) this.#bookmarkTimer = clock.after(BOOKMARK_MS, tick);
    const seconds = timeoutSeconds || MIN_TIMEOUT_S + randomInt(MIN_TIMEOUT_S);
    this.#timeout = clock.after(seconds * 1000, () => {
      if (allowBookmarks) this.bookmark(watch.position(), false);
      this.end();
    });
  }

  /** The client may read the rest. Idempotent. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch?.stop();
    this.#bookmarkTimer?.cancel();
    this.#timeout?.cancel();
    const response = this.#response;
    if (isGone(response)) return;
    if (response.writableLength > 0) {
      this.#lastRead = this.#options.clock.after(LAST_READ_MS, () => breakOff(response));
    }
    response.end();
  }

  // ---------------------------------------------------------------- what the watch sends

  event({ type, view, change }: WatchEvent): void {
    let bytes: Buffer | string;
    try {
      const line = (): string | Buffer => this.#line(type, view());
      bytes = change === undefined ? line() : change.encoded(this.#encodingKey(type), line);
    } catch (error) {
      // An object that cannot be rendered must not fail the write that made it: only this watch ends, with an error.
      this.failed(error);
      return;
    }
    this.#write(bytes);
    this.#options.onEvent?.(typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length);
    this.#withHeader = false;
  }

  bookmark(revision: number | undefined, initialEventsEnd: boolean): void {
    if (revision === undefined) return;
    const { render, encoding, clock } = this.#options;
    let bytes: Buffer | string;
    try {
      const options = { ...render, now: clock.now() };
      const object = renderBookmark(this.#row, revision, initialEventsEnd, options, this.#withHeader);
      bytes = encoding.event('BOOKMARK', object);
    } catch (error) {
      this.failed(error);
      return;
    }
    this.#write(bytes);
    this.#withHeader = false;
  }

  failed(error: unknown): void {
    const { status } = error instanceof StatusError ? error : internalError(errorMessage(error));
    this.#write(this.#options.encoding.event('ERROR', JSON.stringify(status)));
    this.end();
  }

  isFull(): boolean {
    return this.#response.writableNeedDrain && this.#response.writableLength > MAX_UNREAD_BYTES;
  }

  whenDrained(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  // ---------------------------------------------------------------- the connection

  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#response.writeHead(200, {
      'Content-Type': this.#options.encoding.contentType,
      'Cache-Control': 'no-cache, private',
      ...this.#options.headers,
    });
  }

  #write(bytes: Buffer | string): void {
    const response = this.#response;
    if (isGone(response)) return;
    this.#open();
    response.write(bytes);
    // Node keeps the data until this turn is over, behind the response to the client that made the change, which then
    // takes the CPU. The watchers wait for this event more.
    if (this.#isLive) this.#connection?.uncork();
  }

  #line(type: string, view: View): string | Buffer {
    const { render, encoding, clock } = this.#options;
    const text = renderObject(this.#row, view, { ...render, now: clock.now() }, this.#withHeader);
    return encoding.event(type, text);
  }

  /** Watchers with the same key are sent the same bytes. */
  #encodingKey(type: string): string {
    const { form, includeObject } = this.#options.render;
    const { group, version } = this.#row;
    return `${group}/${version}|${form.media}|${form.as}|${form.version}|${includeObject}|${type}|${this.#withHeader}`;
  }
}
