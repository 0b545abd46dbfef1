// A SPDY/3.1 connection over an upgraded HTTP request: what runtimes (and kubelets) serve exec, attach and port-forward
// with. Only the client's side, and only streams that it opens. Unlike WebSocket's v4 channels it can end one direction of
// a stream, which `echo … | exec -i … cat` needs.

import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { dataFrame, type Frame, FrameReader, goAway, ping, rstStream, synStream } from '../../../lib/spdy-frames.ts';

export interface StreamTls {
  readonly serverName: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** No frame that is sent is larger. */
const MAX_DATA = 64 * 1024;
export const MAX_ERROR_BODY = 64 * 1024;
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

export function tlsOptions(tls: StreamTls) {
  const { caFile, certFile, keyFile, serverName } = tls;
  // Without files the runtime's own certificate is taken as it is, as crictl does: the URL came over the CRI socket.
  if (caFile === '' && certFile === '' && keyFile === '') return { rejectUnauthorized: false };
  if (certFile === '' || keyFile === '') {
    throw new UserError('--tls-cert and --tls-key are both required for TLS streaming, --tls-ca is optional');
  }
  return {
    servername: serverName,
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ...(caFile !== '' && { ca: readFileSync(caFile) }),
  };
}

export interface Upgraded {
  readonly connection: SpdyConnection;
  /** The one of `protocols` that the server took; "" when it did not say. */
  readonly protocol: string;
}

/** Connects to a streaming URL of a runtime. Rejects with UserError that says what the server answered. */
export function connectSpdy(url: URL, protocols: readonly string[], tls: StreamTls): Promise<Upgraded> {
  const headers = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': [...protocols] };
  const secure = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers: { ...headers, 'Content-Length': 0 }, agent: false as const };
    const request = secure ? httpsRequest(url, { ...options, ...tlsOptions(tls) }) : httpRequest(url, options);
    request.once('upgrade', (response, socket, head) => {
      const protocol = response.headers['x-stream-protocol-version'];
      // http gives the raw socket, which is a net.Socket (or a TLSSocket).
      const connection = new SpdyConnection(socket as Socket, head);
      resolve({ connection, protocol: typeof protocol === 'string' ? protocol : '' });
    });
    request.once('response', (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body = `${body}${chunk}`.slice(0, MAX_ERROR_BODY);
      });
      response.once('end', () => {
        reject(new UserError(`unable to upgrade connection: ${response.statusCode} ${body.trim()}`));
      });
    });
    request.once('error', (error) => {
      reject(new UserError(`error sending request: ${url.origin}: ${errorMessage(error)}`, { cause: error }));
    });
    request.end();
  });
}
