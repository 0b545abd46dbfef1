// The server's side of a SPDY/3.1 connection: streams that the client opens. SPDY's flow control is not served, as by no
// runtime's streaming server: a slow reader holds the connection.

import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import { dataFrame, type Frame, FrameReader, goAway, ping, rstStream, synReply } from '../../lib/spdy-frames.ts';
import { HeaderReader } from '../../lib/spdy-headers.ts';

const MAX_DATA = 64 * 1024;
const PROTOCOL_ERROR = 1;
/** Far more streams than a port-forward has open at a time. */
const MAX_STREAMS = 1000;

export class SpdyServerStream {
  readonly id: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What the client sends; ends with its side of the stream. */
  readonly input: Readable;
  readonly #connection: SpdyServer;
  #finished = false;

  constructor(connection: SpdyServer, id: number, headers: Readonly<Record<string, string>>) {
    this.#connection = connection;
    this.id = id;
    this.headers = headers;
    this.input = new Readable({ read: () => connection.resume() });
    // To a reader a reset is the end.
    this.input.on('error', () => undefined);
  }

  /** Resolves when the connection can take more. */
  async write(data: Buffer): Promise<void> {
    if (this.#finished) return;
    for (let at = 0; at < data.length; at += MAX_DATA) {
      await this.#connection.send(dataFrame(this.id, data.subarray(at, at + MAX_DATA), false));
    }
  }

  /** Nothing more is written. */
  end(): void {
    if (this.#finished) return;
    this.#finished = true;
    void this.#connection.send(dataFrame(this.id, Buffer.alloc(0), true));
  }

  reset(): void {
    if (!this.#finished) void this.#connection.send(rstStream(this.id, 5));
    this.#finished = true;
    this.input.push(null);
  }
}

export class SpdyServer {
  readonly #socket: Duplex;
  readonly #reader = new FrameReader();
  readonly #headers = new HeaderReader();
  readonly #streams = new Map<number, SpdyServerStream>();
  readonly #onStream: (stream: SpdyServerStream) => void;
  readonly #gone = new AbortController();
  /** Frames in their order: header blocks are inflated one after the other. */
  #last: Promise<void> = Promise.resolve();
  #replied = false;

  constructor(socket: Duplex, head: Buffer, onStream: (stream: SpdyServerStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.end());
    socket.once('close', () => {
      for (const { input } of this.#streams.values()) input.push(null);
      this.#headers.close();
      this.#gone.abort(new Error('the client has gone'));
    });
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    if (head.length > 0) this.#receive(head);
  }

  /** Aborts when the connection is over. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  resume(): void {
    this.#socket.resume();
  }

  async send(frame: Buffer): Promise<void> {
    if (!this.#socket.writable || this.#socket.write(frame)) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.#socket.off('drain', done).off('close', done);
        resolve();
      };
      this.#socket.once('drain', done).once('close', done);
    });
  }

  /** What has been sent arrives; then the connection is over. */
  close(): void {
    if (this.#socket.writable) this.#socket.end(goAway(0));
  }

  #receive(chunk: Buffer): void {
    for (const frame of this.#reader.push(chunk)) {
      this.#last = this.#last.then(() => this.#handle(frame)).catch(() => void this.#socket.destroy());
    }
  }

  async #handle(frame: Frame): Promise<void> {
    switch (frame.kind) {
      case 'ping':
        await this.send(ping(frame.id));
        return;
      case 'syn-stream':
        await this.#open(frame);
        return;
      case 'data': {
        const input = this.#streams.get(frame.stream)?.input;
        if (input === undefined || input.readableEnded) return;
        if (frame.data.length > 0 && !input.push(frame.data)) this.#socket.pause();
        if (frame.fin) input.push(null);
        return;
      }
      case 'rst-stream':
        this.#streams.get(frame.stream)?.input.push(null);
        this.#streams.delete(frame.stream);
        return;
      default:
    }
  }

  async #open({ stream: id, fin, block }: Extract<Frame, { kind: 'syn-stream' | 'syn-reply' }>): Promise<void> {
    const headers = await this.#headers.read(block);
    if (this.#streams.size >= MAX_STREAMS) {
      await this.send(rstStream(id, PROTOCOL_ERROR));
      return;
    }
    await this.send(synReply(id, !this.#replied));
    this.#replied = true;
    const stream = new SpdyServerStream(this, id, headers);
    this.#streams.set(id, stream);
    if (fin) stream.input.push(null);
    stream.input.once('close', () => this.#streams.delete(id));
    this.#onStream(stream);
  }
}
