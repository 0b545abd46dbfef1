// The servers that take calls apart: faults between a client and a runtime, and replay without a runtime.

import { mkdtempSync, writeFileSync } from 'node:fs';
import type { ClientHttp2Session } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FaultProxy } from '../../../../cli/tap/fault-proxy.ts';
import { parseFaultRules } from '../../../../cli/tap/fault-rules.ts';
import { frameMessage, MessageReader } from '../../../../cli/tap/grpc-messages.ts';
import { ReplayServer } from '../../../../cli/tap/replay.ts';
import { removeTree } from '../../../../lib/remove-tree.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import {
  IDS_A,
  IDS_B,
  METHODS,
  podLife,
  recordingLines,
  requestBytes,
  responseBytes,
  sandboxConfig,
} from './messages.ts';
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

let directory: string;
let stops: (() => Promise<void>)[];
let clients: ClientHttp2Session[];
let seen: string[];
let sink: CollectingSink;
let clock: VirtualClock;
let lines: string[];
let answer: (call: SeenCall) => void;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-tap-'));
  [stops, clients, seen, lines] = [[], [], [], []];
  sink = new CollectingSink();
  clock = new VirtualClock();
  answer = echo;
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  for (const stop of stops.reverse()) await stop();
  await removeTree(directory);
});

const socket = (name: string): string => join(directory, name);

function client(): ClientHttp2Session {
  const session = openClient(socket('tap.sock'));
  clients.push(session);
  return session;
}

async function faults(rules: string): Promise<void> {
  const runtime = new TestRuntime(socket('runtime.sock'), (each) => {
    seen.push(String(each.headers[':path']).split('/').at(-1) ?? '');
    answer(each);
  });
  await runtime.start();
  const proxy = new FaultProxy({
    listen: socket('tap.sock'),
    to: runtime.path,
    faults: parseFaultRules(rules, 'rules'),
    sink,
    clock,
    log: (line) => lines.push(line),
  });
  await proxy.listen();
  stops.push(
    () => runtime.stop(),
    () => proxy.close(),
  );
}

const VERSION = METHODS.Version.path;

test('what no rule strikes passes byte for byte, with metadata, trailers and failures', async () => {
  await faults('rules: [{method: Nothing, hang: true}]');
  answer = (each) =>
    void bodyOf(each.stream).then((body) =>
      respond(each, body, { 'x-more': '1', 'grpc-status': '9', 'grpc-message': 'as%20is' }),
    );
  const body = Buffer.concat([message('\u0001odd'), message('second')]);
  const { body: back, trailers } = await call(client(), '/a.B/Unknown', body, { 'grpc-timeout': '5S', 'x-a': 'b' });
  expect(back.equals(body)).toBe(true);
  expect(trailers).toMatchObject({ 'grpc-status': '9', 'grpc-message': 'as%20is', 'x-more': '1' });
  expect(sink.calls[0]?.metadata).toContainEqual(['x-a', 'b']);
  expect(sink.calls[0]?.end).toMatchObject({ kind: 'status', status: 9, message: 'as is' });
  answer = ({ stream }) => stream.respond({ ':status': 200, 'grpc-status': '12' }, { endStream: true });
  expect((await call(client(), '/a.B/Unknown', body)).headers['grpc-status']).toBe('12');
});

test('a message of 4 MiB passes', async () => {
  await faults('rules: [{method: Nothing, hang: true}]');
  const body = message('x'.repeat(4 * 1024 * 1024));
  expect((await call(client(), '/a.B/C', body)).body.equals(body)).toBe(true);
});

test('fail: the client gets the code, and the runtime no call', async () => {
  await faults('rules: [{method: Version, count: 1, fail: {code: UNAVAILABLE, message: "a % b"}}]');
  const { headers } = await call(client(), VERSION, message(''));
  expect(headers).toMatchObject({ 'grpc-status': '14', 'grpc-message': 'a%20%25%20b' });
  expect(sink.calls[0]?.end).toMatchObject({ kind: 'status', status: 14 });
  expect(seen).toEqual([]);
  expect((await call(client(), VERSION, message(''))).trailers['grpc-status']).toBe('0');
  expect(lines).toEqual(['Version -: fail (rule 1)']);
});

test('delay: the runtime sees the call when the time is over', async () => {
  await faults('rules: [{delay: 10s}]');
  const open = call(client(), VERSION, message('x'));
  await expect.poll(() => lines).toEqual(['Version -: delay 10000 ms (rule 1)']);
  expect(seen).toEqual([]);
  await clock.advance(10_000);
  expect((await open).body.equals(message('x'))).toBe(true);
});

test('drop: the runtime sees the call, and its answer never comes; hang: the runtime does not', async () => {
  await faults('rules: [{method: Version, drop: true}, {method: ListContainers, hang: true}]');
  const session = client();
  const open = [startCall(session, VERSION), startCall(session, METHODS.ListContainers.path)];
  let answers = 0;
  for (const stream of open) {
    stream.on('response', () => answers++);
    stream.on('error', () => undefined);
    stream.end(message(''));
  }
  await expect.poll(() => seen).toEqual(['Version']);
  // What comes later on the same connection has passed both.
  await call(session, METHODS.ListPodSandbox.path, message(''));
  expect(answers).toBe(0);
  for (const stream of open) stream.close(8);
  await expect
    .poll(() => sink.calls.slice(0, 2).map(({ end }) => end))
    .toEqual([
      { kind: 'reset', by: 'client', code: 8 },
      { kind: 'reset', by: 'client', code: 8 },
    ]);
});

test('duplicate: each message of a stream comes again', async () => {
  await faults('rules: [{duplicate: 1}]');
  answer = (each) => respond(each, Buffer.concat([message('one'), message('two')]));
  const { body } = await call(client(), METHODS.GetContainerEvents.path, message(''));
  expect(new MessageReader().push(body).map(String)).toEqual(['one', 'one', 'two', 'two']);
});

test('rules know pods and containers by the calls that have passed', async () => {
  await faults('rules: [{pod: demo/web, method: Stop*, fail: {code: INTERNAL}}]');
  answer = (each) => respond(each, frameMessage(responseBytes('RunPodSandbox', { pod_sandbox_id: IDS_A.sandbox })));
  const session = client();
  await call(
    session,
    METHODS.RunPodSandbox.path,
    frameMessage(requestBytes('RunPodSandbox', { config: sandboxConfig(IDS_A) })),
  );
  const stop = (sandbox: string) =>
    call(
      session,
      METHODS.StopPodSandbox.path,
      frameMessage(requestBytes('StopPodSandbox', { pod_sandbox_id: sandbox })),
    );
  expect((await stop(IDS_A.sandbox)).headers['grpc-status']).toBe('13');
  expect((await stop(IDS_B.sandbox)).trailers['grpc-status']).toBe('0');
});

test('a call that the client cancels is cancelled at the runtime; a runtime that goes away ends the connection', async () => {
  await faults('rules: [{method: Nothing, hang: true}]');
  let code: number | undefined;
  answer = ({ stream }) =>
    stream.resume().on('close', () => {
      code = stream.rstCode;
    });
  const session = client();
  const stream = startCall(session, VERSION);
  stream.on('error', () => undefined);
  stream.write(message(''));
  await expect.poll(() => seen).toEqual(['Version']);
  stream.close(8);
  await expect.poll(() => code).toBe(8);
  const closed = new Promise<void>((resolve) => session.once('close', () => resolve()));
  await stops.shift()?.();
  await closed;
});

async function replay(text: string): Promise<void> {
  writeFileSync(socket('a.crirec'), text);
  const server = new ReplayServer({
    recording: socket('a.crirec'),
    listen: socket('tap.sock'),
    clock,
    log: (line) => lines.push(line),
  });
  await server.listen();
  stops.push(() => server.close());
}

test('replay answers with the recorded timing, reports what it refuses, and plays events after their calls', async () => {
  const events = {
    method: 'GetContainerEvents' as const,
    at: 0,
    end: 'open' as const,
    response: [[1199, { container_id: IDS_A.container }]] as const,
  };
  await replay(recordingLines([...podLife(IDS_A), events]).join(''));
  const session = client();
  const stream = startCall(session, METHODS.GetContainerEvents.path);
  stream.on('error', () => undefined);
  const event = new Promise<Buffer>((resolve) => stream.once('data', resolve));
  let arrived = false;
  void event.then(() => {
    arrived = true;
  });
  stream.end(message(''));
  const run = call(
    session,
    METHODS.RunPodSandbox.path,
    frameMessage(requestBytes('RunPodSandbox', { config: sandboxConfig(IDS_B) })),
  );
  let answered = false;
  void run.then(() => {
    answered = true;
  });
  await expect
    .poll(async () => {
      await clock.advance(1);
      return answered;
    })
    .toBe(true);
  expect(METHODS.RunPodSandbox.responseDeserialize((await run).body.subarray(5))).toEqual({
    pod_sandbox_id: IDS_A.sandbox,
  });
  expect(arrived).toBe(false);
  await clock.advance(100);
  expect(METHODS.GetContainerEvents.responseDeserialize((await event).subarray(5))).toMatchObject({
    container_id: IDS_A.container,
  });
  const refused = startCall(session, VERSION);
  const failure = answerOf(refused);
  refused.end(message(''));
  expect((await failure).headers).toMatchObject({ 'grpc-status': '12' });
  expect(lines).toContain('refused: Version is not in the recording');
});

test('what is no recording is not replayed', async () => {
  await expect(replay('hello\n')).rejects.toThrow('this is no recording');
});
