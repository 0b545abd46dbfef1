// The kubelet API against clients that cost it sockets and memory: what it reads of them, and what it keeps of them.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../../lib/clock.ts';
import { type Client, dial, openConnections } from '../../../support/tls-clients.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { OPEN, ServerStand } from './stand.ts';
import { container } from './support.ts';

const BODY_BYTES = 3 * 1024 * 1024;

let stand: ServerStand;
let clients: Client[];
let accepted: Socket[];
const onAccept = (message: unknown): void => {
  if (typeof message !== 'object' || message === null || !('socket' in message)) return;
  if (message.socket instanceof Socket) accepted.push(message.socket);
};

beforeEach(async () => {
  stand = await ServerStand.make();
  clients = [];
  accepted = [];
  subscribe('net.server.socket', onAccept);
});
afterEach(async () => {
  unsubscribe('net.server.socket', onAccept);
  for (const { socket } of clients) socket.destroy();
  await stand.close();
});

async function open(port: number, credential: { cert?: string; key?: string } = {}): Promise<Client> {
  const client = await dial(port, credential);
  clients.push(client);
  return client;
}

const upgrade = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n`;
const EXEC = upgrade('/exec/demo/web/c?command=ls&output=1');

describe('a refused upgrade', () => {
  test('three hundred times leaves no descriptor, though the clients leave their sides open', async () => {
    const port = await stand.start({}, { clock: systemClock });
    for (let i = 0; i < 300; i++) (await open(port)).send(EXEC);
    await Promise.all(clients.map(({ ended }) => ended));
    await vi.waitFor(async () => expect(await openConnections(port)).toBe(0));
    expect(clients.filter(({ socket }) => !socket.destroyed).length).toBeGreaterThan(200);
    expect(clients.filter(({ received }) => received.startsWith('HTTP/1.1 401 ')).length).toBeGreaterThan(250);
  });

  test.each([
    ['of a path that does not upgrade', '/pods', '400 Bad Request'],
    ['of a container that is not there', '/exec/demo/web/x?command=ls&output=1', '500 Internal Server Error'],
    ['whose streaming server is gone', '/exec/demo/web/c?command=ls&output=1', '502 Bad Gateway'],
  ])('%s is answered and closed', async (_name, path, status) => {
    const port = await stand.start(OPEN, { clock: systemClock });
    const client = (await open(port)).send(upgrade(path));
    await client.ended;
    expect(client.received).toContain(`HTTP/1.1 ${status}`);
    await vi.waitFor(async () => expect(await openConnections(port)).toBe(0));
  });
});

describe('a body', () => {
  test('is never read: 150 anonymous clients with 3 MiB each', async () => {
    const port = await stand.start({}, { clock: systemClock });
    const body = Buffer.alloc(BODY_BYTES, 'x');
    for (let i = 0; i < 150; i++) {
      const client = await open(port);
      client.send(`POST /run/demo/web/c HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`).send(body);
    }
    await Promise.all(clients.map(({ ended }) => ended));
    // An unauthenticated connection may have been closed for a newer one.
    expect(clients.filter(({ received }) => received.startsWith('HTTP/1.1 401 ')).length).toBeGreaterThan(60);
    await vi.waitFor(async () => expect(await openConnections(port)).toBe(0));
    for (const { bytesRead } of accepted) expect(bytesRead).toBeLessThan(BODY_BYTES / 8);
    expect(accepted.filter(({ bytesRead }) => bytesRead > 0).length).toBeGreaterThan(60);
  });

  test('is not asked for, whatever the caller may do', async () => {
    const port = await stand.start(OPEN, { clock: systemClock });
    const client = await open(port);
    client.send('POST /pods HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n');
    await client.ended;
    expect(client.received).toMatch(/^HTTP\/1\.1 405 /);
    await vi.waitFor(async () => expect(await openConnections(port)).toBe(0));
  });
});

test('three hundred idle connections keep the API server out of nothing', async () => {
  const { caFile, cert, key } = await stand.credentials('kube-apiserver-kubelet-client', 'system:masters');
  stand.answer = () => ({ status: { allowed: true } });
  const port = await stand.start({ authentication: { x509: { clientCAFile: caFile } } }, { clock: systemClock });
  const hostile = await Promise.allSettled(Array.from({ length: 300 }, () => open(port)));
  expect(hostile.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(64);
  const good = await open(port, { cert, key });
  expect(await good.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n').sees('ok')).toContain('HTTP/1.1 200 ');
  await vi.waitFor(async () => expect(await openConnections(port)).toBeLessThanOrEqual(65));
  // More of them, and the one that is known stays.
  await Promise.allSettled(Array.from({ length: 100 }, () => open(port)));
  expect(await good.send('GET /healthz/ping HTTP/1.1\r\nHost: x\r\n\r\n').sees('ok')).toContain('ok');
});

test('a log that is followed without a credential, where that is allowed, is cut by no time-out', async () => {
  const log = join(stand.dir, 'c.log');
  await writeFile(log, '');
  stand.pods.containers = [container('abc', log)];
  stand.logs.endless = true;
  const clock = new VirtualClock();
  const port = await stand.start(OPEN, {
    clock,
    connections: { timeouts: { unauthenticatedMs: 500, responseMs: 500 } },
  });
  const follower = await open(port);
  await follower.send('GET /containerLogs/demo/web/c?follow=true HTTP/1.1\r\nHost: x\r\n\r\n').sees('two');
  const silent = await open(port);
  await clock.advance(500);
  await silent.ended;
  expect(follower.socket.readableEnded).toBe(false);
  expect(stand.logs.aborted).toBe(false);
});
