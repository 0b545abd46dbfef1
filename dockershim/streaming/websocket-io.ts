// Exec's and attach's streams over a WebSocket (v5.channel.k8s.io, v4.channel.k8s.io): the first byte of each message is its
// channel. v4 cannot end the client's input.

import type { IncomingMessage } from 'node:http';
import { type Duplex, PassThrough } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import {
  parseSize,
  REMOTE_COMMAND_PROTOCOL,
  REMOTE_COMMAND_V5,
  type RemoteIo,
  type TerminalSize,
} from './remote-io.ts';

const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
/** v5: the next byte is a channel that is over. */
const CLOSE = 255;
/** The first one that the client offers as well is taken. */
const PROTOCOLS = [REMOTE_COMMAND_V5, REMOTE_COMMAND_PROTOCOL];
/** A client that takes nothing: the process it reads from waits. bytes. */
const HIGH_WATER = 1024 * 1024;

const servers = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  handleProtocols: (offered) => PROTOCOLS.find((protocol) => offered.has(protocol)) ?? false,
});

export function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Whether the client offers a protocol that is served. */
export function offersChannels(request: IncomingMessage): boolean {
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
  return PROTOCOLS.some((protocol) => offered.includes(protocol));
}

/** The upgraded connection. */
export function acceptWebSocket(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket> {
  return new Promise((resolve) => servers.handleUpgrade(request, socket, head, resolve));
}

export function websocketIo(request: IncomingMessage, socket: Duplex, head: Buffer, stdin: boolean): Promise<RemoteIo> {
  return new Promise((resolve) => {
    servers.handleUpgrade(request, socket, head, (client) => resolve(ioOf(client, stdin)));
  });
}

function ioOf(client: WebSocket, wantsStdin: boolean): RemoteIo {
  const gone = new AbortController();
  const stdin = wantsStdin ? new PassThrough() : undefined;
  let listener: ((size: TerminalSize) => void) | undefined;
  let lastSize: TerminalSize | undefined;
  client.on('message', (data) => {
    const message = bytesOf(data);
    const content = message.subarray(1);
    if (message[0] === CHANNELS.stdin && stdin !== undefined && !stdin.write(content)) {
      client.pause();
      stdin.once('drain', () => client.resume());
    }
    if (message[0] === CLOSE && client.protocol === REMOTE_COMMAND_V5 && message[1] === CHANNELS.stdin) stdin?.end();
    if (message[0] !== CHANNELS.resize) return;
    lastSize = parseSize(content.toString('utf8')) ?? lastSize;
    if (lastSize !== undefined) listener?.(lastSize);
  });
  client.on('error', () => client.terminate());
  client.on('close', () => {
    stdin?.end();
    gone.abort(new Error('the client has gone'));
  });
  const send = (channel: number, data: Buffer): Promise<void> =>
    new Promise((resolve) => {
      const waits = client.bufferedAmount > HIGH_WATER;
      client.send(Buffer.concat([Buffer.from([channel]), data]), () => {
        if (waits) resolve();
      });
      if (!waits) resolve();
    });
  return {
    stdin,
    gone: gone.signal,
    write: (stream, data) => send(CHANNELS[stream], data),
    onResize: (wants) => {
      listener = wants;
      if (lastSize !== undefined) wants(lastSize);
    },
    finish: (status) => {
      void send(CHANNELS.error, Buffer.from(status));
      // Input that nothing reads any more may have paused it, and the client's part of the closing is still to come.
      client.resume();
      client.close(1000);
    },
  };
}
