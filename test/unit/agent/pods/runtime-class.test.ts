// A pod's RuntimeClass: which handler of the runtime its sandbox is made with.

import { afterEach, expect, it } from 'vitest';
import { runtimeHandlerOf } from '../../../../agent/api/runtime-class.ts';
import type { PodsAgentOptions } from '../../../../agent/pods/options.ts';
import { ApiError } from '../../../../client/errors.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

let node: FakeNode;
afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

const handlers = new Map([['sandboxed', 'kata']]);
const runtimeHandler: NonNullable<PodsAgentOptions['runtimeHandler']> = (name) => {
  const handler = handlers.get(name);
  if (handler === undefined) return Promise.reject(new Error(`runtimeclass.node.k8s.io "${name}" not found`));
  return Promise.resolve(handler);
};
const handlersUsed = (): unknown[] => [...node.runtime.sandboxes.values()].map((sandbox) => sandbox.runtimeHandler);

it('names the handler; a pod without one has the runtime’s default', async () => {
  node = new FakeNode({ runtimeHandler });
  node.api.put(makePod('plain'));
  node.api.put(makePod('kata', { runtimeClassName: 'sandboxed' }));
  await node.clock.until(
    () => node.api.status('kata').phase === 'Running' && node.api.status('plain').phase === 'Running',
  );
  expect(handlersUsed().sort()).toEqual(['', 'kata']);
});

it('that does not exist keeps the pod from starting, says so, and is looked for again', async () => {
  node = new FakeNode({ runtimeHandler });
  node.api.put(makePod('web-pod', { runtimeClassName: 'later' }));
  await node.clock.advance(3_000);
  expect(node.recorder.of('FailedCreatePodSandBox')[0]).toBe(
    'Failed to create pod sandbox: runtimeclass.node.k8s.io "later" not found',
  );
  expect(node.runtime.sandboxes.size).toBe(0);
  handlers.set('later', 'runc');
  await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 30_000);
  handlers.delete('later');
});

it('is none that can be looked up where there is no API server', async () => {
  node = new FakeNode();
  node.api.put(makePod('web-pod', { runtimeClassName: 'sandboxed' }));
  await node.clock.advance(1_000);
  expect(node.recorder.of('FailedCreatePodSandBox')[0]).toContain('runtimeclass.node.k8s.io "sandboxed" not found');
});

it('is asked of the API server by its name', async () => {
  node = new FakeNode();
  const paths: string[] = [];
  const client = (answer: () => unknown) => ({
    get<T>(path: string): Promise<T> {
      paths.push(path);
      return Promise.resolve().then(() => answer() as T);
    },
  });
  expect(
    await runtimeHandlerOf(
      client(() => ({ handler: 'kata' })),
      'a/b',
    ),
  ).toBe('kata');
  expect(paths).toEqual(['/apis/node.k8s.io/v1/runtimeclasses/a%2Fb']);
  const away = client(() => {
    throw new Error('connection refused');
  });
  await expect(runtimeHandlerOf(away, 'x')).rejects.toThrow('failed to lookup RuntimeClass x: connection refused');
  const gone = client(() => {
    throw new ApiError({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound' }, 404, 'GET');
  });
  await expect(runtimeHandlerOf(gone, 'x')).rejects.toThrow('runtimeclass.node.k8s.io "x" not found');
});
