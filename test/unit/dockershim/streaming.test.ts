// Exec's streams over real connections, by the clients that crictl has: SPDY and a WebSocket.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { connectSpdy, type SpdyConnection, type SpdyStream } from '../../../cli/crictl/streaming/spdy.ts';
import { connectWebSocket } from '../../../cli/crictl/streaming/websocket.ts';
import { exitStatus, type RemoteIo, type TerminalSize } from '../../../dockershim/streaming/remote-io.ts';
import { spdyIo } from '../../../dockershim/streaming/spdy-io.ts';
import { offersChannels, websocketIo } from '../../../dockershim/streaming/websocket-io.ts';
import { systemClock } from '../../../lib/clock.ts';

const NO_TLS = { serverName: '', caFile: '', certFile: '', keyFile: '' };
const PROTOCOL = 'v4.channel.k8s.io';

let server: Server;
let url: string;
let io: Promise<RemoteIo>;

/** One upgrade, taken by `accept`. */
async function serve(
  accept: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<RemoteIo>,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<RemoteIo>();
  io = promise;
  server.on('upgrade', (request, socket, head) => resolve(accept(request, socket, head)));
  await new Promise<void>((listening) => server.listen({ host: '127.0.0.1', port: 0 }, listening));
  const address = server.address();
  url = typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}/` : '';
}

beforeEach(() => {
  server = createServer();
});
afterEach(() => new Promise<void>((resolve) => server.close(() => resolve())));

describe('SPDY', () => {
  const wanted = { stdin: true, stdout: true, stderr: false, tty: true };
  let connection: SpdyConnection;

  beforeEach(async () => {
    await serve((_request, socket, head) => {
      socket.allowHalfOpen = true;
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${PROTOCOL}\r\n\r\n`,
      );
      return spdyIo(socket, head, wanted, systemClock);
    });
    connection = (await connectSpdy(new URL(url), [PROTOCOL], NO_TLS)).connection;
  });
  afterEach(() => connection.close());

  interface Opened {
    readonly stream: SpdyStream;
    readonly text: () => string;
    readonly ended: Promise<void>;
  }
  function open(streamtype: string): Opened {
    let text = '';
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const stream = connection.open(
      { streamtype },
      {
        data: (data) => {
          text += data.toString();
        },
        end: resolve,
      },
    );
    return { stream, text: () => text, ended };
  }

  test('input to its end, output, sizes, and the Status', async () => {
    const [error, stdin, stdout, resize] = ['error', 'stdin', 'stdout', 'resize'].map(open);
    if (error === undefined || stdin === undefined || stdout === undefined || resize === undefined) throw new Error();
    resize.stream.write(Buffer.from('{"Width":80,"Height":24}\n{"Wid'));
    resize.stream.write(Buffer.from('th":100,"Height":50}\n'));
    const large = Buffer.alloc(300_000, 'x');
    stdin.stream.write(large);
    stdin.stream.end();
    const remote = await io;
    const sizes: TerminalSize[] = [];
    const { promise: resized, resolve } = Promise.withResolvers<void>();
    remote.onResize((size) => {
      sizes.push(size);
      if (size.width === 100) resolve();
    });
    await resized;
    let received = 0;
    for await (const chunk of remote.stdin ?? []) {
      received += chunk.length;
      await remote.write('stdout', chunk);
    }
    expect(received).toBe(large.length);
    remote.finish(exitStatus(3));
    await Promise.all([error.ended, stdout.ended]);
    expect(stdout.text()).toBe(large.toString());
    expect(JSON.parse(error.text())).toMatchObject({ reason: 'NonZeroExitCode' });
    expect(sizes.at(-1)).toEqual({ width: 100, height: 50 });
    await connection.closed;
  });

  test('a client that goes away ends the input', async () => {
    const streams = ['error', 'stdin', 'stdout', 'resize'].map(open);
    expect(streams).toHaveLength(4);
    const remote = await io;
    connection.close();
    for await (const _chunk of remote.stdin ?? []) throw new Error('there was no input');
    await new Promise<void>((resolve) => {
      if (remote.gone.aborted) resolve();
      remote.gone.addEventListener('abort', () => resolve());
    });
  });

  test('a client that goes away before it has opened its streams', async () => {
    open('error');
    const rejected = expect(io).rejects.toThrow('the client has gone');
    connection.close();
    await rejected;
  });
});

test('a WebSocket: channels by the first byte of each message', async () => {
  await serve((request, socket, head) => {
    expect(offersChannels(request)).toBe(true);
    return websocketIo(request, socket, head, true);
  });
  const client = new WebSocket(url.replace('http', 'ws'), [PROTOCOL]);
  const messages: string[] = [];
  client.on('message', (data: Buffer) => messages.push(`${data[0]} ${data.subarray(1)}`));
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  await new Promise<void>((resolve) => client.once('open', () => resolve()));
  client.send(Buffer.from('\u0004{"Width":80,"Height":24}'));
  client.send(Buffer.from('\u0000hello'));
  const remote = await io;
  const [chunk] = (await remote.stdin?.take(1).toArray()) ?? [];
  const sizes: TerminalSize[] = [];
  remote.onResize((size) => sizes.push(size));
  await remote.write('stdout', chunk);
  await remote.write('stderr', Buffer.from('oops'));
  remote.finish(exitStatus(0));
  await closed;
  expect(messages).toEqual(['1 hello', '2 oops', `3 ${exitStatus(0)}`]);
  expect(sizes).toEqual([{ width: 80, height: 24 }]);
});

describe('crictl over a WebSocket', () => {
  test('input to its end, output and the Status: v5', async () => {
    await serve((request, socket, head) => {
      expect(offersChannels(request)).toBe(true);
      return websocketIo(request, socket, head, true);
    });
    const connection = await connectWebSocket(new URL(url), NO_TLS, () => {
      throw new Error('v5 can end the input');
    });
    const texts = { stdout: '', error: '' };
    const ends = (['stdout', 'error'] as const).map(
      (streamtype) =>
        new Promise<void>((resolve) => {
          const data = (chunk: Buffer): void => {
            texts[streamtype] += chunk.toString();
          };
          connection.open({ streamtype }, { data, end: resolve });
        }),
    );
    const stdin = connection.open({ streamtype: 'stdin' }, {});
    connection.resume();
    const large = 'x'.repeat(3_000_000);
    if (!stdin.write(Buffer.from(large))) await stdin.drained();
    stdin.end();
    const remote = await io;
    for await (const chunk of remote.stdin ?? []) await remote.write('stdout', chunk);
    remote.finish(exitStatus(3));
    await Promise.all(ends);
    expect(texts.stdout).toBe(large);
    expect(JSON.parse(texts.error)).toMatchObject({ reason: 'NonZeroExitCode' });
    connection.close();
    await new Promise<void>((resolve) => {
      if (remote.gone.aborted) resolve();
      remote.gone.addEventListener('abort', () => resolve());
    });
  });

  test('a runtime that serves v4 alone: the end of the input is reported to the user', async () => {
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => PROTOCOL });
    server.on('upgrade', (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (client) => client.once('message', () => client.close())),
    );
    await new Promise<void>((listening) => server.listen({ host: '127.0.0.1', port: 0 }, listening));
    const address = server.address();
    const origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
    let reports = 0;
    const connection = await connectWebSocket(new URL(origin), NO_TLS, () => reports++);
    const ended = new Promise<void>((resolve) => connection.open({ streamtype: 'error' }, { end: resolve }));
    const stdin = connection.open({ streamtype: 'stdin' }, {});
    connection.resume();
    stdin.end();
    stdin.end();
    expect(reports).toBe(1);
    stdin.write(Buffer.from('bye'));
    await ended;
  });

  test('a server that refuses', async () => {
    server.on('upgrade', (_request, socket) =>
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno.\n'),
    );
    await new Promise<void>((listening) => server.listen({ host: '127.0.0.1', port: 0 }, listening));
    const address = server.address();
    const origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
    const refused = connectWebSocket(new URL(origin), NO_TLS, () => undefined);
    await expect(refused).rejects.toThrow('unable to upgrade connection: 403 no.');
  });
});
