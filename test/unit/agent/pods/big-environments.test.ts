// Environments that come from large ConfigMaps: few of them are in memory at once, and each container gets its own whole.

import { expect, test, vi } from 'vitest';
import { ContainerStarter } from '../../../../agent/pods/container-starter.ts';
import type { ContainerId, ContainerRuntime, SandboxId } from '../../../../agent/ports/runtime.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { FakeRecorder, makePod } from '../../../sim/fakes.ts';

type CreateContainer = ContainerRuntime['createContainer'];

function fixture(valueBytes: number) {
  const requested: Parameters<CreateContainer>[0][] = [];
  const answers: PromiseWithResolvers<ContainerId>[] = [];
  const pod = makePod('web-pod');
  const starter = new ContainerStarter({
    runtime: {
      createContainer: (request) => {
        requested.push(request);
        const answer = Promise.withResolvers<ContainerId>();
        answers.push(answer);
        return answer.promise;
      },
      startContainer: async () => undefined,
      removeContainer: async () => undefined,
    },
    volumes: { containerMounts: async () => ({ mounts: [], devices: [], supplementalGroups: [] }) },
    objects: {
      configMap: async (_namespace, name) => ({
        metadata: { name, uid: name, resourceVersion: '1' },
        data: { A: 'x'.repeat(valueBytes), B: name },
      }),
      secret: async () => undefined,
      services: async () => [],
    },
    recorder: new FakeRecorder(),
    images: { ensure: async () => ({ id: 'i', repoTags: [], repoDigests: [], sizeBytes: 1, pinned: false }) },
    node: { name: 'n', hostIPs: () => [], allocatable: () => ({}) },
    masterServiceNamespace: 'default',
    runHook: async () => undefined,
  });
  const start = (name: string) =>
    starter.start({
      pod,
      action: {
        kind: 'startContainer',
        type: 'container',
        container: { name, image: 'i', envFrom: [{ configMapRef: { name } }] },
        hash: 'h',
        restartCount: 0,
        sandbox: {
          id: 's' as SandboxId,
          attempt: 0,
          state: 'ready',
          createdAt: epochMs(0),
          ips: [],
          hostNetwork: false,
          runtimeHandler: '',
        },
      },
      podIPs: [],
      target: undefined,
      signal: new AbortController().signal,
      onAttempt: () => undefined,
    });
  return { requested, answers, start };
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

test('only a few big ones wait for the runtime at once; all of them get there, whole', async () => {
  const { requested, answers, start } = fixture(200_000);
  const started = Promise.all(NAMES.map(start));
  await vi.waitFor(() => expect(requested).toHaveLength(4));
  await new Promise((resolve) => setImmediate(resolve));
  expect(requested).toHaveLength(4);
  for (let index = 0; index < NAMES.length; index++) {
    await vi.waitFor(() => expect(answers.length).toBeGreaterThan(index));
    answers[index]?.resolve(`c${index}` as ContainerId);
  }
  await started;
  expect(requested.map(({ env }) => env.find(({ name }) => name === 'B')?.value).sort()).toEqual(NAMES);
  expect(requested.every(({ env }) => env.find(({ name }) => name === 'A')?.value.length === 200_000)).toBe(true);
});

test('small ones do not wait', async () => {
  const { requested, answers, start } = fixture(10);
  const started = Promise.all(NAMES.map(start));
  await vi.waitFor(() => expect(requested).toHaveLength(NAMES.length));
  for (const [index, answer] of answers.entries()) answer.resolve(`c${index}` as ContainerId);
  await started;
});
