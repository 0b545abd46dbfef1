// An API server behind this one, seen through stock kubectl: registered as an APIService, discovered, and called with the front
// proxy's certificate and the caller's name.

import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { generateKeyPair, issueCertificate } from '../../../apiserver/pki/keys.ts';
import { plusMs, systemClock } from '../../../lib/clock.ts';
import { ownAddress } from '../../support/own-address.ts';
import { kubectls } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

const HOUR_MS = 3_600_000;

interface Seen {
  readonly client: string;
  readonly user: string;
  readonly groups: string;
  readonly authorization: string | undefined;
  readonly path: string;
}

let test: TestServer;
let kubectl: Kubectl;
let remote: Server;
const seen: Seen[] = [];

const LIST = {
  kind: 'GreetingList',
  apiVersion: 'hello.example.org/v1',
  metadata: {},
  items: [{ kind: 'Greeting', apiVersion: 'hello.example.org/v1', metadata: { name: 'hi', creationTimestamp: null } }],
};
const RESOURCES = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: 'hello.example.org/v1',
  resources: [
    {
      name: 'greetings',
      singularName: 'greeting',
      namespaced: false,
      kind: 'Greeting',
      verbs: ['get', 'list'],
      shortNames: ['gr'],
    },
  ],
};

function record(request: IncomingMessage): void {
  const { socket } = request;
  const client = socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : undefined;
  seen.push({
    client: String(client),
    user: String(request.headers['x-remote-user']),
    groups: String(request.headers['x-remote-group']),
    authorization: request.headers.authorization,
    path: request.url ?? '',
  });
}

beforeAll(async () => {
  test = await startTestServer();
  const home = join(test.root, 'aggregation');
  await mkdir(home, { recursive: true });
  const [newest] = (await kubectls()).filter(({ full }) => full).slice(-1);
  if (newest === undefined) throw new Error('there is no kubectl');
  kubectl = kubectlFor(newest.command, test.kubeconfig, home);
  const keys = generateKeyPair();
  const now = systemClock.now();
  const life = { notBefore: plusMs(now, -HOUR_MS), notAfter: plusMs(now, HOUR_MS) };
  const { ca, frontProxy } = test.server.pki;
  const cert = await issueCertificate(
    { commonName: 'hello', usage: 'server', hosts: ['hello.default.svc'], ...life },
    keys,
    ca,
  );
  const options = { cert, key: keys.privateKey, ca: frontProxy.ca.cert, requestCert: true, rejectUnauthorized: true };
  remote = createServer(options, (request, response) => {
    record(request);
    const body = request.url?.startsWith('/apis/hello.example.org/v1/greetings') ? LIST : RESOURCES;
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  }).listen(0, ownAddress());
  await once(remote, 'listening');
});
afterAll(async () => {
  remote.closeAllConnections();
  remote.close();
  await test.stop();
});

const port = (): number => {
  const address = remote.address();
  if (typeof address !== 'object' || address === null) throw new Error('the remote server does not listen');
  return address.port;
};

it('the server has APIServices of its own, all available', async () => {
  const shown = await kubectl.ok('get', 'apiservices');
  expect(shown).toMatch(/^v1\. +Local +True/m);
  expect(shown).toMatch(/^v1\.apiextensions\.k8s\.io +Local +True/m);
  // As kube-apiserver: groups of reviews have one, that of the APIServices has none.
  expect(shown).toMatch(/^v1\.authentication\.k8s\.io +Local +True/m);
  expect(shown).not.toContain('apiregistration');
});

it('another server becomes available with its endpoints, is discovered and called', async () => {
  const manifest = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.hello.example.org}
spec:
  group: hello.example.org
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: ${Buffer.from(test.server.pki.ca.cert).toString('base64')}
  service: {name: hello, namespace: default}
`;
  await kubectl.feed(manifest, 'apply', '-f', '-');
  await kubectl.ok(
    'wait',
    '--for=jsonpath={.status.conditions[0].reason}=ServiceNotFound',
    'apiservice/v1.hello.example.org',
    '--timeout=300s',
  );
  const { code, stderr } = await kubectl.run(['get', '--raw', '/apis/hello.example.org/v1/greetings']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('service unavailable')]);
  const service = `
apiVersion: v1
kind: Service
metadata: {name: hello}
spec: {ports: [{port: 443, targetPort: ${port()}}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: hello}
subsets: [{addresses: [{ip: ${ownAddress()}}], ports: [{port: ${port()}}]}]
`;
  await kubectl.feed(service, 'apply', '-f', '-');
  await kubectl.ok('wait', '--for=condition=Available', 'apiservice/v1.hello.example.org', '--timeout=300s');
  await expect
    .poll(() => kubectl.ok('api-resources', '--api-group', 'hello.example.org'))
    .toMatch(/greetings +gr +hello\.example\.org\/v1 +false +Greeting/);
  seen.length = 0;
  expect(await kubectl.ok('get', 'gr', '-o', 'name')).toBe('greeting.hello.example.org/hi\n');
  // Beside it the server looks whether the other one is available.
  const call = seen.find(({ path }) => path.includes('/greetings'));
  expect(call).toMatchObject({
    client: 'front-proxy-client',
    user: 'kubernetes-admin',
    authorization: undefined,
  });
  expect(call?.groups).toContain('system:masters');
  expect(call?.path).toContain('limit=500');
});

it('one that is unregistered is no longer there', async () => {
  await kubectl.ok('delete', 'apiservice', 'v1.hello.example.org');
  await expect
    .poll(async () => (await kubectl.run(['get', '--raw', '/apis/hello.example.org/v1'])).stderr)
    .toContain('the server could not find the requested resource');
});
