// pods/proxy and services/proxy before a real HTTP server, which has a pod's address: through kubectl get --raw, kubectl proxy, and
// an upgraded connection.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer, request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ownAddress } from '../../support/own-address.ts';
import { kubectls } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

let test: TestServer;
let kubectl: Kubectl;
let command: string;
let backend: Server;
let port: number;
let securePort: number;
const servers: Server[] = [];
const sockets = new WebSocketServer({ noServer: true });
const seen: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[] = [];

const answer: Parameters<typeof createServer>[1] = (request, response) => {
  void (async () => {
    const body = await text(request);
    seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
    if (request.url === '/page') {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<a href="/next">next</a>');
    } else if (request.url === '/moved') response.writeHead(302, { Location: '/there' }).end();
    else response.writeHead(request.url === '/teapot' ? 418 : 200, { 'X-Backend': 'yes' }).end(`you sent ${body}`);
  })();
};

async function listening(server: Server, host: string): Promise<number> {
  servers.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const ROOT = '/api/v1/namespaces/default';

beforeAll(async () => {
  test = await startTestServer();
  const home = join(test.root, 'proxy');
  await mkdir(home, { recursive: true });
  const [newest] = (await kubectls()).filter(({ full }) => full).slice(-1);
  if (newest === undefined) throw new Error('there is no kubectl');
  command = newest.command;
  kubectl = kubectlFor(command, test.kubeconfig, home);
  const host = ownAddress();
  backend = createServer(answer);
  backend.on('upgrade', (request, socket, head) => {
    if (request.url === '/closed') socket.end('HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno');
    else sockets.handleUpgrade(request, socket, head, (peer) => peer.on('message', (data) => peer.send(`<${data}>`)));
  });
  port = await listening(backend, host);
  const { cert, key } = test.server.pki.serving;
  securePort = await listening(createTlsServer({ cert, key }, answer), host);
  const pod = (name: string, containerPort: number) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'x', ports: [{ containerPort }] }] },
  });
  const targetRef = { kind: 'Pod', name: 'web', namespace: 'default' };
  const service = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports: [{ name: 'http', port: 80, targetPort: port }] },
  });
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port }],
    endpoints: [{ addresses: [host], conditions: { ready: true }, targetRef }],
  };
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  const objects: object[] = [account, pod('web', port), pod('here', port), service('web'), service('empty'), slice];
  objects.push({
    ...slice,
    metadata: { name: 'empty-1', labels: { 'kubernetes.io/service-name': 'empty' } },
    endpoints: [],
  });
  const rbac = 'rbac.authorization.k8s.io';
  objects.push({
    ...{ apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name: 'reads' } },
    rules: [{ apiGroups: [''], resources: ['pods/proxy'], verbs: ['get'] }],
  });
  objects.push({
    ...{ apiVersion: `${rbac}/v1`, kind: 'RoleBinding', metadata: { name: 'reads' } },
    roleRef: { apiGroup: rbac, kind: 'Role', name: 'reads' },
    subjects: [{ apiGroup: rbac, kind: 'User', name: 'jane' }],
  });
  await kubectl.feed(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), 'create', '-f', '-');
  const withAddress = (ip: string): string => JSON.stringify({ status: { podIP: ip, podIPs: [{ ip }] } });
  await kubectl.ok('patch', 'pod', 'web', '--subresource=status', '-p', withAddress(host));
  await kubectl.ok('patch', 'pod', 'here', '--subresource=status', '-p', withAddress('127.0.0.1'));
});

afterAll(async () => {
  for (const peer of sockets.clients) peer.terminate();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await test.stop();
});

describe('kubectl get --raw', () => {
  it('reads from a pod and a service, by scheme, name and port, with path and query', async () => {
    const names = ['services/http:web:80', 'services/web:http', 'pods/web', `pods/http:web:${port}`];
    for (const name of [...names, `pods/https:web:${securePort}`]) {
      seen.length = 0;
      expect(await kubectl.ok('get', '--raw', `${ROOT}/${name}/proxy/a%20b/c?x=1&y=%2F`)).toBe('you sent ');
      expect(seen).toMatchObject([{ method: 'GET', url: '/a%20b/c?x=1&y=%2F' }]);
      expect(seen[0]?.headers).toMatchObject({ 'x-forwarded-uri': `${ROOT}/${name}/proxy/a%20b/c` });
      expect(seen[0]?.headers['x-forwarded-for']).toBe('127.0.0.1');
    }
  });

  it('follows the redirect to the path with a slash, and gets pages with references through the proxy', async () => {
    expect(await kubectl.ok('get', '--raw', `${ROOT}/pods/web/proxy`)).toBe('you sent ');
    expect(await kubectl.ok('get', '--raw', `${ROOT}/pods/web/proxy/page`)).toBe(
      `<a href="${ROOT}/pods/web/proxy/next">next</a>`,
    );
  });

  it('sees why nothing answers', async () => {
    const error = async (path: string): Promise<string> =>
      (await kubectl.run(['get', '--raw', `${ROOT}${path}`])).stderr;
    expect(await error('/services/empty:80/proxy/')).toContain('no endpoints available for service "empty"');
    expect(await error('/pods/here/proxy/')).toContain('address not allowed');
    // A port that was free a moment ago, and that nothing of this test listens at.
    const gone = createServer();
    const free = await listening(gone, ownAddress());
    gone.close();
    await once(gone, 'close');
    expect(await error(`/pods/web:${free}/proxy/`)).toMatch(
      /ServiceUnavailable.*error trying to reach service: dial tcp .*: connect: connection refused/,
    );
  });

  it('is authorized by the verb on the subresource', async () => {
    const as = ['--as=jane'];
    expect(await kubectl.ok('get', '--raw', `${ROOT}/pods/web/proxy/`, ...as)).toBe('you sent ');
    const { stderr } = await kubectl.run(['create', '--raw', `${ROOT}/pods/web/proxy/`, '-f', '-', ...as], 'x');
    expect(stderr).toContain('User "jane" cannot create resource "pods/proxy" in API group ""');
    const service = await kubectl.run(['get', '--raw', `${ROOT}/services/web:80/proxy/`, ...as]);
    expect(service.stderr).toContain('cannot get resource "services/proxy"');
  });
});

describe('kubectl proxy', () => {
  it('carries every verb, and responses as they are', async () => {
    const socketPath = join(test.root, 'kubectl.sock');
    const child = spawn(command, ['proxy', `--unix-socket=${socketPath}`, `--kubeconfig=${test.kubeconfig}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(child.stdout, 'data');
      const call = async (method: string, path: string, sent = '') => {
        const outgoing = httpRequest({ socketPath, method, path: `${ROOT}/services/web:http/proxy${path}` });
        outgoing.setHeader('Authorization', 'Bearer mine');
        if (sent !== '') outgoing.setHeader('Content-Length', sent.length);
        outgoing.end(sent);
        const [response] = await once(outgoing, 'response');
        return { code: response.statusCode, headers: response.headers, body: await text(response) };
      };
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET']) {
        seen.length = 0;
        const sent = method === 'GET' || method === 'OPTIONS' ? '' : 'hello';
        expect(await call(method, '/x', sent)).toMatchObject({ code: 200, body: `you sent ${sent}` });
        expect(seen).toMatchObject([{ method, url: '/x', body: sent }]);
        expect(seen[0]?.headers.authorization).toBeUndefined();
      }
      expect(await call('HEAD', '/x')).toMatchObject({ code: 200, body: '', headers: { 'x-backend': 'yes' } });
      expect(await call('GET', '/teapot')).toMatchObject({ code: 418, body: 'you sent ' });
      const moved = await call('GET', '/moved');
      expect(moved).toMatchObject({ code: 302, headers: { location: `${ROOT}/services/web:http/proxy/there` } });
    } finally {
      child.kill();
      await once(child, 'close');
    }
  });

  it('listens on any free port', async () => {
    const child = spawn(command, ['proxy', '--port=0', `--kubeconfig=${test.kubeconfig}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [line] = await once(child.stdout, 'data');
      const [, port] = /^Starting to serve on 127\.0\.0\.1:(\d+)\n/.exec(String(line)) ?? [];
      const response = await fetch(`http://127.0.0.1:${port}/api/`);
      expect(await response.json()).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
    } finally {
      child.kill();
      await once(child, 'close');
    }
  });
});

describe('an upgraded connection', () => {
  const open = (path: string): WebSocket => {
    const { ca, clients } = test.server.pki;
    const url = `${test.server.url.replace(/^https/, 'wss')}${ROOT}/pods/web/proxy${path}`;
    return new WebSocket(url, { ca: ca.cert, cert: clients.admin.cert, key: clients.admin.key });
  };
  it('goes both ways', async () => {
    const socket = open('/echo');
    await once(socket, 'open');
    socket.send('hi');
    const [data] = await once(socket, 'message');
    expect(String(data)).toBe('<hi>');
    socket.close();
    await once(socket, 'close');
  });
  it('is refused with what the pod answers', async () => {
    const [, response] = await once(open('/closed'), 'unexpected-response');
    expect([response.statusCode, await text(response)]).toEqual([409, 'no']);
  });
});
