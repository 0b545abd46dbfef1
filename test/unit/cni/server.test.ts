// The agent's end of the shim's socket, against callers that do not finish.

import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CniServer } from '../../../cni/server.ts';
import { Tracer } from '../../../lib/trace.ts';
import { Client } from '../../support/tls-clients.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

let directory: string;
let clock: VirtualClock;
let server: CniServer;
let path: string;
const problems: string[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-cni-server-'));
  path = join(directory, 'cni.sock');
  clock = new VirtualClock();
  problems.length = 0;
  server = new CniServer({
    socketPath: path,
    clock,
    tracer: new Tracer(),
    onError: (what, error) => problems.push(`${what}: ${error}`),
    operations: {
      add: () => Promise.reject(new Error('not in this test')),
      del: () => Promise.resolve(),
      check: () => Promise.resolve(),
      status: () => Promise.resolve(),
    },
  });
  await server.start();
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

function call(): Promise<Client<Socket>> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => resolve(new Client(socket)));
  });
}

function request(env: Readonly<Record<string, string>>): string {
  const entries = Object.entries(env).map(([key, value]) => `${key}=${value}\0`);
  return `nodelet-cni 1 ${entries.join('').length} 2\n${entries.join('')}{}`;
}

test.each([
  ['nothing', ''],
  ['half a request', 'nodelet-cni 1 100 200\nCNI_COMMAND=ADD'],
])('a caller that sends %s is cut off after ten seconds', async (_name, text) => {
  const caller = (await call()).send(text);
  await vi.waitFor(() => expect(clock.timers).toBe(1));
  await clock.advance(9_999);
  expect(caller.socket.readableEnded).toBe(false);
  await clock.advance(1);
  await caller.ended;
  await vi.waitFor(() => expect(clock.timers).toBe(0));
});

test('a caller that has its answer is closed, though it leaves its side open', async () => {
  const caller = (await call()).send(request({ CNI_COMMAND: 'VERSION' }));
  expect(await caller.sees('supportedVersions')).toMatch(/^0 /);
  await caller.ended;
  await clock.advance(10_000);
  // The server's end is gone: what is sent now is refused.
  await vi.waitFor(() => {
    caller.send('more');
    expect(caller.socket.errored).not.toBeNull();
  });
});

test('callers beyond the limit are refused, and the others answered', async () => {
  const waiting = await Promise.all(Array.from({ length: 256 }, call));
  await vi.waitFor(() => expect(clock.timers).toBe(256));
  const refused = await call();
  await refused.ended;
  expect(problems).toEqual([expect.stringContaining('there are 256 already')]);
  const [first] = waiting;
  expect(await first?.send(request({ CNI_COMMAND: 'VERSION' })).sees('supportedVersions')).toMatch(/^0 /);
  for (const { socket } of waiting) socket.destroy();
});
