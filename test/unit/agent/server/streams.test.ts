// What the kubelet API passes through: logs, and the upgraded connections of exec, attach and port-forward.

import { appendFile, rm, writeFile } from 'node:fs/promises';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLogReader } from '../../../../agent/runtime/logs/read-logs.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { OPEN, ServerStand } from './stand.ts';
import { ask, container } from './support.ts';

let stand: ServerStand;
beforeEach(async () => {
  stand = await ServerStand.make();
});
afterEach(() => stand.close());

describe('logs', () => {
  beforeEach(async () => {
    await writeFile(join(stand.dir, '0.log'), 'x');
    stand.pods.containers = [container('abc', join(stand.dir, '0.log'))];
  });

  test('are streamed with the options asked for', async () => {
    const port = await stand.start(OPEN);
    expect(await ask(port, '/containerLogs/demo/web/c?tailLines=5&timestamps=true')).toMatchObject({
      status: 200,
      body: 'one\ntwo\n',
    });
    expect(stand.logs.requested).toEqual([
      { path: join(stand.dir, '0.log'), options: { follow: false, timestamps: true, tailLines: 5 } },
    ]);
  });

  test.each([
    ['/containerLogs/demo/other/c', 404, 'pod "other" does not exist'],
    ['/containerLogs/demo/web/x', 404, 'container "x" not found in pod "web"'],
    ['/containerLogs/demo/web/c?previous=true', 400, 'previous terminated container "c" in pod "web" not found'],
    ['/containerLogs/demo/web/c?tailLines=-5', 422, 'Invalid request'],
  ])('%s is answered with %d', async (path, status, message) => {
    const port = await stand.start(OPEN);
    expect(await ask(port, path)).toMatchObject({ status, body: expect.stringContaining(message) });
  });

  test('of a container that does not exist yet are 400 with the reason', async () => {
    const waiting = { name: 'c', image: '', imageID: '', ready: false, restartCount: 0 };
    stand.pods.status = { containerStatuses: [{ ...waiting, state: { waiting: { reason: 'ContainerCreating' } } }] };
    const port = await stand.start(OPEN);
    expect(await ask(port, '/containerLogs/demo/web/c')).toMatchObject({
      status: 400,
      body: 'container "c" in pod "web" is waiting to start: ContainerCreating',
    });
  });

  test('whose file is gone are 400', async () => {
    await rm(join(stand.dir, '0.log'));
    const port = await stand.start(OPEN);
    expect(await ask(port, '/containerLogs/demo/web/c')).toMatchObject({
      status: 400,
      body: expect.stringContaining('ENOENT'),
    });
  });

  test.each([
    ['followed', '?follow=true'],
    ['read once', ''],
  ])('that are %s have what the runtime writes after the exit was announced', async (_how, query) => {
    const path = join(stand.dir, '0.log');
    const line = (text: string): string => `2026-01-01T00:00:00.000000000Z stdout F ${text}\n`;
    await writeFile(path, line('early'));
    stand.pods.containers = [container('abc', path, 'exited')];
    const { promise, resolve } = Promise.withResolvers<void>();
    const called = vi.spyOn(stand.runtime, 'logWritten').mockReturnValue(promise);
    const port = await stand.start(OPEN, { logs: createLogReader(systemClock) });
    const answer = ask(port, `/containerLogs/demo/web/c${query}`);
    await vi.waitFor(() => expect(called).toHaveBeenCalledWith('abc'));
    await appendFile(path, line('late'));
    resolve();
    expect(await answer).toMatchObject({ status: 200, body: 'early\nlate\n' });
  });

  test('that are followed end when the reader goes away', async () => {
    stand.logs.endless = true;
    stand.logs.chunks = ['first\n'];
    const port = await stand.start(OPEN);
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    const seen = await firstBytes(
      socket,
      'GET /containerLogs/demo/web/c?follow=true HTTP/1.1\r\nHost: x\r\n\r\n',
      'first',
    );
    expect(seen).toContain('HTTP/1.1 200 OK');
    socket.destroy();
    await vi.waitFor(() => expect(stand.logs.aborted).toBe(true));
  });
});

/** Sends `text` and collects until `until` has been seen. */
function firstBytes(socket: TLSSocket, text: string, until: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = '';
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
      if (seen.includes(until)) resolve(seen);
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after: ${seen}`)));
    socket.write(text);
  });
}

describe('exec, attach and port-forward', () => {
  let backend: Server;
  let backendSockets: Socket[];
  let received: string;
  beforeEach(async () => {
    backendSockets = [];
    received = '';
    backend = createServer({ allowHalfOpen: true }, (socket) => {
      backendSockets.push(socket);
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString();
        if (received.includes('\r\n\r\n') && !received.includes('answered')) {
          received += '[answered]';
          socket.write(
            'HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n\x00\x01hello',
          );
        }
      });
      // Says its last words only after the caller has ended its side: half-close in both directions.
      socket.on('end', () => socket.end('last words'));
    });
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
    const address = backend.address();
    stand.runtime.url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/exec/token`;
  });
  afterEach(async () => {
    for (const socket of backendSockets) socket.destroy();
    await new Promise((resolve) => backend.close(resolve));
  });

  const upgrade = (path: string, extra = '') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${extra}\r\n`;
  const dial = (port: number) =>
    connect({ socket: connectTcp({ host: '127.0.0.1', port, allowHalfOpen: true }), rejectUnauthorized: false });

  test('are tunnelled byte for byte, half-close included, and leave no socket behind', async () => {
    const port = await stand.start(OPEN);
    const socket = dial(port);
    const path = '/exec/demo/web/c?command=ls&command=-l&input=1&output=1&error=1';
    const seen = await firstBytes(socket, upgrade(path, 'X-Stream-Protocol-Version: v4.channel.k8s.io\r\n'), 'hello');
    expect(seen).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(seen.endsWith('\x00\x01hello')).toBe(true);
    expect(received).toMatch(/^POST \/exec\/token HTTP\/1\.1\r\n/);
    expect(received).toContain('X-Stream-Protocol-Version: v4.channel.k8s.io');
    expect(stand.runtime.requested).toEqual([
      { exec: 'abc', command: ['ls', '-l'], stdin: true, stdout: true, stderr: true, tty: false },
    ]);
    let rest = '';
    socket.removeAllListeners('close').removeAllListeners('data');
    socket.on('data', (chunk: Buffer) => {
      rest += chunk.toString();
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.end('bye');
    await closed;
    expect(received.endsWith('bye')).toBe(true);
    expect(rest).toBe('last words');
    await vi.waitFor(() => expect(backendSockets.every((one) => one.destroyed)).toBe(true));
  });

  test('end on both sides when the caller breaks off', async () => {
    const port = await stand.start(OPEN);
    const socket = dial(port);
    await firstBytes(socket, upgrade('/attach/demo/web/c?output=1'), 'hello');
    socket.destroy();
    await vi.waitFor(() => expect(backendSockets[0]?.destroyed).toBe(true));
  });

  test('end on both sides when nothing went through them for streamingConnectionIdleTimeout', async () => {
    const port = await stand.start({ ...OPEN, streamingConnectionIdleTimeout: '200ms' });
    const socket = dial(port);
    await firstBytes(socket, upgrade('/attach/demo/web/c?output=1'), 'hello');
    socket.removeAllListeners('close');
    await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
    socket.destroy();
    await vi.waitFor(() => expect(backendSockets[0]?.destroyed).toBe(true));
  });

  test('end on both sides when the server closes', async () => {
    const port = await stand.start(OPEN);
    const socket = dial(port);
    await firstBytes(socket, upgrade('/portForward/demo/web?port=80'), 'hello');
    expect(stand.runtime.requested).toEqual([{ portForward: 'box', ports: [80] }]);
    socket.removeAllListeners('close');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.once('end', () => socket.end());
    await stand.server?.close();
    await closed;
    await vi.waitFor(() => expect(backendSockets[0]?.destroyed).toBe(true));
  });

  const refused = async (port: number, text: string): Promise<string> => {
    const socket = dial(port);
    let seen = '';
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(text);
    socket.once('end', () => socket.end());
    await closed;
    return seen;
  };

  test.each([
    ['/exec/demo/other/c?command=ls&output=1', '404 Not Found', 'pod does not exist'],
    ['/exec/demo/web/x?command=ls&output=1', '500 Internal Server Error', 'container not found ("x")'],
    ['/attach/demo/web/x?output=1', '500 Internal Server Error', 'container x not found in pod web_demo'],
    ['/exec/demo/web/c?command=ls', '400 Bad Request', 'at least 1 of stdin, stdout, stderr'],
    ['/exec/demo/web/c?output=1', '400 Bad Request', 'you must specify a command'],
    ['/pods', '400 Bad Request', 'does not upgrade'],
  ])('%s is refused in plain HTTP', async (path, status, message) => {
    const port = await stand.start(OPEN);
    const seen = await refused(port, upgrade(path));
    expect(seen).toContain(`HTTP/1.1 ${status}`);
    expect(seen).toContain(message);
  });

  test('a container that has ended is none', async () => {
    stand.pods.containers = [container('abc', '', 'exited')];
    const port = await stand.start(OPEN);
    expect(await refused(port, upgrade('/exec/demo/web/c?command=ls&output=1'))).toContain('container not found ("c")');
    expect(await refused(port, upgrade('/attach/demo/web/c?output=1'))).toContain(
      'container c not found in pod web_demo',
    );
    expect(stand.runtime.requested).toEqual([]);
  });

  test('are refused without credentials, before the runtime is asked', async () => {
    const port = await stand.start();
    expect(await refused(port, upgrade('/exec/demo/web/c?command=ls&output=1'))).toContain('HTTP/1.1 401 Unauthorized');
    expect(stand.runtime.requested).toEqual([]);
  });

  test('over WebSocket with only v5 are refused with 400, so that kubectl falls back', async () => {
    const port = await stand.start(OPEN);
    const text =
      'GET /exec/demo/web/c?command=ls&output=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n';
    expect(await refused(port, text)).toContain('HTTP/1.1 400 Bad Request');
  });

  test('to a streaming server that is gone are 502', async () => {
    stand.runtime.url = 'http://127.0.0.1:1/exec/token';
    const port = await stand.start(OPEN);
    const seen = await refused(port, upgrade('/exec/demo/web/c?command=ls&output=1'));
    expect(seen).toContain('HTTP/1.1 502 Bad Gateway');
    expect(seen).toContain('error dialing backend');
  });
});
