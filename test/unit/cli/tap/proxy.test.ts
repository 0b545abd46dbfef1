// The tap between a client and a runtime of the test's own, on real sockets: everything passes, and is seen.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import type { ClientHttp2Session } from 'node:http2';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConnectionObserver } from '../../../../cli/tap/calls.ts';
import { TapProxy } from '../../../../cli/tap/proxy.ts';
import { removeTree } from '../../../../lib/remove-tree.ts';
import {
  answerOf,
  bodyOf,
  CollectingSink,
  call,
  echo,
  message,
  openClient,
  respond,
  type SeenCall,
  startCall,
  TestRuntime,
} from './support.ts';

const METHOD = '/runtime.v9.FutureService/NotYetInvented';
let directory: string;
let runtime: TestRuntime;
let proxy: TapProxy;
let sink: CollectingSink;
let answer: (call: SeenCall) => void;
let clients: ClientHttp2Session[];
let lines: string[];

function client(): ClientHttp2Session {
  const session = openClient(join(directory, 'tap.sock'));
  clients.push(session);
  return session;
}

function newProxy(): TapProxy {
  return new TapProxy({
    listen: join(directory, 'tap.sock'),
    to: runtime.path,
    log: (line) => lines.push(line),
    observe: (connection) => new ConnectionObserver(connection, sink),
  });
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-tap-'));
  clients = [];
  lines = [];
  answer = echo;
  sink = new CollectingSink();
  runtime = new TestRuntime(join(directory, 'runtime.sock'), (each) => answer(each));
  await runtime.start();
  proxy = newProxy();
  await proxy.listen();
});
afterEach(async () => {
  for (const session of clients) session.destroy();
  await proxy.close();
  await runtime.stop();
  await removeTree(directory);
});

test('an unknown method and unknown fields pass byte for byte, with metadata, deadline, status and trailers', async () => {
  let seen: SeenCall['headers'] = {};
  answer = (each) => {
    seen = each.headers;
    void bodyOf(each.stream).then((body) =>
      respond(each, body, { 'grpc-status': '99', 'grpc-message': 'f%C3%BCr', 'x-more-bin': 'AAE=' }),
    );
  };
  const body = Buffer.concat([message('\u0001\u00ff'), randomBytes(3)]);
  const { body: back, trailers } = await call(client(), METHOD, body, {
    'grpc-timeout': '1234m',
    'x-custom': 'a, b',
    'x-any-bin': '/+8=',
  });
  expect(back.equals(body)).toBe(true);
  expect(seen).toMatchObject({ ':path': METHOD, 'grpc-timeout': '1234m', 'x-custom': 'a, b', 'x-any-bin': '/+8=' });
  expect(trailers).toMatchObject({ 'grpc-status': '99', 'grpc-message': 'f%C3%BCr', 'x-more-bin': 'AAE=' });
  await expect
    .poll(() => sink.calls[0]?.end)
    .toEqual({ kind: 'status', status: 99, message: 'für', trailers: [['x-more-bin', 'AAE=']] });
  expect(sink.calls[0]).toMatchObject({ connection: 1, method: METHOD });
  expect(sink.calls[0]?.metadata).toContainEqual(['grpc-timeout', '1234m']);
  expect(sink.calls[0]?.request.equals(body)).toBe(true);
  expect(sink.calls[0]?.response.equals(body)).toBe(true);
});

test('a call that fails without any message has trailers alone', async () => {
  answer = ({ stream }) =>
    stream.respond({ ':status': 200, 'grpc-status': '12', 'grpc-message': 'unknown method' }, { endStream: true });
  const { headers } = await call(client(), METHOD, message('x'));
  expect(headers).toMatchObject({ 'grpc-status': '12', 'grpc-message': 'unknown method' });
  await expect.poll(() => sink.calls[0]?.end).toMatchObject({ kind: 'status', status: 12, message: 'unknown method' });
});

test('streams pass both ways while they are open, and end when the client half-closes', async () => {
  answer = ({ stream }) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('data', (part: Buffer) => stream.write(part));
    stream.on('end', () => stream.end());
  };
  const stream = startCall(client(), METHOD);
  const whole = answerOf(stream);
  const echoed = (): Promise<Buffer> => new Promise((resolve) => stream.once('data', resolve));
  for (const text of ['one', 'two', 'three']) {
    const back = echoed();
    stream.write(message(text));
    expect((await back).equals(message(text))).toBe(true);
  }
  stream.end();
  expect((await whole).trailers['grpc-status']).toBe('0');
});

test('a call that the client cancels is cancelled at the runtime', async () => {
  let code: number | undefined;
  answer = ({ stream }) => {
    stream.on('close', () => {
      code = stream.rstCode;
    });
    stream.resume();
  };
  const stream = startCall(client(), METHOD);
  stream.on('error', () => undefined);
  stream.write(message('x'));
  await expect.poll(() => sink.calls.length).toBe(1);
  stream.close(8);
  await expect.poll(() => code).toBe(8);
  await expect.poll(() => sink.calls[0]?.end).toEqual({ kind: 'reset', by: 'client', code: 8 });
});

test('a message of 8 MiB passes each way', async () => {
  const body = message('x'.repeat(8 * 1024 * 1024));
  const { body: back } = await call(client(), METHOD, body);
  expect(back.equals(body)).toBe(true);
  await expect.poll(() => sink.calls[0]?.end).toMatchObject({ status: 0 });
  expect(sink.calls[0]?.response.equals(body)).toBe(true);
});

test('a client that does not read holds the runtime back, and the tap keeps next to nothing', async () => {
  await runtime.stop();
  const size = 64 * 1024 * 1024;
  let written = 0;
  const plain = createServer((socket) => {
    const piece = Buffer.alloc(64 * 1024, 1);
    const more = (): void => {
      while (written < size) {
        written += piece.length;
        if (!socket.write(piece)) return;
      }
      socket.end();
    };
    socket.on('drain', more);
    more();
  });
  await new Promise<void>((resolve) => plain.listen(runtime.path, resolve));
  const socket = connect(join(directory, 'tap.sock'));
  let last = 0;
  await expect
    .poll(() => {
      const isStill = written > 0 && written === last;
      last = written;
      return isStill;
    })
    .toBe(true);
  expect(written).toBeLessThan(size / 8);
  let received = 0;
  socket.on('data', (data) => {
    received += data.length;
  });
  await new Promise<void>((resolve) => socket.once('end', () => resolve()));
  expect(received).toBe(size);
  socket.destroy();
  await new Promise<void>((resolve) => plain.close(() => resolve()));
});

test('several clients call at the same time, each on a connection of its own', async () => {
  const sessions = [client(), client(), client()];
  const bodies = Array.from({ length: 60 }, (_, index) => message(`call ${index}`));
  const answers = await Promise.all(bodies.map((body, index) => call(sessions[index % 3] ?? client(), METHOD, body)));
  expect(answers.every(({ body }, index) => body.equals(bodies[index] ?? Buffer.alloc(0)))).toBe(true);
  await expect.poll(() => sink.calls.filter(({ end }) => end !== undefined).length).toBe(60);
  expect(new Set(sink.calls.map(({ connection }) => connection))).toEqual(new Set([1, 2, 3]));
});

test('a runtime that goes away ends the connection and its calls; when it is back, calls pass again', async () => {
  let arrived = 0;
  answer = ({ stream }) => {
    arrived++;
    stream.resume();
  };
  const session = client();
  const direct = openClient(runtime.path);
  const closed = new Promise<void>((resolve) => session.once('close', () => resolve()));
  const open = Promise.allSettled([call(session, METHOD, message('x')), call(direct, METHOD, message('x'))]);
  await expect.poll(() => sink.calls.length).toBe(1);
  // A call that has not arrived ends otherwise than one that has.
  await expect.poll(() => arrived).toBe(2);
  await runtime.stop();
  await closed;
  const [through, straight] = await open;
  expect(through).toEqual(straight);
  await expect.poll(() => sink.calls[0]?.end?.kind).toBe('connection');
  const refused = client();
  await new Promise<void>((resolve) => refused.once('close', () => resolve()));
  expect(lines).toEqual([expect.stringContaining('cannot be reached')]);
  answer = echo;
  await runtime.start();
  expect((await call(client(), METHOD, message('again'))).body.equals(message('again'))).toBe(true);
});

test('what is no HTTP/2 passes too, and is not recorded', async () => {
  await runtime.stop();
  const plain = createServer((socket) => socket.pipe(socket));
  await new Promise<void>((resolve) => plain.listen(runtime.path, resolve));
  const socket = connect(join(directory, 'tap.sock'));
  const back = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
  socket.write('GET / HTTP/1.1\r\n\r\n');
  expect(await back).toBe('GET / HTTP/1.1\r\n\r\n');
  expect(sink.unreadables).toEqual(['what the client sends cannot be read: the connection is not HTTP/2']);
  socket.destroy();
  await new Promise<void>((resolve) => plain.close(() => resolve()));
});

test('the socket is its owner’s alone', () => {
  expect(statSync(join(directory, 'tap.sock')).mode & 0o777).toBe(0o600);
});

test('a socket that a living process serves is refused, one of a dead process is replaced', async () => {
  await expect(newProxy().listen()).rejects.toThrow('another process serves on');
  await proxy.close();
  const child = spawnSync(process.execPath, [
    '-e',
    `require('net').createServer().listen(${JSON.stringify(join(directory, 'tap.sock'))}, () => process.kill(process.pid, 'SIGKILL'))`,
  ]);
  expect(child.signal).toBe('SIGKILL');
  chmodSync(join(directory, 'tap.sock'), 0o666);
  proxy = newProxy();
  await proxy.listen();
  expect((await call(client(), METHOD, message('x'))).body.equals(message('x'))).toBe(true);
});

test('a file in the place of the socket stays', async () => {
  await proxy.close();
  writeFileSync(join(directory, 'tap.sock'), 'mine');
  await expect(newProxy().listen()).rejects.toThrow('is there and is no socket');
});
