// Streams over a WebSocket: the first byte of each message is its channel. For exec and attach v5.channel.k8s.io can end one
// direction, v4.channel.k8s.io cannot: a runtime that serves v4 alone never learns that the input has ended. A forwarded
// connection has a WebSocket of its own, with a channel for data and one for what went wrong.

import type { Socket } from 'node:net';
import WebSocket from 'ws';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { MAX_ERROR_BODY, type SpdyHandlers, type SpdyStream, type StreamTls, tlsOptions } from './spdy.ts';

const V5 = 'v5.channel.k8s.io';
const V4 = 'v4.channel.k8s.io';
const CHANNELS: ReadonlyMap<string, number> = new Map([
  ['stdin', 0],
  ['stdout', 1],
  ['stderr', 2],
  ['error', 3],
  ['resize', 4],
]);
/** v5: the next byte is a channel that is over. */
const CLOSE = 255;
/** More than this waits to be sent: who writes has to wait as well. bytes. */
const HIGH_WATER = 1024 * 1024;

function bytesOf(data: WebSocket.RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** What exec and attach need of a connection, over SPDY or a WebSocket. Nothing may come before `resume`. */
export interface StreamConnection {
  open(headers: Readonly<Record<string, string>>, handlers: SpdyHandlers): SpdyStream;
  /** What comes in waits, or goes on. */
  pause(): void;
  resume(): void;
  close(): void;
}

class WebSocketConnection implements StreamConnection {
  readonly #socket: WebSocket;
  readonly #onNoEnd: () => void;
  readonly #open = new Map<number, SpdyHandlers>();

  constructor(socket: WebSocket, onNoEnd: () => void) {
    this.#socket = socket;
    this.#onNoEnd = onNoEnd;
    socket.once('open', () => socket.pause());
    socket.on('message', (data) => this.#receive(bytesOf(data)));
    socket.on('close', () => {
      for (const channel of [...this.#open.keys()]) this.#ended(channel);
    });
  }

  #receive(message: Buffer): void {
    const channel = message[0];
    if (channel === undefined) return;
    if (channel === CLOSE && this.#socket.protocol === V5) this.#ended(message[1] ?? CLOSE);
    else if (message.length > 1) this.#open.get(channel)?.data?.(message.subarray(1));
  }

  #ended(channel: number): void {
    const handlers = this.#open.get(channel);
    this.#open.delete(channel);
    handlers?.end?.();
  }

  #send(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      // An error is the end of the connection, which `close` reports.
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(bytes, () => resolve());
      else resolve();
    });
  }

  open({ streamtype = '' }: Readonly<Record<string, string>>, handlers: SpdyHandlers): SpdyStream {
    const channel = CHANNELS.get(streamtype);
    if (channel === undefined) throw new RangeError(`a WebSocket has no channel for ${streamtype}`);
    this.#open.set(channel, handlers);
    const isInput = streamtype === 'stdin';
    let sent: Promise<void> = Promise.resolve();
    let finished = false;
    const end = (): void => {
      if (finished || !isInput) return;
      finished = true;
      if (this.#socket.protocol === V5) void this.#send(Buffer.from([CLOSE, channel]));
      else this.#onNoEnd();
    };
    return {
      write: (data) => {
        sent = this.#send(Buffer.concat([Buffer.from([channel]), data]));
        return this.#socket.bufferedAmount < HIGH_WATER;
      },
      drained: () => sent,
      end,
      reset: end,
    };
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    // What was paused would never see the other side's answer.
    this.#socket.resume();
    this.#socket.close(1000);
  }
}

/** Rejects with UserError that says what the server answered. `prepare` gets the socket before anything can have come. */
function connect(
  url: URL,
  protocols: readonly string[],
  tls: StreamTls,
  prepare: (socket: WebSocket) => void,
): Promise<void> {
  const options = { perMessageDeflate: false, ...(url.protocol === 'https:' ? tlsOptions(tls) : {}) };
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.href.replace(/^http/, 'ws'), [...protocols], options);
    prepare(socket);
    socket.once('open', () => resolve());
    socket.once('unexpected-response', (request, response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body = `${body}${chunk}`.slice(0, MAX_ERROR_BODY);
      });
      response.once('end', () => {
        request.destroy();
        reject(new UserError(`unable to upgrade connection: ${response.statusCode} ${body.trim()}`));
      });
    });
    // After the connection stands, `close` follows.
    socket.on('error', (error) => {
      reject(new UserError(`error sending request: ${url.origin}: ${errorMessage(error)}`, { cause: error }));
    });
  });
}

/**
 * Connects to a URL of exec or attach. `onNoEnd`: the input has ended and the runtime cannot be informed. Rejects with UserError
 * that says what the server answered.
 */
export async function connectWebSocket(url: URL, tls: StreamTls, onNoEnd: () => void): Promise<StreamConnection> {
  const made: WebSocketConnection[] = [];
  await connect(url, [V5, V4], tls, (socket) => made.push(new WebSocketConnection(socket, onNoEnd)));
  const [connection] = made;
  if (connection === undefined) throw new Error('there is no connection');
  return connection;
}

/** Each channel of a forwarded port begins with the port's number. bytes. */
const PORT_BYTES = 2;

/**
 * Copies one local connection to the port of a port-forward's URL, and back, until either side has ended: this protocol cannot
 * end one direction. Resolves with what the runtime reports, '' for nothing. Rejects with UserError when it cannot connect.
 */
export async function forwardOverWebSocket(url: URL, tls: StreamTls, local: Socket): Promise<string> {
  const texts = [0, 0];
  let failure = '';
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  await connect(url, [V4], tls, (socket) => {
    socket.on('message', (data) => {
      const message = bytesOf(data);
      const channel = message[0];
      if (channel !== 0 && channel !== 1) return;
      const seen = texts[channel] ?? 0;
      texts[channel] = seen + message.length - 1;
      const content = message.subarray(1 + Math.max(0, PORT_BYTES - seen));
      if (channel === 1) failure += content.toString('utf8');
      else if (content.length > 0 && !local.write(content)) {
        socket.pause();
        local.once('drain', () => socket.resume());
      }
    });
    socket.once('close', () => resolve());
    socket.once('open', () => {
      local.on('data', (chunk: Buffer) => {
        local.pause();
        socket.send(Buffer.concat([Buffer.from([0]), chunk]), () => local.resume());
      });
      local.once('close', () => {
        socket.resume();
        socket.close(1000);
      });
    });
  });
  await closed;
  local.end();
  return failure;
}
