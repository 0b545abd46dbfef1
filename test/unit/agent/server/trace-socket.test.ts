import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createTraceSocket, type TraceSocket } from '../../../../agent/server/trace-socket.ts';
import { readTraceHistory } from '../../../../cli/demo/spans.ts';
import { callsIn } from '../../../../cli/explain/collect/spans.ts';
import { UserError } from '../../../../lib/errors.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { nextTurn } from '../../../../lib/turns.ts';

let dir = '';
let path = '';
let tracer: Tracer;
let trace: TraceSocket;
let dropped: string[];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-trace-'));
  path = join(dir, 'run/trace.sock');
  tracer = new Tracer();
  dropped = [];
  trace = createTraceSocket({ path, tracer, capacity: 3, log: (message) => dropped.push(message) });
  await trace.listen();
});
afterEach(async () => {
  await trace.close();
  await rm(dir, { recursive: true, force: true });
});

const span = (name: string, attributes = {}) => tracer.span('cri', name, attributes, () => undefined);

function reader(): { socket: Socket; names: () => string[] } {
  const socket = connect(path);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const names = (): string[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).name);
  return { socket, names };
}

test('a reader gets the newest spans and then every new one, a line each', async () => {
  for (const name of ['a', 'b', 'c', 'd']) await span(name);
  const { socket, names } = reader();
  await vi.waitFor(() => expect(names()).toEqual(['b', 'c', 'd']));
  await span('live', { id: 'x\ny' });
  await vi.waitFor(() => expect(names()).toEqual(['b', 'c', 'd', 'live']));
  socket.destroy();
});

test('a reader that wants what is kept, and no more, gets all of it while new spans come', async () => {
  // More than the kernel takes at once.
  for (const name of ['a', 'b', 'c']) await span(name, { big: 'x'.repeat(512 * 1024) });
  const socket = connect({ path, allowHalfOpen: true });
  socket.end();
  await once(socket, 'connect');
  for (let turn = 0; turn < 20; turn++) {
    await span(`later-${turn}`);
    await nextTurn();
  }
  let text = '';
  for await (const part of socket.setEncoding('utf8')) text += part;
  const names = text
    .split('\n')
    .slice(0, 3)
    .map((line) => JSON.parse(line).name);
  expect(names).toEqual(['a', 'b', 'c']);
  expect(text.endsWith('\n')).toBe(true);
});

test('a reader that stops reading is dropped, and the others go on', async () => {
  const slow = connect(path);
  slow.pause();
  await new Promise((resolve) => slow.once('connect', resolve));
  const { socket, names } = reader();
  await span('first');
  await vi.waitFor(() => expect(names()).toContain('first'));
  const big = 'x'.repeat(512 * 1024);
  for (let i = 0; i < 40 && dropped.length === 0; i++) {
    await span(`big-${i}`, { big });
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(dropped).toHaveLength(1);
  await span('last');
  await vi.waitFor(() => expect(names().at(-1)).toBe('last'));
  socket.destroy();
  slow.destroy();
});

test('the socket is root’s alone, replaces one that a killed agent left, and goes with the agent', async () => {
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await trace.close();
  await expect(stat(path)).rejects.toThrow('ENOENT');
  const killed = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  expect(spawnSync(process.execPath, ['--eval', killed]).signal).toBe('SIGKILL');
  trace = createTraceSocket({ path, tracer });
  await trace.listen();
  expect((await stat(path)).isSocket()).toBe(true);
});

test('a socket that a process serves is not replaced', async () => {
  const second = createTraceSocket({ path, tracer });
  await expect(second.listen()).rejects.toThrow(UserError);
  const { socket, names } = reader();
  await span('still here');
  await vi.waitFor(() => expect(names()).toContain('still here'));
  socket.destroy();
});

test('readers are few: the seventeenth is refused, and has a place again when another has gone', async () => {
  await span('a');
  const readers = Array.from({ length: 16 }, reader);
  await vi.waitFor(() => expect(readers.every(({ names }) => names().length === 1)).toBe(true));
  const refused = reader();
  await new Promise((resolve) => refused.socket.once('close', resolve));
  expect(refused.names()).toEqual([]);
  expect(dropped).toEqual(['a reader of the trace socket was refused: there are 16 already']);
  readers[0]?.socket.destroy();
  await vi.waitFor(async () => {
    const next = reader();
    const closed = once(next.socket, 'close');
    // What has a place has something to read.
    await Promise.race([once(next.socket, 'data'), closed]);
    next.socket.destroy();
    await closed;
    expect(next.names()).toEqual(['a']);
  });
  for (const { socket } of readers) socket.destroy();
});

test('a path that no socket can have is refused in words', async () => {
  const long = createTraceSocket({ path: join(dir, 'x'.repeat(120)), tracer });
  await expect(long.listen()).rejects.toThrow(/too long for a socket/);
});

test('a reader that asks for details gets them with new spans; the others and later ones do not', async () => {
  const call = (): Promise<void> =>
    tracer.span('cri', 'Version', {}, (each) => each.detail(() => ({ request: '{"version":"v1"}' })));
  const lines = (): { readonly socket: Socket; readonly details: () => unknown[] } => {
    const socket = connect(path);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const parsed = (): unknown[] =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line).detail);
    return { socket, details: parsed };
  };
  const asking = lines();
  asking.socket.write('detail\n');
  const other = lines();
  await vi.waitFor(async () => {
    await call();
    expect(asking.details().at(-1)).toEqual({ request: '{"version":"v1"}' });
  });
  await vi.waitFor(() => expect(other.details().length).toBeGreaterThan(0));
  expect(other.details().filter((detail) => detail !== undefined)).toEqual([]);
  const later = lines();
  await vi.waitFor(() => expect(later.details().length).toBeGreaterThan(0));
  expect(later.details().filter((detail) => detail !== undefined)).toEqual([]);
  for (const { socket } of [asking, other, later]) socket.destroy();
});

test('a reader that asks for calls under way gets them after the spans, also where it sends nothing else', async () => {
  await span('done');
  const gate = Promise.withResolvers<void>();
  const working = tracer.span('cri', 'PullImage', { image: 'app:1' }, () => gate.promise);
  const { spans, open } = callsIn(await readTraceHistory(path, true), () => true);
  expect(spans.map(({ name }) => name)).toEqual(['done']);
  expect(open).toMatchObject([{ name: 'PullImage', attributes: { image: 'app:1' } }]);
  expect(callsIn(await readTraceHistory(path), () => true).open).toEqual([]);
  gate.resolve();
  await working;
});
