// Image volumes of a container: pulled as its own image is, and handed to the runtime by id.

import { describe, expect, test } from 'vitest';
import { ContainerStarter, StartError } from '../../../../agent/pods/container-starter.ts';
import { ImageError } from '../../../../agent/pods/image-manager.ts';
import type {
  ContainerId,
  ContainerMount,
  ContainerSpec,
  RuntimeImage,
  SandboxId,
  SandboxSnapshot,
} from '../../../../agent/ports/runtime.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { FakeObjects, FakeRecorder, makePod } from '../../../sim/fakes.ts';

const SANDBOX: SandboxSnapshot = {
  id: 's' as SandboxId,
  attempt: 0,
  state: 'ready',
  createdAt: epochMs(0),
  ips: [],
  hostNetwork: false,
  runtimeHandler: '',
};

const mount = (containerPath: string, more: Partial<ContainerMount> = {}): ContainerMount => ({
  hostPath: '/v',
  containerPath,
  readOnly: true,
  propagation: 'private',
  ...more,
});
const asImage = (reference: string, pullPolicy?: string): ContainerMount =>
  mount(`/${reference}`, { hostPath: '', image: { reference, pullPolicy, subPath: '' } });

function starter(mounts: readonly ContainerMount[], missing?: string) {
  const requested: (string | undefined)[][] = [];
  const created: ContainerSpec[] = [];
  const start = new ContainerStarter({
    runtime: {
      createContainer: async (spec) => {
        created.push(spec);
        return 'id' as ContainerId;
      },
      startContainer: async () => undefined,
      removeContainer: async () => undefined,
    },
    volumes: { containerMounts: async () => ({ mounts, devices: [] }) },
    objects: new FakeObjects(),
    recorder: new FakeRecorder(),
    images: {
      ensure: async (_pod, container): Promise<RuntimeImage> => {
        requested.push([container.image, container.imagePullPolicy]);
        if (container.image === missing) throw new ImageError('ErrImagePull', 'not found', epochMs(77));
        return { id: `sha256:${container.image}`, repoTags: [], repoDigests: [], sizeBytes: 1, pinned: false };
      },
    },
    node: { name: 'n', hostIPs: () => ['10.0.0.1'], allocatable: () => ({}) },
    masterServiceNamespace: 'default',
    runHook: async () => undefined,
  });
  const pod = makePod('web', { containers: [{ name: 'main', image: 'app:1' }] });
  const [container] = pod.spec.containers;
  if (container === undefined) throw new Error('no container');
  const action = {
    kind: 'startContainer' as const,
    type: 'container' as const,
    container,
    sandbox: SANDBOX,
    restartCount: 0,
    hash: 'h',
  };
  return { start, pod, action, requested, created };
}

describe('a container with image volumes', () => {
  test('has each image pulled by its own policy, and mounts it by id', async () => {
    const { start, requested, created } = await run([asImage('data:1', 'Always'), mount('/plain'), asImage('other:2')]);
    expect(start).toBe('id');
    expect(requested).toEqual([
      ['app:1', undefined],
      ['data:1', 'Always'],
      ['other:2', undefined],
    ]);
    expect(created[0]?.mounts.map(({ image }) => image?.id)).toEqual(['sha256:data:1', undefined, 'sha256:other:2']);
  });

  test('waits with the pull’s own reason while one cannot be pulled, and is not created', async () => {
    const { start, created } = await run([asImage('data:1')], 'data:1');
    expect(start).toBeInstanceOf(StartError);
    expect(start).toMatchObject({ waiting: { reason: 'ErrImagePull', message: 'not found' }, retryAt: 77 });
    expect(created).toEqual([]);
  });
});

async function run(mounts: readonly ContainerMount[], missing?: string) {
  const { start, pod, action, requested, created } = starter(mounts, missing);
  const result = await start
    .start({
      pod,
      action,
      podIPs: [],
      target: undefined,
      signal: new AbortController().signal,
      onAttempt: () => undefined,
    })
    .catch((error: unknown) => error);
  return { start: result, requested, created };
}
