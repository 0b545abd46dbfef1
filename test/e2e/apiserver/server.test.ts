// The API server as a client meets it: over HTTPS, with its own certificates, a store on disk, and a stand-in kubelet.

import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer, request as httpsRequest, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApiServer, startLabApiServer } from '../../../apiserver/main.ts';
import { systemClock } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import { exec } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';

const root = mkdtempSync(join(tmpdir(), 'nodelet-api-'));
let server: RunningApiServer;
let kubelet: Server;
let kubeletPort = 0;
const kubeletSaw: string[] = [];

const start = (port = 0): Promise<RunningApiServer> =>
  startLabApiServer({ root, bindAddress: '127.0.0.1', port, nodeName: 'n1', tracer: new Tracer(), clock: systemClock });

interface Answer {
  readonly code: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  /** Undefined for anything but one JSON document. */
  readonly json: unknown;
}

/** The value at a path inside JSON; undefined where it leads nowhere. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );
}
function names(list: unknown): unknown[] {
  const items = at(list, 'items');
  return Array.isArray(items) ? items.map((item) => at(item, 'metadata', 'name')) : [];
}
type As = 'admin' | 'agent' | 'scheduler' | 'nobody' | { readonly token: string };

function open(method: string, path: string, body?: unknown, as: As = 'admin', headers: Record<string, string> = {}) {
  const client = typeof as === 'string' && as !== 'nobody' ? server.pki.clients[as] : undefined;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const outgoing = httpsRequest(
    `${server.url}${path}`,
    {
      method,
      ca: server.pki.ca.cert,
      agent: false,
      ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(typeof as === 'object' ? { authorization: `Bearer ${as.token}` } : {}),
        ...headers,
      },
    },
    resolve,
  );
  outgoing.on('error', reject);
  outgoing.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  return promise;
}

async function call(...args: Parameters<typeof open>): Promise<Answer> {
  const response = await open(...args);
  let text = '';
  for await (const chunk of response) text += String(chunk);
  const isJson = String(response.headers['content-type']).includes('json') && !args[1].includes('watch=1');
  return {
    code: response.statusCode ?? 0,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  };
}

const PODS = '/api/v1/namespaces/default/pods';
const pod = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'web', image: 'nginx:stable' }], ...spec },
});

beforeAll(async () => {
  server = await start();
  kubelet = createServer({
    cert: server.pki.serving.cert,
    key: server.pki.serving.key,
    ca: server.pki.ca.cert,
    requestCert: true,
  });
  kubelet.on('request', (request, response) => {
    kubeletSaw.push(`${request.method} ${request.url}`);
    if (request.url?.includes('/bad/')) response.writeHead(400).end('container "web" in pod "bad" is waiting to start');
    else response.writeHead(200, { 'content-type': 'text/plain' }).end('line 1\nline 2\n');
  });
  kubelet.on('upgrade', (request, socket) => {
    kubeletSaw.push(`UPGRADE ${request.url} ${request.headers.upgrade} ${request.headers.authorization ?? 'no token'}`);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
    socket.on('data', (bytes: Buffer) => socket.write(bytes.toString().toUpperCase()));
    socket.on('end', () => socket.end('bye'));
  });
  await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve));
  const address = kubelet.address();
  kubeletPort = typeof address === 'object' && address !== null ? address.port : 0;
  await call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
  await call('POST', '/api/v1/nodes', { metadata: { name: 'n1' } });
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
  };
  const patched = await call('PATCH', '/api/v1/nodes/n1/status', { status }, 'agent', {
    'content-type': 'application/merge-patch+json',
  });
  expect(patched.code).toBe(200);
});
afterAll(async () => {
  await server.close();
  kubelet.closeAllConnections();
  kubelet.close();
  rmSync(root, { recursive: true });
});

describe('the API server', () => {
  it('has the namespaces and the service that every cluster has', async () => {
    const { json } = await call('GET', '/api/v1/namespaces');
    expect(names(json)).toEqual(['default', 'kube-node-lease', 'kube-public', 'kube-system']);
    const service = (await call('GET', '/api/v1/namespaces/default/services/kubernetes')).json;
    expect(at(service, 'spec', 'clusterIP')).toBe('10.96.0.1');
  });

  it('authenticates callers by certificate and by token, and refuses the rest', async () => {
    expect((await call('GET', '/healthz', undefined, 'nobody')).text).toBe('ok');
    expect((await call('GET', '/version', undefined, 'nobody')).code).toBe(200);
    expect((await call('GET', PODS, undefined, 'nobody')).json).toMatchObject({ kind: 'Status', code: 401 });
    expect((await call('GET', PODS, undefined, { token: 'rubbish' })).code).toBe(401);
    expect((await call('POST', PODS, pod('x'), 'scheduler')).json).toMatchObject({ code: 403, reason: 'Forbidden' });
    const { json } = await call('POST', '/api/v1/namespaces/default/serviceaccounts/default/token', { spec: {} });
    const token = { token: String(at(json, 'status', 'token')) };
    const whoami = await call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, token);
    expect(at(whoami.json, 'status', 'userInfo', 'username')).toBe('system:serviceaccount:default:default');
    expect(at((await call('GET', PODS, undefined, token)).json, 'message')).toBe(
      'pods is forbidden: User "system:serviceaccount:default:default" cannot list resource "pods" in API group "" in the namespace "default"',
    );
  });

  it('answers what is wrong with a request by the right code', async () => {
    const cases: [number, ...Parameters<typeof open>][] = [
      [404, 'GET', '/api/v1/frobs'],
      [404, 'GET', `${PODS}/none`],
      [405, 'POST', '/api/v1/pods', pod('a')],
      [400, 'POST', PODS, '{"apiVersion":'],
      [422, 'POST', PODS, { ...pod('a'), spec: { containers: [] } }],
      [413, 'POST', PODS, JSON.stringify({ ...pod('a'), padding: 'x'.repeat(3 * 1024 * 1024) })],
      [415, 'POST', PODS, 'x', 'admin', { 'content-type': 'text/plain' }],
      [415, 'PATCH', `${PODS}/a`, {}, 'admin', { 'content-type': 'application/json' }],
      [406, 'GET', PODS, undefined, 'admin', { accept: 'text/html' }],
    ];
    for (const [code, ...args] of cases) {
      const answer = await call(...args);
      expect([args.slice(0, 2), answer.code, at(answer.json, 'kind'), at(answer.json, 'code')]).toEqual([
        args.slice(0, 2),
        code,
        'Status',
        code,
      ]);
    }
    const nowhere = await call('GET', '/nowhere');
    expect([nowhere.code, nowhere.text]).toEqual([404, '404 page not found\n']);
  });

  it('delivers a created pod to a watch within a few milliseconds', async () => {
    const response = await open('GET', `${PODS}?watch=1&fieldSelector=metadata.name%3Dw`);
    const lines = response[Symbol.asyncIterator]();
    const created = call('POST', PODS, pod('w'));
    const { value } = await lines.next();
    expect(JSON.parse(String(value))).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'w' } } });
    expect((await created).code).toBe(201);
    response.destroy();
  });

  it('ends a watch when its time is up', async () => {
    const { text } = await call('GET', '/api/v1/namespaces?watch=1&timeoutSeconds=1&allowWatchBookmarks=1');
    const events = text
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(events.map((event) => at(event, 'type'))).toEqual(['ADDED', 'ADDED', 'ADDED', 'ADDED', 'BOOKMARK']);
  });

  it('binds a pod, streams its log from its node, and passes on what the kubelet refuses', async () => {
    await call('POST', PODS, pod('web'));
    await call('POST', PODS, pod('bad'));
    expect((await call('GET', `${PODS}/web/log`)).text).toBe('');
    for (const name of ['web', 'bad']) {
      const bound = await call(
        'POST',
        `${PODS}/${name}/binding`,
        { target: { kind: 'Node', name: 'n1' } },
        'scheduler',
      );
      expect(bound.code).toBe(201);
    }
    expect((await call('GET', `${PODS}/web/log?tailLines=2`)).text).toBe('line 1\nline 2\n');
    expect(kubeletSaw).toContain('GET /containerLogs/default/web/web?tailLines=2');
    expect((await call('GET', `${PODS}/bad/log`)).json).toMatchObject({
      code: 400,
      message: 'container "web" in pod "bad" is waiting to start',
    });
  });

  it('tunnels an upgraded connection as it is, without the caller’s credentials, and closes it from either side', async () => {
    const { cert, key } = server.pki.clients.admin;
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: server.pki.ca.cert, cert, key });
    let text = '';
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString();
    });
    const path = `${PODS}/web/exec?command=cat&stdin=true`;
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n`,
    );
    await expect.poll(() => text).toContain('101 Switching Protocols');
    socket.write('hello');
    await expect.poll(() => text).toContain('HELLO');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.end();
    await closed;
    expect(kubeletSaw).toContain(
      'UPGRADE /exec/default/web/web?input=1&output=1&error=1&command=cat SPDY/3.1 no token',
    );
  });

  it('refuses WebSocket protocols that logs are not sent in', async () => {
    const answer = await call('GET', `${PODS}/web/log`, undefined, 'admin', {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-protocol': 'v5.channel.k8s.io',
    });
    expect(answer.code).toBe(403);
  });

  it('keeps objects and revisions over a restart, and a watch goes on from where it was', async () => {
    const before = (await call('GET', PODS)).json;
    await server.close();
    server = await start();
    const after = (await call('GET', PODS)).json;
    expect(at(after, 'items')).toEqual(at(before, 'items'));
    const created = (await call('POST', PODS, pod('later'))).json;
    const revision = (object: unknown) => Number(at(object, 'metadata', 'resourceVersion'));
    expect(revision(created)).toBeGreaterThan(revision(before));
    const { text } = await call('GET', `${PODS}?watch=1&resourceVersion=${revision(before)}&timeoutSeconds=1`);
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => at(JSON.parse(line), 'object', 'metadata', 'name')),
    ).toEqual(['later']);
  });

  it('reports in one line that its port or its store is taken', async () => {
    await expect(start(server.port)).rejects.toThrow(UserError);
    await expect(start(0)).rejects.toThrow(/another API server is using it/);
    const elsewhere = { root: join(root, 'other'), bindAddress: '127.0.0.1', port: server.port };
    await expect(startLabApiServer({ ...elsewhere, tracer: new Tracer(), clock: systemClock })).rejects.toThrow(
      `port ${server.port} on 127.0.0.1 is taken`,
    );
  });

  it('is good enough for the kubectl on the path', async () => {
    const kubectl = (...args: string[]) => exec('kubectl', ['--kubeconfig', join(root, 'kubeconfig'), ...args]);
    const get = await kubectl('get', 'pods', '-o', 'wide');
    expect(get.stdout).toMatch(/^NAME +READY +STATUS +RESTARTS +AGE/);
    expect(await kubectl('label', 'pod', 'web', 'tier=front')).toMatchObject({ code: 0, stdout: 'pod/web labeled\n' });
    expect((await kubectl('get', 'pods', '-l', 'tier in (front)', '-o', 'name')).stdout).toBe('pod/web\n');
    expect((await kubectl('logs', 'web')).stdout).toBe('line 1\nline 2\n');
    expect(await kubectl('create', 'configmap', 'c', '--from-literal=a=b')).toMatchObject({ code: 0 });
    expect((await kubectl('auth', 'can-i', 'create', 'pods')).stdout).toBe('yes\n');
    expect(await kubectl('delete', 'pod', 'web', '--grace-period=0', '--force')).toMatchObject({ code: 0 });
  });
});
