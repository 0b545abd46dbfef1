import { describe, expect, test } from 'vitest';
import { createPodApi } from '../../../../agent/api/pod-api.ts';
import { ApiError, UnreachableError } from '../../../../client/errors.ts';
import type { Pod } from '../../../../client/types.ts';

const pod: Pod = {
  metadata: { name: 'hello-pod', namespace: 'demo', uid: 'u-1', resourceVersion: '5' },
  spec: { containers: [{ name: 'web', image: 'nginx:stable' }] },
};

function failure(code: number, reason: string): ApiError {
  return new ApiError({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason }, code, 'a request');
}

/** A client whose writes answer with `write` and whose reads answer with `current`. */
function client(write: unknown, current: Pod | Error): Parameters<typeof createPodApi>[0] & { calls: unknown[][] } {
  const calls: unknown[][] = [];
  const answer = <T>(value: unknown): Promise<T> =>
    value instanceof Error ? Promise.reject(value) : Promise.resolve(value as T);
  return {
    calls,
    get: (path) => {
      calls.push(['get', path]);
      return answer(current);
    },
    patch: (path, body, type) => {
      calls.push(['patch', path, body, type]);
      return answer(write);
    },
    delete: (path, options) => {
      calls.push(['delete', path, options]);
      return answer(write);
    },
  };
}

const other: Pod = { ...pod, metadata: { ...pod.metadata, uid: 'u-2' } };

test('a status is patched at its subresource, with the uid as precondition', async () => {
  const api = client(pod, pod);
  await createPodApi(api).patchStatus(pod, { phase: 'Running' });
  expect(api.calls).toEqual([
    [
      'patch',
      '/api/v1/namespaces/demo/pods/hello-pod/status',
      { metadata: { uid: 'u-1' }, status: { phase: 'Running' } },
      'strategic',
    ],
  ]);
});

test('a pod is finalized with grace 0 and the uid as precondition', async () => {
  const api = client({}, pod);
  expect(await createPodApi(api).finalizeDelete(pod)).toEqual({ kind: 'ok', value: null });
  expect(api.calls).toEqual([
    ['delete', '/api/v1/namespaces/demo/pods/hello-pod', { gracePeriodSeconds: 0, preconditions: { uid: 'u-1' } }],
  ]);
});

describe.each([
  ['a pod that does not exist is gone', failure(404, 'NotFound'), pod, { kind: 'gone' }],
  ['a conflict because the name is another pod now is gone', failure(409, 'Conflict'), other, { kind: 'gone' }],
  [
    'a conflict because the pod vanished meanwhile is gone',
    failure(409, 'Conflict'),
    failure(404, 'NotFound'),
    { kind: 'gone' },
  ],
] as const)('%s', (_sentence, write, current, outcome) => {
  test.each(['patchStatus', 'finalizeDelete'] as const)('%s', async (method) => {
    expect(await createPodApi(client(write, current))[method](pod, {})).toEqual(outcome);
  });
});

test.each([
  ['a conflict on the same pod', failure(409, 'Conflict')],
  ['a refusal', failure(403, 'Forbidden')],
  ['a server that does not answer', new UnreachableError('no answer', 'ECONNREFUSED')],
])('%s is the caller’s to retry', async (_what, error) => {
  await expect(createPodApi(client(error, pod)).patchStatus(pod, {})).rejects.toBe(error);
});

test('a pod that is not there reads as undefined, and any other failure is thrown', async () => {
  expect(await createPodApi(client(pod, failure(404, 'NotFound'))).get('demo', 'hello-pod')).toBeUndefined();
  await expect(createPodApi(client(pod, failure(500, 'InternalError'))).get('demo', 'x')).rejects.toThrow();
});
