import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createKubeletServer } from '../../../../agent/server/kubelet-server.ts';
import type { KubeletServer, KubeletServerOptions } from '../../../../agent/server/options.ts';
import { loadServingCertificate, renewalReason } from '../../../../agent/server/serving-certificate.ts';
import { generateKeyPair, issueCertificate } from '../../../../apiserver/pki/keys.ts';
import { UserError } from '../../../../lib/errors.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { ManualClock } from '../volumes/support.ts';
import { agentOptions, ask, container, FakeLogs, FakePods, FakeRuntime } from './support.ts';

let dir = '';
let pods: FakePods;
let logs: FakeLogs;
let runtime: FakeRuntime;
let clock: ManualClock;
let server: KubeletServer | undefined;
const reviews: { path: string; body: unknown }[] = [];
let answer: (path: string, body: unknown) => unknown;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-server-'));
  pods = new FakePods();
  logs = new FakeLogs();
  runtime = new FakeRuntime();
  clock = new ManualClock();
  reviews.length = 0;
  answer = () => ({});
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  await rm(dir, { recursive: true, force: true });
});

async function start(
  config: Readonly<Record<string, unknown>> = {},
  more: Partial<KubeletServerOptions> = {},
): Promise<number> {
  server = createKubeletServer({
    options: agentOptions(join(dir, 'pki'), config),
    pods,
    runtime,
    logs,
    reviews: {
      create: async <T>(path: string, body: unknown): Promise<T> => {
        reviews.push({ path, body });
        return answer(path, body) as T;
      },
    },
    tracer: new Tracer(),
    clock,
    ...more,
  });
  await server.listen();
  return server.port;
}

const OPEN = { authentication: { anonymous: { enabled: true } }, authorization: { mode: 'AlwaysAllow' } };

/** A client certificate of `name`, and the CA that vouches for it. */
async function credentials(name: string, organization: string) {
  const life = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 };
  const ca = generateKeyPair();
  const caCert = await issueCertificate({ commonName: 'ca', usage: 'ca', ...life }, ca);
  const caFile = join(dir, `${name}-ca.crt`);
  await writeFile(caFile, caCert);
  const pair = generateKeyPair();
  const signer = { cert: caCert, key: ca.privateKey };
  const cert = await issueCertificate({ commonName: name, organization, usage: 'client', ...life }, pair, signer);
  return { caFile, cert, key: pair.privateKey };
}

describe('who may call', () => {
  test('nobody without credentials, not even for health', async () => {
    const port = await start();
    const { status, body, headers } = await ask(port, '/healthz');
    expect([status, body]).toEqual([401, 'Unauthorized']);
    expect(headers['www-authenticate']).toContain('Bearer');
    expect(reviews).toEqual([]);
  });

  test('a client certificate of our CA is its CN and O, and is authorized by SubjectAccessReview', async () => {
    const { caFile, cert, key } = await credentials('kube-apiserver-kubelet-client', 'system:masters');
    answer = () => ({ status: { allowed: true } });
    const port = await start({ authentication: { x509: { clientCAFile: caFile } } });
    expect(await ask(port, '/healthz', { cert, key })).toMatchObject({ status: 200, body: 'ok' });
    expect(reviews).toEqual([
      {
        path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        body: {
          kind: 'SubjectAccessReview',
          apiVersion: 'authorization.k8s.io/v1',
          spec: {
            user: 'kube-apiserver-kubelet-client',
            groups: ['system:masters', 'system:authenticated'],
            resourceAttributes: {
              verb: 'get',
              version: 'v1',
              resource: 'nodes',
              subresource: 'healthz',
              name: 'node-1',
            },
          },
        },
      },
    ]);
    await ask(port, '/healthz/ping', { cert, key });
    expect(reviews).toHaveLength(1);
    clock.advance(300_000);
    await ask(port, '/healthz', { cert, key });
    expect(reviews).toHaveLength(2);
  });

  test('a certificate of another CA is nobody', async () => {
    const ours = await credentials('ours', 'system:masters');
    const theirs = await credentials('theirs', 'system:masters');
    const port = await start({ ...OPEN, authentication: { x509: { clientCAFile: ours.caFile } } });
    const { cert, key } = theirs;
    expect((await ask(port, '/healthz', { cert, key })).status).toBe(401);
    expect((await ask(port, '/healthz', { cert: ours.cert, key: ours.key })).status).toBe(200);
  });

  test('a bearer token is asked about once, and the answer kept for two minutes', async () => {
    answer = (path) =>
      path.endsWith('tokenreviews')
        ? { status: { authenticated: true, user: { username: 'bob', uid: '7', groups: ['dev'] } } }
        : { status: { allowed: true } };
    const port = await start();
    const headers = { authorization: 'Bearer secret' };
    expect((await ask(port, '/pods', { headers })).status).toBe(200);
    expect((await ask(port, '/pods', { headers })).status).toBe(200);
    expect(reviews.map(({ path }) => path.split('/').at(-1))).toEqual(['tokenreviews', 'subjectaccessreviews']);
    expect(reviews[0]?.body).toMatchObject({ kind: 'TokenReview', spec: { token: 'secret' } });
    expect(reviews[1]?.body).toMatchObject({
      spec: { user: 'bob', uid: '7', groups: ['dev', 'system:authenticated'] },
    });
    clock.advance(120_000);
    await ask(port, '/pods', { headers });
    expect(reviews.filter(({ path }) => path.endsWith('tokenreviews'))).toHaveLength(2);
  });

  test('a token that the API server does not know, or cannot be asked about, is nobody', async () => {
    answer = () => ({ status: { authenticated: false } });
    const port = await start();
    expect((await ask(port, '/pods', { headers: { authorization: 'Bearer bad' } })).status).toBe(401);
    answer = () => {
      throw new Error('connection refused');
    };
    expect((await ask(port, '/pods', { headers: { authorization: 'Bearer other' } })).status).toBe(401);
  });

  test('a denied caller is told who and what, after the finer permission and nodes/proxy were both tried', async () => {
    answer = () => ({ status: { allowed: false } });
    const port = await start({ authentication: { anonymous: { enabled: true } } });
    const { status, body } = await ask(port, '/pods');
    expect(status).toBe(403);
    expect(body).toBe('Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[pods proxy])');
    expect(reviews).toHaveLength(2);
  });

  test('an authorization that cannot be had is an error, not a yes', async () => {
    answer = () => {
      throw new Error('connection refused');
    };
    const port = await start({ authentication: { anonymous: { enabled: true } } });
    const { status, body } = await ask(port, '/pods');
    expect(status).toBe(500);
    expect(body).toContain('Authorization error (user=system:anonymous');
  });

  test('Webhook without an API server is refused before anything listens', () => {
    const options = { options: agentOptions(dir), pods, runtime, logs, tracer: new Tracer(), clock };
    expect(() => createKubeletServer(options)).toThrow(UserError);
  });
});

describe('the port and the certificate', () => {
  test('a taken port is one clear line', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const base = agentOptions(dir, OPEN);
    const taken = createKubeletServer({
      options: { ...base, config: { ...base.config, port } },
      pods,
      runtime,
      logs,
      tracer: new Tracer(),
      clock,
    });
    await expect(taken.listen()).rejects.toThrow(UserError);
    await expect(taken.listen()).rejects.toThrow(`127.0.0.1 port ${port} is taken`);
    await new Promise((resolve) => other.close(resolve));
  });

  test('a self-signed certificate is made once, names the node and is private', async () => {
    const certDir = join(dir, 'pki');
    const names = {
      tlsCertFile: '',
      tlsPrivateKeyFile: '',
      certDir,
      nodeName: 'node-1',
      nodeIPs: ['10.1.2.3', 'fd00::1'],
    };
    const now = Date.now();
    const made = await loadServingCertificate({ ...names, now });
    const certificate = new X509Certificate(made.cert);
    expect(certificate.checkHost('node-1')).toBe('node-1');
    expect(certificate.checkIP('10.1.2.3')).toBe('10.1.2.3');
    expect(certificate.checkIP('fd00::1')).toBeDefined();
    expect((await stat(join(certDir, 'kubelet.key'))).mode & 0o777).toBe(0o600);
    expect(await loadServingCertificate({ ...names, now })).toEqual(made);
    const day = 24 * 3_600_000;
    expect(await loadServingCertificate({ ...names, now: now + 330 * day })).toEqual(made);
    expect(await loadServingCertificate({ ...names, now: now + 340 * day })).not.toEqual(made);
    const renamed = await loadServingCertificate({ ...names, nodeName: 'node-2', now });
    expect(new X509Certificate(renamed.cert).checkHost('node-2')).toBe('node-2');
    await writeFile(join(certDir, 'kubelet.key'), 'garbage');
    expect((await loadServingCertificate({ ...names, now })).key).toContain('PRIVATE KEY');
    expect(renewalReason(made, ['node-1'], now)).toBeUndefined();
    expect(renewalReason({ ...made, key: generateKeyPair().privateKey }, ['node-1'], now)).toContain('key');
  });

  test('configured files are used, and refused when they do not fit', async () => {
    const life = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 };
    const pair = generateKeyPair();
    const cert = await issueCertificate({ commonName: 'mine', usage: 'server', hosts: ['mine'], ...life }, pair);
    const [tlsCertFile, tlsPrivateKeyFile] = [join(dir, 's.crt'), join(dir, 's.key')];
    await writeFile(tlsCertFile, cert);
    await writeFile(tlsPrivateKeyFile, pair.privateKey);
    const port = await start({ ...OPEN, tlsCertFile, tlsPrivateKeyFile, tlsMinVersion: 'VersionTLS13' });
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    expect(socket.getPeerCertificate().subject.CN).toBe('mine');
    expect(socket.getProtocol()).toBe('TLSv1.3');
    socket.destroy();
    await writeFile(tlsPrivateKeyFile, generateKeyPair().privateKey);
    await server?.close();
    await expect(start({ ...OPEN, tlsCertFile, tlsPrivateKeyFile })).rejects.toThrow('is not the key of');
    await expect(start({ ...OPEN, tlsCertFile: '/none', tlsPrivateKeyFile })).rejects.toThrow(
      'tlsCertFile: /none cannot be read',
    );
    await expect(start({ ...OPEN, authentication: { x509: { clientCAFile: '/none' } } })).rejects.toThrow(
      'clientCAFile',
    );
  });
});

describe('what is served', () => {
  test('health, pods with their status, the configuration', async () => {
    const port = await start(OPEN, { syncLoopHealth: () => undefined });
    expect((await ask(port, '/healthz/syncloop')).body).toBe('ok');
    const list: unknown = JSON.parse((await ask(port, '/pods')).body);
    expect(list).toMatchObject({
      kind: 'PodList',
      items: [{ metadata: { name: 'web' }, status: { phase: 'Running' } }],
    });
    expect(JSON.parse((await ask(port, '/runningpods/')).body)).toMatchObject({ kind: 'PodList', items: [] });
    const configz: unknown = JSON.parse((await ask(port, '/configz')).body);
    expect(configz).toMatchObject({
      kubeletconfig: {
        syncFrequency: '1m0s',
        cpuCFSQuotaPeriod: '100ms',
        authentication: { anonymous: { enabled: true }, webhook: { cacheTTL: '2m0s' } },
      },
    });
    expect((await ask(port, '/nothing')).status).toBe(404);
    expect((await ask(port, '/pods', { method: 'POST' })).status).toBe(405);
    expect((await ask(port, '/exec/demo/web/c')).status).toBe(400);
  });

  test('a sync loop that hangs is an unhealthy kubelet', async () => {
    const port = await start(OPEN, { syncLoopHealth: () => 'stuck for 5m' });
    expect(await ask(port, '/healthz/syncloop')).toMatchObject({ status: 500, body: expect.stringContaining('stuck') });
  });

  test('nothing of pods’ insides with enableDebuggingHandlers off', async () => {
    const port = await start({ ...OPEN, enableDebuggingHandlers: false });
    expect(await ask(port, '/containerLogs/demo/web/c')).toMatchObject({
      status: 405,
      body: 'Debug endpoints are disabled.',
    });
    expect((await ask(port, '/healthz')).status).toBe(200);
  });
});

describe('logs', () => {
  beforeEach(async () => {
    await writeFile(join(dir, '0.log'), 'x');
    pods.containers = [container('abc', join(dir, '0.log'))];
  });

  test('are streamed with the options asked for', async () => {
    const port = await start(OPEN);
    expect(await ask(port, '/containerLogs/demo/web/c?tailLines=5&timestamps=true')).toMatchObject({
      status: 200,
      body: 'one\ntwo\n',
    });
    expect(logs.asked).toEqual([
      { path: join(dir, '0.log'), options: { follow: false, timestamps: true, tailLines: 5 } },
    ]);
  });

  test.each([
    ['/containerLogs/demo/other/c', 404, 'pod "other" does not exist'],
    ['/containerLogs/demo/web/x', 404, 'container "x" not found in pod "web"'],
    ['/containerLogs/demo/web/c?previous=true', 400, 'previous terminated container "c" in pod "web" not found'],
    ['/containerLogs/demo/web/c?tailLines=-5', 422, 'Invalid request'],
  ])('%s is answered with %d', async (path, status, message) => {
    const port = await start(OPEN);
    expect(await ask(port, path)).toMatchObject({ status, body: expect.stringContaining(message) });
  });

  test('of a container that does not exist yet are 400 with the reason', async () => {
    const waiting = { name: 'c', image: '', imageID: '', ready: false, restartCount: 0 };
    pods.status = { containerStatuses: [{ ...waiting, state: { waiting: { reason: 'ContainerCreating' } } }] };
    const port = await start(OPEN);
    expect(await ask(port, '/containerLogs/demo/web/c')).toMatchObject({
      status: 400,
      body: 'container "c" in pod "web" is waiting to start: ContainerCreating',
    });
  });

  test('whose file is gone are 400', async () => {
    await rm(join(dir, '0.log'));
    const port = await start(OPEN);
    expect(await ask(port, '/containerLogs/demo/web/c')).toMatchObject({
      status: 400,
      body: expect.stringContaining('ENOENT'),
    });
  });

  test('that are followed end when the reader goes away', async () => {
    logs.endless = true;
    logs.chunks = ['first\n'];
    const port = await start(OPEN);
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    const seen = await firstBytes(
      socket,
      'GET /containerLogs/demo/web/c?follow=true HTTP/1.1\r\nHost: x\r\n\r\n',
      'first',
    );
    expect(seen).toContain('HTTP/1.1 200 OK');
    socket.destroy();
    await vi.waitFor(() => expect(logs.aborted).toBe(true));
  });
});

/** Sends `text` and collects until `until` has been seen. */
function firstBytes(socket: TLSSocket, text: string, until: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = '';
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
      if (seen.includes(until)) resolve(seen);
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after: ${seen}`)));
    socket.write(text);
  });
}

describe('exec, attach and port-forward', () => {
  let backend: Server;
  let backendSockets: Socket[];
  let received: string;
  beforeEach(async () => {
    backendSockets = [];
    received = '';
    backend = createServer({ allowHalfOpen: true }, (socket) => {
      backendSockets.push(socket);
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString();
        if (received.includes('\r\n\r\n') && !received.includes('answered')) {
          received += '[answered]';
          socket.write(
            'HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n\x00\x01hello',
          );
        }
      });
      // Says its last words only after the caller has ended its side: half-close in both directions.
      socket.on('end', () => socket.end('last words'));
    });
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
    const address = backend.address();
    runtime.url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/exec/token`;
  });
  afterEach(async () => {
    for (const socket of backendSockets) socket.destroy();
    await new Promise((resolve) => backend.close(resolve));
  });

  const upgrade = (path: string, extra = '') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${extra}\r\n`;
  const dial = (port: number) =>
    connect({ socket: connectTcp({ host: '127.0.0.1', port, allowHalfOpen: true }), rejectUnauthorized: false });

  test('are tunnelled byte for byte, half-close included, and leave no socket behind', async () => {
    const port = await start(OPEN);
    const socket = dial(port);
    const path = '/exec/demo/web/c?command=ls&command=-l&input=1&output=1&error=1';
    const seen = await firstBytes(socket, upgrade(path, 'X-Stream-Protocol-Version: v4.channel.k8s.io\r\n'), 'hello');
    expect(seen).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(seen.endsWith('\x00\x01hello')).toBe(true);
    expect(received).toMatch(/^POST \/exec\/token HTTP\/1\.1\r\n/);
    expect(received).toContain('X-Stream-Protocol-Version: v4.channel.k8s.io');
    expect(runtime.asked).toEqual([
      { exec: 'abc', command: ['ls', '-l'], stdin: true, stdout: true, stderr: true, tty: false },
    ]);
    let rest = '';
    socket.removeAllListeners('close').removeAllListeners('data');
    socket.on('data', (chunk: Buffer) => {
      rest += chunk.toString();
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.end('bye');
    await closed;
    expect(received.endsWith('bye')).toBe(true);
    expect(rest).toBe('last words');
    await vi.waitFor(() => expect(backendSockets.every((one) => one.destroyed)).toBe(true));
  });

  test('end on both sides when the caller breaks off', async () => {
    const port = await start(OPEN);
    const socket = dial(port);
    await firstBytes(socket, upgrade('/attach/demo/web/c?output=1'), 'hello');
    socket.destroy();
    await vi.waitFor(() => expect(backendSockets[0]?.destroyed).toBe(true));
  });

  test('end on both sides when the server closes', async () => {
    const port = await start(OPEN);
    const socket = dial(port);
    await firstBytes(socket, upgrade('/portForward/demo/web?port=80'), 'hello');
    expect(runtime.asked).toEqual([{ portForward: 'box', ports: [80] }]);
    socket.removeAllListeners('close');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.once('end', () => socket.end());
    await server?.close();
    await closed;
    await vi.waitFor(() => expect(backendSockets[0]?.destroyed).toBe(true));
  });

  const refused = async (port: number, text: string): Promise<string> => {
    const socket = dial(port);
    let seen = '';
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(text);
    socket.once('end', () => socket.end());
    await closed;
    return seen;
  };

  test.each([
    ['/exec/demo/other/c?command=ls&output=1', '404 Not Found', 'pod does not exist'],
    ['/exec/demo/web/x?command=ls&output=1', '500 Internal Server Error', 'container not found ("x")'],
    ['/exec/demo/web/c?command=ls', '400 Bad Request', 'at least 1 of stdin, stdout, stderr'],
    ['/exec/demo/web/c?output=1', '400 Bad Request', 'you must specify a command'],
    ['/pods', '400 Bad Request', 'does not upgrade'],
  ])('%s is refused in plain HTTP', async (path, status, message) => {
    const port = await start(OPEN);
    const seen = await refused(port, upgrade(path));
    expect(seen).toContain(`HTTP/1.1 ${status}`);
    expect(seen).toContain(message);
  });

  test('are refused without credentials, before the runtime is asked', async () => {
    const port = await start();
    expect(await refused(port, upgrade('/exec/demo/web/c?command=ls&output=1'))).toContain('HTTP/1.1 401 Unauthorized');
    expect(runtime.asked).toEqual([]);
  });

  test('over WebSocket with only v5 are refused with 400, so that kubectl falls back', async () => {
    const port = await start(OPEN);
    const text =
      'GET /exec/demo/web/c?command=ls&output=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n';
    expect(await refused(port, text)).toContain('HTTP/1.1 400 Bad Request');
  });

  test('to a streaming server that is gone are 502', async () => {
    runtime.url = 'http://127.0.0.1:1/exec/token';
    const port = await start(OPEN);
    const seen = await refused(port, upgrade('/exec/demo/web/c?command=ls&output=1'));
    expect(seen).toContain('HTTP/1.1 502 Bad Gateway');
    expect(seen).toContain('error dialing backend');
  });
});

test('the private key is never world-readable on disk', async () => {
  await start(OPEN);
  const key = join(dir, 'pki/kubelet.key');
  expect((await stat(key)).mode & 0o077).toBe(0);
  expect(await readFile(join(dir, 'pki/kubelet.crt'), 'utf8')).toBe(server?.certificate);
});
