// The client's side of a SPDY/3.1 connection: what runtimes and kubelets serve exec, attach and port-forward with. Only streams
// that it opens. Unlike WebSocket's v4 channels it can end one direction of a stream.

import type { Socket } from 'node:net';
import { dataFrame, type Frame, FrameReader, goAway, ping, rstStream, synStream } from './spdy-frames.ts';

/** No frame that is sent is larger. */
const MAX_DATA = 64 * 1024;
const CANCEL = 5;

export interface SpdyHandlers {
  readonly data?: (data: Buffer) => void;
  /** Nothing more comes from the other side: its end, a reset, or the end of the connection. */
  readonly end?: () => void;
}

export interface SpdyStream {
  /** False while the connection is behind; `drained` says when it is not. */
  write(data: Buffer): boolean;
  drained(): Promise<void>;
  /** Nothing more is written. */
  end(): void;
  reset(): void;
}

interface OpenStream {
  readonly handlers: SpdyHandlers;
  ended: boolean;
  finished: boolean;
}

export class SpdyConnection {
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #streams = new Map<number, OpenStream>();
  #next = 1;
  /** Resolves when the connection is over, however it ended. */
  readonly closed: Promise<void>;

  constructor(socket: Socket, head: Buffer) {
    this.#socket = socket;
    socket.setNoDelay(true);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        for (const stream of this.#streams.values()) this.#ended(stream);
        this.#streams.clear();
        resolve();
      });
    });
    // A broken connection ends its streams; callers that need more than their end find that missing.
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.end());
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    if (head.length > 0) this.#receive(head);
  }

  #receive(chunk: Buffer): void {
    for (const frame of this.#reader.push(chunk)) this.#handle(frame);
  }

  #handle(frame: Frame): void {
    if (frame.kind === 'ping') this.#socket.write(ping(frame.id));
    if (frame.kind !== 'data' && frame.kind !== 'syn-reply' && frame.kind !== 'rst-stream') return;
    const stream = this.#streams.get(frame.stream);
    if (stream === undefined) return;
    if (frame.kind === 'data' && frame.data.length > 0) stream.handlers.data?.(frame.data);
    if (frame.kind === 'rst-stream') stream.finished = true;
    if (frame.kind === 'rst-stream' || frame.fin) this.#ended(stream);
    this.#forget(frame.stream, stream);
  }

  #ended(stream: OpenStream): void {
    if (stream.ended) return;
    stream.ended = true;
    stream.handlers.end?.();
  }

  #forget(id: number, stream: OpenStream): void {
    if (stream.ended && stream.finished) this.#streams.delete(id);
  }

  /** Header names in lower case. */
  open(headers: Readonly<Record<string, string>>, handlers: SpdyHandlers): SpdyStream {
    const id = this.#next;
    this.#next += 2;
    const stream: OpenStream = { handlers, ended: false, finished: false };
    this.#streams.set(id, stream);
    this.#socket.write(synStream(id, headers, id === 1));
    const finish = (frame: Buffer): void => {
      if (stream.finished) return;
      stream.finished = true;
      if (this.#socket.writable) this.#socket.write(frame);
      this.#forget(id, stream);
    };
    return {
      write: (data) => {
        if (stream.finished || !this.#socket.writable) return true;
        let free = true;
        for (let at = 0; at < data.length; at += MAX_DATA) {
          free = this.#socket.write(dataFrame(id, data.subarray(at, at + MAX_DATA), false));
        }
        return free;
      },
      drained: () => {
        if (!this.#socket.writableNeedDrain) return Promise.resolve();
        const drain = new Promise<void>((resolve) => this.#socket.once('drain', resolve));
        return Promise.race([drain, this.closed]);
      },
      end: () => finish(dataFrame(id, Buffer.alloc(0), true)),
      reset: () => {
        const over = stream.ended && stream.finished;
        stream.ended = true;
        stream.finished = true;
        this.#streams.delete(id);
        if (!over && this.#socket.writable) this.#socket.write(rstStream(id, CANCEL));
      },
    };
  }

  /** What comes in waits, or goes on: for a reader that is slow. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    if (this.#socket.writable) this.#socket.end(goAway(0));
    this.#socket.destroySoon();
  }
}
