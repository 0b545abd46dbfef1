// The API server against clients that cost it sockets and memory: what it reads of them, and what it keeps of them.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type RunningApiServer, startApiServer } from '../../../../apiserver/main.ts';
import { systemClock } from '../../../../lib/clock.ts';
import type { ConnectionLimits } from '../../../../lib/connection-limits.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { type Client, dial, openConnections } from '../../../support/tls-clients.ts';

const LIMIT = 3 * 1024 * 1024;
const PODS = '/api/v1/namespaces/default/pods';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

let root: string;
let server: RunningApiServer;
let clients: Client[];
/** The server's ends of all connections since the test began. */
let accepted: Socket[];
const onAccept = (message: unknown): void => {
  if (typeof message !== 'object' || message === null || !('socket' in message)) return;
  if (message.socket instanceof Socket) accepted.push(message.socket);
};

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-connections-'));
  server = await start();
});
beforeEach(() => {
  accepted = [];
  clients = [];
  subscribe('net.server.socket', onAccept);
});

function start(limits?: ConnectionLimits): Promise<RunningApiServer> {
  return startApiServer({
    ...(limits === undefined ? {} : { connections: { limits } }),
    pkiDir: join(root, 'pki'),
    dbPath: join(root, 'store.db'),
    address: '127.0.0.1',
    port: 0,
    hosts: [],
    tracer: new Tracer(),
    clock: systemClock,
  });
}
afterEach(async () => {
  unsubscribe('net.server.socket', onAccept);
  for (const { socket } of clients) socket.destroy();
  // The next test has the server to itself.
  await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
});
afterAll(async () => {
  await server.close();
  await rm(root, { recursive: true, force: true });
});

async function open(as?: 'admin'): Promise<Client> {
  const credential = as === undefined ? {} : { cert: server.pki.clients[as].cert, key: server.pki.clients[as].key };
  const client = await dial(server.port, credential);
  clients.push(client);
  return client;
}

const head = (method: string, path: string, ...headers: readonly string[]): string =>
  [`${method} ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n');

async function adminLists(): Promise<void> {
  const admin = await open('admin');
  admin.send(head('GET', '/api/v1/namespaces', 'Connection: close'));
  await admin.ended;
  expect(admin.received).toMatch(/^HTTP\/1\.1 200 /);
  admin.socket.destroy();
}

describe('a refused upgrade', () => {
  const upgrade = head('POST', `${PODS}/web/exec?command=ls`, 'Connection: Upgrade', 'Upgrade: SPDY/3.1');

  test.each([
    ['of nobody', undefined, 'HTTP/1.1 401 '],
    ['of a pod that is not there', 'admin', 'HTTP/1.1 404 '],
  ] as const)(
    '%s is answered, and the socket closed though the client leaves its side open',
    async (_name, as, line) => {
      const client = (await open(as)).send(upgrade);
      await client.ended;
      expect(client.received).toContain(line);
      expect(client.received).toContain('Connection: close');
      await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
    },
  );

  test('three hundred times leaves no descriptor', async () => {
    for (let i = 0; i < 300; i++) (await open()).send(upgrade);
    await Promise.all(clients.map(({ ended }) => ended));
    await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
    expect(clients.filter(({ socket }) => !socket.destroyed).length).toBeGreaterThan(200);
    await adminLists();
  });

  test('of a client that goes on sending is closed, too', async () => {
    const client = (await open()).send(upgrade);
    const more = setInterval(() => client.send(Buffer.alloc(16_384)), 5);
    await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
    clearInterval(more);
  });
});

describe('a body', () => {
  test('without credentials is not read: 150 clients with 3 MiB each', async () => {
    const body = Buffer.alloc(LIMIT, 'x');
    for (let i = 0; i < 150; i++) {
      const client = await open();
      client.send(head('POST', CONFIG_MAPS, 'Content-Type: application/json', `Content-Length: ${LIMIT}`)).send(body);
    }
    await Promise.all(clients.map(({ ended }) => ended));
    expect(clients.filter(({ received }) => received.startsWith('HTTP/1.1 401 '))).toHaveLength(150);
    await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
    for (const { bytesRead } of accepted) {
      expect(bytesRead).toBeGreaterThan(0);
      expect(bytesRead).toBeLessThan(LIMIT / 8);
    }
  });

  test.each(['Content-Length: 1000000', 'Transfer-Encoding: chunked'])(
    'without credentials that never comes (%s) is refused at once and closed',
    async (length) => {
      const client = (await open()).send(head('POST', CONFIG_MAPS, 'Content-Type: application/json', length));
      await client.ended;
      expect(client.received).toMatch(/^HTTP\/1\.1 401 /);
      expect(client.received.toLowerCase()).toContain('connection: close');
      await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
    },
  );

  test('that is waited for is asked for only when it is wanted', async () => {
    const expecting = (length: number): string =>
      head('POST', CONFIG_MAPS, 'Content-Type: application/json', 'Expect: 100-continue', `Content-Length: ${length}`);
    const text = JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } });
    const unidentified = (await open()).send(expecting(text.length));
    await unidentified.ended;
    expect(unidentified.received).toMatch(/^HTTP\/1\.1 401 /);

    const large = (await open('admin')).send(expecting(LIMIT + 1));
    await large.ended;
    expect(large.received).toMatch(/^HTTP\/1\.1 413 /);
    expect(large.received).toContain('Request entity too large: limit is 3145728');

    const admin = (await open('admin')).send(expecting(text.length));
    expect(await admin.sees('\r\n\r\n')).toMatch(/^HTTP\/1\.1 100 /);
    expect(await admin.send(text).sees('"uid"')).toContain('HTTP/1.1 201 ');
  });

  test('that turns out too large is read no further', async () => {
    const client = await open('admin');
    client.send(head('POST', CONFIG_MAPS, 'Content-Type: application/json', 'Transfer-Encoding: chunked'));
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')]);
    for (let i = 0; i < 200; i++) client.send(chunk);
    await client.ended;
    expect(client.received).toMatch(/^HTTP\/1\.1 413 /);
    await vi.waitFor(async () => expect(await openConnections(server.port)).toBe(0));
    expect(accepted.at(-1)?.bytesRead).toBeGreaterThan(LIMIT);
    expect(accepted.at(-1)?.bytesRead).toBeLessThan(2 * LIMIT);
  });

  test('of a caller who may not is not read either', async () => {
    const { cert, key } = server.pki.clients.scheduler;
    const client = await dial(server.port, { cert, key });
    clients.push(client);
    client.send(head('POST', '/api/v1/namespaces/kube-system/secrets', `Content-Length: ${LIMIT}`));
    await client.ended;
    expect(client.received).toMatch(/^HTTP\/1\.1 403 /);
  });
});

test('hundreds of anonymous connections keep no authenticated client out', async () => {
  await server.close();
  const unauthenticated = 64;
  server = await start({ total: 256, perAddress: 256, unauthenticated });
  const hostile = await Promise.allSettled(Array.from({ length: 5 * unauthenticated }, () => open()));
  expect(hostile.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(unauthenticated);
  for (const { socket } of clients) if (!socket.destroyed) socket.write('GET /api/v1/secr', () => undefined);
  await adminLists();
  await vi.waitFor(async () => expect(await openConnections(server.port)).toBeLessThanOrEqual(unauthenticated));
});
