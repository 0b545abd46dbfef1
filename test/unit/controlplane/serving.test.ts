// The HTTPS server of the scheduler and the controllers: health for everybody, metrics for those whom the API server lets get them.

import { createServer, type RequestOptions, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKeyPair, issueCertificate } from '../../../apiserver/pki/keys.ts';
import { serve } from '../../../controlplane/serving.ts';
import { epochMs, systemClock } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import { selfSigned } from '../../../lib/self-signed.ts';

const stop = new AbortController();
const logs: string[] = [];
const reviewed: unknown[] = [];
let synced = false;
let port = 0;
let prometheus: { readonly cert: string; readonly key: string };

/** Knows one token, and lets those of the group "monitors" get metrics. */
const client = (ca: string) => ({
  get: <T>(path: string): Promise<T> => {
    expect(path).toBe('/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication');
    return Promise.resolve({ data: { 'client-ca-file': ca } } as T);
  },
  create: <T>(path: string, body: unknown): Promise<T> => {
    const { spec } = body as { spec: { token?: string; groups?: readonly string[] } };
    if (path.endsWith('/tokenreviews')) {
      const user = { username: 'system:serviceaccount:monitoring:prometheus', groups: ['monitors'] };
      return Promise.resolve({ status: spec.token === 'good' ? { authenticated: true, user } : {} } as T);
    }
    reviewed.push(spec);
    return Promise.resolve({ status: { allowed: spec.groups?.includes('monitors') === true } } as T);
  },
});

beforeAll(async () => {
  const now = systemClock.now();
  const life = { notBefore: epochMs(now - 60_000), notAfter: epochMs(now + 3_600_000) };
  const ca = generateKeyPair();
  const caCert = await issueCertificate({ commonName: 'ca', usage: 'ca', ...life }, ca);
  const pair = generateKeyPair();
  const named = { commonName: 'prometheus', organization: 'monitors', usage: 'client' as const, ...life };
  const cert = await issueCertificate(named, pair, { cert: caCert, key: ca.privateKey });
  prometheus = { cert, key: pair.privateKey };
  const check = (): void => {
    if (!synced) throw new Error('not all caches are filled');
  };
  port = await serve({
    ...{ address: '127.0.0.1', port: 0, certificate: await selfSigned(['127.0.0.1'], now) },
    part: {
      checks: [
        { name: 'ping', check: () => undefined },
        { name: 'informer-sync', readinessOnly: true, check },
      ],
      metrics: () => Promise.resolve('scheduler_pending_pods 0\n'),
    },
    ...{ client: client(caCert), clock: systemClock, log: (line: string) => void logs.push(line), signal: stop.signal },
  });
});

afterAll(() => stop.abort());

function get(path: string, more: RequestOptions = {}): Promise<{ readonly code: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false, ...more };
    request(options, (response) => {
      text(response).then((body) => resolve({ code: response.statusCode ?? 0, body }), reject);
    })
      .on('error', reject)
      .end();
  });
}
const bearer = (token: string): RequestOptions => ({ headers: { authorization: `Bearer ${token}` } });

describe('health', () => {
  it('is for everybody, and not ready before the caches are filled', async () => {
    expect(await get('/healthz')).toEqual({ code: 200, body: 'ok' });
    expect(await get('/livez?verbose')).toEqual({ code: 200, body: '[+]ping ok\nlivez check passed\n' });
    const early = '[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n';
    expect(await get('/readyz')).toEqual({ code: 500, body: early });
    expect(logs).toEqual(['health check failed: informer-sync: not all caches are filled']);
    synced = true;
    expect(await get('/readyz')).toEqual({ code: 200, body: 'ok' });
    expect(await get('/healthz/nonsense')).toMatchObject({ code: 404 });
  });
});

describe('metrics', () => {
  it('are refused to callers without a name', async () => {
    const { code, body } = await get('/metrics');
    expect([code, JSON.parse(body)]).toEqual([
      403,
      expect.objectContaining({
        kind: 'Status',
        reason: 'Forbidden',
        message: 'forbidden: User "system:anonymous" cannot get path "/metrics"',
      }),
    ]);
    expect(await get('/metrics', bearer('bad'))).toMatchObject({ code: 401 });
  });

  it('are a token’s that the API server knows', async () => {
    expect(await get('/metrics', bearer('good'))).toEqual({ code: 200, body: 'scheduler_pending_pods 0\n' });
    expect(reviewed.at(-1)).toEqual({
      user: 'system:serviceaccount:monitoring:prometheus',
      groups: ['monitors', 'system:authenticated'],
      nonResourceAttributes: { path: '/metrics', verb: 'get' },
    });
    const slis = await get('/metrics/slis', bearer('good'));
    expect(slis.body).toMatch(
      /^kubernetes_healthchecks_total\{name="informer-sync",status="error",type="readyz"\} 1$/m,
    );
    expect(await get('/metrics/slis')).toMatchObject({ code: 403 });
    expect(await get('/nothing', bearer('good'))).toMatchObject({ code: 404 });
  });

  it('are a client certificate’s of the cluster’s CA, and of no other', async () => {
    expect(await get('/metrics', prometheus)).toMatchObject({ code: 200 });
    const other = await selfSigned(['prometheus'], systemClock.now());
    expect(await get('/metrics', other)).toMatchObject({ code: 403 });
  });
});

it('a port that is taken is refused in one line', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const taken = (other.address() as AddressInfo).port;
  const certificate = await selfSigned(['127.0.0.1'], systemClock.now());
  const part = { checks: [], metrics: () => Promise.resolve('') };
  const rest = { client: client(''), clock: systemClock, log: () => undefined, signal: stop.signal };
  const second = serve({ address: '127.0.0.1', port: taken, certificate, part, ...rest });
  await expect(second).rejects.toThrow(UserError);
  await expect(second).rejects.toThrow(`127.0.0.1:${taken} cannot be listened on`);
  other.close();
});
