import { describe, expect, test } from 'vitest';
import { createApiObjects, tokenRequest } from '../../../../agent/api/api-objects.ts';
import type { ListOf, WatchEvent } from '../../../../client/api.ts';
import { ApiError } from '../../../../client/errors.ts';
import { ManualClock, pod } from '../volumes/support.ts';

const notFound = () =>
  new ApiError({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }, 404, 'GET');

function fixture(
  overrides: { get?: () => unknown; list?: () => Promise<ListOf<unknown>>; create?: () => unknown } = {},
) {
  const calls: string[] = [];
  const clock = new ManualClock();
  const client = {
    get: async <T>(path: string): Promise<T> => {
      calls.push(`GET ${path}`);
      return (await overrides.get?.()) as T;
    },
    create: async <T>(path: string): Promise<T> => {
      calls.push(`POST ${path}`);
      return (await overrides.create?.()) as T;
    },
    list: async <T>(path: string): Promise<ListOf<T>> => {
      calls.push(`LIST ${path}`);
      return (await overrides.list?.()) as ListOf<T>;
    },
    async *watch<T>(_path: string, _query: unknown, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
  };
  return { calls, clock, objects: createApiObjects({ client, clock }) };
}

const service = (namespace: string, name: string) => ({
  metadata: { namespace, name, uid: `${namespace}-${name}`, resourceVersion: '1', labels: { big: 'x' } },
  spec: { clusterIP: '10.0.0.1', ports: [{ port: 80 }], selector: { a: 'b' } },
});

describe('objects over the API', () => {
  test('that no pod uses are read fresh each time, at once only once', async () => {
    const { calls, objects } = fixture({ get: async () => ({ metadata: { name: 'cm' }, data: { a: '1' } }) });
    await Promise.all([objects.configMap('ns', 'cm'), objects.configMap('ns', 'cm'), objects.secret('ns', 'cm')]);
    await objects.configMap('ns', 'cm');
    expect(calls).toEqual([
      'GET /api/v1/namespaces/ns/configmaps/cm',
      'GET /api/v1/namespaces/ns/secrets/cm',
      'GET /api/v1/namespaces/ns/configmaps/cm',
    ]);
  });

  test('that do not exist are undefined; every other failure is thrown', async () => {
    let failure: Error = notFound();
    const { objects } = fixture({
      get: () => {
        throw failure;
      },
    });
    expect(await objects.secret('ns', 's')).toBeUndefined();
    failure = new Error('forbidden');
    await expect(objects.secret('ns', 's')).rejects.toThrow('forbidden');
  });

  test('services wait for the first list, then come from memory, per namespace and slim', async () => {
    let answer: (list: ListOf<unknown>) => void = () => undefined;
    const { calls, objects } = fixture({ list: () => new Promise((resolve) => (answer = resolve)) });
    const waiting = objects.services('a');
    await Promise.resolve();
    const items = [service('a', 'one'), service('b', 'two')];
    answer({ apiVersion: 'v1', kind: 'ServiceList', metadata: { resourceVersion: '5' }, items });
    const [one, ...others] = await waiting;
    expect(others).toEqual([]);
    expect(one).toMatchObject({ metadata: { name: 'one' }, spec: { clusterIP: '10.0.0.1' } });
    expect(JSON.stringify(one)).not.toContain('selector');
    expect((await objects.services('b')).map(({ metadata }) => metadata.name)).toEqual(['two']);
    expect(calls).toEqual(['LIST /api/v1/services']);
    objects.stop();
  });

  test('services that cannot be read within ten seconds are an error in the kubelet’s words', async () => {
    const { clock, objects } = fixture({ list: () => new Promise(() => undefined) });
    const waiting = objects.services('a');
    await Promise.resolve();
    clock.advance(10_000);
    await expect(waiting).rejects.toThrow('services have not yet been read at least once, cannot construct envvars');
    objects.stop();
  });

  test('a token is asked for the pod’s account, bound to the pod', async () => {
    const { calls, objects } = fixture({
      create: () => ({ status: { token: 't', expirationTimestamp: '2030-01-01T00:00:00Z' } }),
    });
    const subject = pod({ serviceAccountName: 'robot' });
    expect(await objects.serviceAccountToken(subject, { expirationSeconds: 600 })).toEqual({
      token: 't',
      expiresAt: Date.UTC(2030, 0, 1),
    });
    expect(calls).toEqual(['POST /api/v1/namespaces/demo/serviceaccounts/robot/token']);
    expect(tokenRequest(pod({}), { audience: 'vault', expirationSeconds: 600 })).toEqual({
      path: '/api/v1/namespaces/demo/serviceaccounts/default/token',
      body: {
        kind: 'TokenRequest',
        apiVersion: 'authentication.k8s.io/v1',
        spec: {
          audiences: ['vault'],
          expirationSeconds: 600,
          boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'web', uid: 'uid-1' },
        },
      },
    });
  });

  test('an answer without a token is an error', async () => {
    const { objects } = fixture({ create: () => ({}) });
    await expect(objects.serviceAccountToken(pod({}), { expirationSeconds: 600 })).rejects.toThrow('has no token');
  });
});
