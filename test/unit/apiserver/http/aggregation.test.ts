// Connections to another API server that are upgraded: the caller is named to it, and bytes go both ways.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, request, type Server } from 'node:https';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { at, type Credentials, TestApiServer } from '../../../support/api-server.ts';
import { ownAddress } from '../../../support/own-address.ts';
import { makeCa } from '../../../support/tls.ts';

const BASE = '/apis/hello.example.org/v1';
const NAME = 'v1.hello.example.org';

let stand: TestApiServer;
let remote: Server;
/** Of each upgrade that the other server was asked for. */
const seen: IncomingMessage['headers'][] = [];

beforeAll(async () => {
  stand = await TestApiServer.start();
  const ca = await makeCa();
  const keys = await ca.server(['hello.default.svc']);
  const { frontProxy } = stand.server.pki;
  const mutual = { ca: frontProxy.ca.cert, requestCert: true, rejectUnauthorized: true };
  remote = createServer({ ...keys, ...mutual }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ kind: 'APIResourceList', groupVersion: 'hello.example.org/v1', resources: [] }));
  });
  remote.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    seen.push(message.headers);
    if (message.url?.endsWith('/closed') === true) {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nConnection: close\r\n\r\nclosed');
      return;
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Answer: yes\r\n\r\n');
    socket.write(`${message.method} ${message.url}\n`);
    socket.write(head);
    socket.on('error', () => socket.destroy());
    socket.pipe(socket);
  });
  remote.listen(0, ownAddress());
  await once(remote, 'listening');
  const address = remote.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const services = '/api/v1/namespaces/default';
  await stand.admit('POST', `${services}/services`, {
    metadata: { name: 'hello' },
    spec: { ports: [{ port: 443, targetPort: port }] },
  });
  await stand.admit('POST', `${services}/endpoints`, {
    metadata: { name: 'hello' },
    subsets: [{ addresses: [{ ip: ownAddress() }], ports: [{ port }] }],
  });
  await stand.admit('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
    metadata: { name: NAME },
    spec: {
      group: 'hello.example.org',
      version: 'v1',
      groupPriorityMinimum: 1000,
      versionPriority: 15,
      caBundle: Buffer.from(ca.cert).toString('base64'),
      service: { name: 'hello', namespace: 'default' },
    },
  });
});
afterAll(async () => {
  await stand.stop();
  remote.closeAllConnections();
  remote.close();
});

async function reason(): Promise<unknown> {
  const service = await stand.admit('GET', `/apis/apiregistration.k8s.io/v1/apiservices/${NAME}`);
  return at(service, 'status', 'conditions', 0, 'reason');
}

interface Opened {
  readonly code: number;
  readonly headers: IncomingMessage['headers'];
  /** Of an upgraded connection what was echoed, else the body. */
  readonly text: string;
}

/** Asks for an upgrade, sends "ping", and ends its side once that has come back. */
async function upgrade(path: string, as: Credentials): Promise<Opened> {
  const { promise, resolve, reject } = Promise.withResolvers<Opened>();
  const headers = { connection: 'Upgrade', upgrade: 'echo', 'x-remote-group': 'system:masters', 'x-note': 'kept' };
  const { cert = '', key = '' } = as;
  const outgoing = request(`${stand.server.url}${path}`, { cert, key, ca: stand.server.pki.ca.cert, headers });
  const collect = (response: IncomingMessage, from: NodeJS.ReadableStream, before: string): void => {
    let text = before;
    from.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    from.on('end', () => resolve({ code: response.statusCode ?? 0, headers: response.headers, text }));
  };
  outgoing.on('response', (response) => collect(response, response, ''));
  outgoing.on('upgrade', (response, socket, head) => {
    collect(response, socket, head.toString());
    socket.write('ping');
    socket.on('data', (chunk: Buffer) => {
      if (chunk.toString().endsWith('ping')) socket.end();
    });
  });
  outgoing.on('error', reject);
  outgoing.end();
  return promise;
}

it('are passed on both ways, with the caller’s name in place of what they say of it', async () => {
  await expect.poll(reason).toBe('Passed');
  const { code, headers, text } = await upgrade(`${BASE}/greetings/hi/shell?x=1`, stand.admin);
  expect([code, headers['x-answer'], text]).toEqual([101, 'yes', `GET ${BASE}/greetings/hi/shell?x=1\nping`]);
  expect(seen.at(-1)).toMatchObject({
    'x-remote-user': 'kubernetes-admin',
    'x-remote-group': 'system:masters, system:authenticated',
    'x-note': 'kept',
    upgrade: 'echo',
  });
});

it('are refused in the other server’s words, and by this one for who may not', async () => {
  await expect.poll(reason).toBe('Passed');
  const { code, text } = await upgrade(`${BASE}/closed`, stand.admin);
  expect([code, text]).toEqual([403, 'closed']);
  const before = seen.length;
  const jane = await stand.certificate('jane', 'devs');
  const refused = await upgrade(`${BASE}/greetings/hi/shell`, jane);
  expect([refused.code, refused.text]).toEqual([403, expect.stringContaining('User \\"jane\\" cannot get resource')]);
  expect(seen).toHaveLength(before);
});

it('are 503 while the other server is not there', async () => {
  await stand.admit('DELETE', '/api/v1/namespaces/default/endpoints/hello');
  await expect.poll(reason).toBe('MissingEndpoints');
  expect((await upgrade(`${BASE}/greetings/hi/shell`, stand.admin)).code).toBe(503);
});
