// The kubelet API itself: who may call, with what certificate it serves, and what of it is plain reading.

import { X509Certificate } from 'node:crypto';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createKubeletServer } from '../../../../agent/server/kubelet-server.ts';
import { loadServingCertificate, renewalReason } from '../../../../agent/server/serving-certificate.ts';
import { generateKeyPair, issueCertificate } from '../../../../apiserver/pki/keys.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { UserError } from '../../../../lib/errors.ts';
import { InvariantViolation, invariant } from '../../../../lib/invariant.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { OPEN, ServerStand } from './stand.ts';
import { agentOptions, ask, PAGES } from './support.ts';

let stand: ServerStand;
beforeEach(async () => {
  stand = await ServerStand.make();
});
afterEach(() => stand.close());

describe('who may call', () => {
  test('no caller without credentials, not even for health', async () => {
    const port = await stand.start();
    const { status, body, headers } = await ask(port, '/healthz');
    expect([status, body]).toEqual([401, 'Unauthorized']);
    expect(headers['www-authenticate']).toContain('Bearer');
    expect(stand.reviews).toEqual([]);
  });

  test('a client certificate of our CA is its CN and O, and is authorized by SubjectAccessReview', async () => {
    const { caFile, cert, key } = await stand.credentials('kube-apiserver-kubelet-client', 'system:masters');
    stand.answer = () => ({ status: { allowed: true } });
    const port = await stand.start({ authentication: { x509: { clientCAFile: caFile } } });
    expect(await ask(port, '/healthz', { cert, key })).toMatchObject({ status: 200, body: 'ok' });
    expect(stand.reviews).toEqual([
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
    expect(stand.reviews).toHaveLength(1);
    stand.clock.advance(300_000);
    await ask(port, '/healthz', { cert, key });
    expect(stand.reviews).toHaveLength(2);
  });

  test('a client certificate that ends while its connection is open is invalid from then on', async () => {
    const { caFile, cert, key } = await stand.credentials('kube-apiserver-kubelet-client', 'system:masters');
    stand.answer = () => ({ status: { allowed: true } });
    const port = await stand.start({ authentication: { x509: { clientCAFile: caFile } } });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const call = async (): Promise<number> => (await ask(port, '/healthz', { cert, key, agent })).status;
    expect(await call()).toBe(200);
    stand.clock.advance(Date.parse(new X509Certificate(cert).validTo) - stand.clock.now() + 1000);
    expect(await call()).toBe(401);
    agent.destroy();
  });

  test('a certificate of another CA is not authenticated', async () => {
    const ours = await stand.credentials('ours', 'system:masters');
    const theirs = await stand.credentials('theirs', 'system:masters');
    const port = await stand.start({ ...OPEN, authentication: { x509: { clientCAFile: ours.caFile } } });
    const { cert, key } = theirs;
    expect((await ask(port, '/healthz', { cert, key })).status).toBe(401);
    expect((await ask(port, '/healthz', { cert: ours.cert, key: ours.key })).status).toBe(200);
  });

  test('a bearer token is asked about once, and the answer kept for two minutes', async () => {
    stand.answer = (path) =>
      path.endsWith('tokenreviews')
        ? { status: { authenticated: true, user: { username: 'bob', uid: '7', groups: ['dev'] } } }
        : { status: { allowed: true } };
    const port = await stand.start();
    const headers = { authorization: 'Bearer secret' };
    expect((await ask(port, '/pods', { headers })).status).toBe(200);
    expect((await ask(port, '/pods', { headers })).status).toBe(200);
    expect(stand.reviews.map(({ path }) => path.split('/').at(-1))).toEqual(['tokenreviews', 'subjectaccessreviews']);
    expect(stand.reviews[0]?.body).toMatchObject({ kind: 'TokenReview', spec: { token: 'secret' } });
    expect(stand.reviews[1]?.body).toMatchObject({
      spec: { user: 'bob', uid: '7', groups: ['dev', 'system:authenticated'] },
    });
    stand.clock.advance(120_000);
    await ask(port, '/pods', { headers });
    expect(stand.reviews.filter(({ path }) => path.endsWith('tokenreviews'))).toHaveLength(2);
  });

  test('a token that the API server rejects, or cannot review, is not authenticated', async () => {
    stand.answer = () => ({ status: { authenticated: false } });
    const port = await stand.start();
    expect((await ask(port, '/pods', { headers: { authorization: 'Bearer bad' } })).status).toBe(401);
    stand.answer = () => {
      throw new Error('connection refused');
    };
    expect((await ask(port, '/pods', { headers: { authorization: 'Bearer other' } })).status).toBe(401);
  });

  test('a denied caller gets user and attributes, after the finer permission and nodes/proxy were both tried', async () => {
    stand.answer = () => ({ status: { allowed: false } });
    const port = await stand.start({ authentication: { anonymous: { enabled: true } } });
    const { status, body } = await ask(port, '/pods');
    expect(status).toBe(403);
    expect(body).toBe('Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[pods proxy])');
    expect(stand.reviews).toHaveLength(2);
  });

  test('an authorization that cannot be had is an error, not a yes', async () => {
    stand.answer = () => {
      throw new Error('connection refused');
    };
    const port = await stand.start({ authentication: { anonymous: { enabled: true } } });
    const { status, body } = await ask(port, '/pods');
    expect(status).toBe(500);
    expect(body).toContain('Authorization error (user=system:anonymous');
  });

  test('Webhook without an API server is refused before anything listens', () => {
    const options = {
      options: agentOptions(stand.dir),
      pods: stand.pods,
      runtime: stand.runtime,
      logs: stand.logs,
      ...PAGES,
      tracer: new Tracer(),
      clock: stand.clock,
    };
    expect(() => createKubeletServer(options)).toThrow(UserError);
  });
});

describe('the port and the certificate', () => {
  test('a taken port is one clear line', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const base = agentOptions(stand.dir, OPEN);
    const taken = createKubeletServer({
      options: { ...base, config: { ...base.config, port } },
      pods: stand.pods,
      runtime: stand.runtime,
      logs: stand.logs,
      ...PAGES,
      tracer: new Tracer(),
      clock: stand.clock,
    });
    await expect(taken.listen()).rejects.toThrow(UserError);
    await expect(taken.listen()).rejects.toThrow(`127.0.0.1 port ${port} is taken`);
    await new Promise((resolve) => other.close(resolve));
  });

  test('a self-signed certificate is made once, names the node and is private', async () => {
    const certDir = join(stand.dir, 'pki');
    const names = {
      tlsCertFile: '',
      tlsPrivateKeyFile: '',
      certDir,
      nodeName: 'node-1',
      nodeIPs: ['10.1.2.3', 'fd00::1'],
    };
    const now = epochMs(Date.now());
    const made = await loadServingCertificate({ ...names, now });
    const certificate = new X509Certificate(made.cert);
    expect(certificate.checkHost('node-1')).toBe('node-1');
    expect(certificate.checkIP('10.1.2.3')).toBe('10.1.2.3');
    expect(certificate.checkIP('fd00::1')).toBe('fd00::1');
    expect((await stat(join(certDir, 'kubelet.key'))).mode & 0o777).toBe(0o600);
    await chmod(join(certDir, 'kubelet.key'), 0o644);
    expect(await loadServingCertificate({ ...names, now })).toEqual(made);
    expect((await stat(join(certDir, 'kubelet.key'))).mode & 0o077).toBe(0);
    const day = 24 * 3_600_000;
    expect(await loadServingCertificate({ ...names, now: plusMs(now, 330 * day) })).toEqual(made);
    expect(await loadServingCertificate({ ...names, now: plusMs(now, 340 * day) })).not.toEqual(made);
    const renamed = await loadServingCertificate({ ...names, nodeName: 'node-2', now });
    expect(new X509Certificate(renamed.cert).checkHost('node-2')).toBe('node-2');
    await writeFile(join(certDir, 'kubelet.key'), 'garbage');
    expect((await loadServingCertificate({ ...names, now })).key).toContain('PRIVATE KEY');
    expect(renewalReason(made, ['node-1'], now)).toBeUndefined();
    expect(renewalReason({ ...made, key: generateKeyPair().privateKey }, ['node-1'], now)).toContain('key');
  });

  test('configured files are used, and refused when they do not fit', async () => {
    const life = { notBefore: epochMs(Date.now() - 60_000), notAfter: epochMs(Date.now() + 3_600_000) };
    const pair = generateKeyPair();
    const cert = await issueCertificate({ commonName: 'mine', usage: 'server', hosts: ['mine'], ...life }, pair);
    const [tlsCertFile, tlsPrivateKeyFile] = [join(stand.dir, 's.crt'), join(stand.dir, 's.key')];
    await writeFile(tlsCertFile, cert);
    await writeFile(tlsPrivateKeyFile, pair.privateKey);
    const port = await stand.start({ ...OPEN, tlsCertFile, tlsPrivateKeyFile, tlsMinVersion: 'VersionTLS13' });
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    expect(socket.getPeerCertificate().subject.CN).toBe('mine');
    expect(socket.getProtocol()).toBe('TLSv1.3');
    socket.destroy();
    await writeFile(tlsPrivateKeyFile, generateKeyPair().privateKey);
    await stand.server?.close();
    await expect(stand.start({ ...OPEN, tlsCertFile, tlsPrivateKeyFile })).rejects.toThrow('is not the key of');
    await expect(stand.start({ ...OPEN, tlsCertFile: '/none', tlsPrivateKeyFile })).rejects.toThrow(
      'tlsCertFile: /none cannot be read',
    );
    await expect(stand.start({ ...OPEN, authentication: { x509: { clientCAFile: '/none' } } })).rejects.toThrow(
      'clientCAFile',
    );
  });
});

describe('what is served', () => {
  test('health, pods with their status, the configuration', async () => {
    const port = await stand.start(OPEN, { syncLoopHealth: () => undefined });
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
    let problem: string | undefined = 'sync Loop took longer than expected: syncPod a/b for 9m0s';
    const port = await stand.start(OPEN, { syncLoopHealth: () => problem });
    expect(await ask(port, '/healthz/syncloop')).toMatchObject({
      status: 500,
      body: 'internal server error: sync Loop took longer than expected: syncPod a/b for 9m0s\n',
    });
    expect(await ask(port, '/healthz')).toMatchObject({
      status: 500,
      body: '[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
    });
    expect(await ask(port, '/healthz/ping')).toMatchObject({ status: 200, body: 'ok' });
    problem = undefined;
    expect(await ask(port, '/healthz')).toMatchObject({ status: 200, body: 'ok' });
    const slis = (await ask(port, '/metrics/slis')).body;
    expect(slis).toContain('kubernetes_healthcheck{name="syncloop",type="healthz"} 1\n');
    expect(slis).toMatch(/^kubernetes_healthchecks_total\{name="syncloop",status="error",type="healthz"\} [1-9]$/m);
  });

  test('an invariant that was violated is counted in /healthz?verbose, and fails nothing', async () => {
    // In tests it throws as well.
    expect(() => invariant(false, 'a "test" holds', () => ({}))).toThrow(InvariantViolation);
    const port = await stand.start(OPEN, { syncLoopHealth: () => undefined });
    expect(await ask(port, '/healthz')).toMatchObject({ status: 200, body: 'ok' });
    // The count is the process's: other tests in it violate invariants as well. health.test.ts has the exact texts.
    const verbose = await ask(port, '/healthz?verbose');
    expect(verbose.status).toBe(200);
    expect(verbose.body).toMatch(
      /\n\[i\]invariants: violated \d+ times since .*"a "test" holds" 1\nhealthz check passed\n$/,
    );
  });

  test.each([
    ['/metrics', 'agent'],
    ['/metrics/', 'agent'],
    ['/metrics/probes', 'probes'],
    ['/metrics/resource', 'resource'],
    ['/metrics/cadvisor', 'cadvisor'],
  ])('%s is a page of Prometheus’ text', async (path, body) => {
    const port = await stand.start(OPEN);
    const answer = await ask(port, path);
    expect(answer).toMatchObject({ status: 200, body });
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  test.each([
    ['/stats/summary', 'whole'],
    ['/stats/summary?only_cpu_and_memory=true', 'short'],
    ['/stats/summary?only_cpu_and_memory=1', 'whole'],
  ])('%s is JSON', async (path, summary) => {
    const port = await stand.start(OPEN);
    expect(await ask(port, path)).toMatchObject({ status: 200, body: `${JSON.stringify({ summary })}\n` });
  });

  test('nothing of pods’ insides with enableDebuggingHandlers off', async () => {
    const port = await stand.start({ ...OPEN, enableDebuggingHandlers: false });
    expect(await ask(port, '/containerLogs/demo/web/c')).toMatchObject({
      status: 405,
      body: 'Debug endpoints are disabled.',
    });
    expect((await ask(port, '/healthz')).status).toBe(200);
  });
});

test('the private key is never world-readable on disk', async () => {
  await stand.start(OPEN);
  const key = join(stand.dir, 'pki/kubelet.key');
  expect((await stat(key)).mode & 0o077).toBe(0);
  expect(await readFile(join(stand.dir, 'pki/kubelet.crt'), 'utf8')).toBe(stand.server?.certificate);
});
