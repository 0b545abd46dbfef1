// What an observation of a pod shows, and how few questions to the runtime it takes.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { podUID } from '../../../../../agent/model/pod-uid.ts';
import { containerId } from '../../../../../agent/runtime/convert.ts';
import { type Clock, plusMs, systemClock } from '../../../../../lib/clock.ts';
import { spec as containerSpec, NODE, pod } from '../fixtures.ts';
import { EXITED, POD, type Setup, sendExit, setup } from './watched-runtime.ts';

/** A runtime on directories of its own, and a pod that it knows nothing of. */
async function ownPod() {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-runtime-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const node = {
    ...NODE,
    rootDir: join(directory, 'root'),
    podLogsDir: join(directory, 'pods'),
    containerLogsDir: join(directory, 'containers'),
    resolvConf: '',
  };
  const all = await setup({ cri: false, containerd: true }, { node, addressesOf: () => ['10.0.0.7'] });
  await all.runtime.capabilities();
  const own = pod({}, { name: 'pod-u2', namespace: 'ns', uid: 'u2' });
  return { ...all, ref: { uid: podUID('u2'), namespace: 'ns', name: 'pod-u2' }, spec: containerSpec({ pod: own }) };
}

describe('observation', () => {
  test('asks for nothing that it knows: neither a running container’s start nor a dead one’s end', async () => {
    const { fake, runtime } = await setup({ cri: false, containerd: true });
    fake.addContainer('c0', 'u1', 's1', { ...EXITED, created_at: '1500000000' });
    // The first list is over.
    await runtime.capabilities();
    const first = await runtime.observePod(POD);
    expect(first.sandboxes).toMatchObject([{ id: 's1', state: 'ready', ips: ['10.0.0.9'], createdAt: 1000 }]);
    expect(first.containers).toMatchObject([
      { id: 'c1', state: 'running', startedAt: 3000 },
      { id: 'c0', state: 'exited', exitCode: 3 },
    ]);
    const before = fake.calls.length;
    expect(await runtime.observePod(POD)).toMatchObject({ sandboxes: first.sandboxes, containers: first.containers });
    expect(fake.calls.slice(before)).toEqual([]);
  });

  test('a pod’s start and end take no list: what we do ourselves is known from its answers', async () => {
    const { fake, runtime, ref, spec } = await ownPod();
    const { pod } = spec;
    fake.calls.length = 0;
    expect((await runtime.observePod(ref)).sandboxes).toEqual([]);
    const sandbox = await runtime.runPodSandbox({ pod, attempt: 0, runtimeHandler: '' });
    expect((await runtime.observePod(ref)).sandboxes).toMatchObject([
      { id: sandbox, state: 'ready', ips: ['10.0.0.7'] },
    ]);
    const id = await runtime.createContainer({ ...spec, sandboxId: sandbox });
    await runtime.startContainer(id);
    expect((await runtime.observePod(ref)).containers).toMatchObject([{ id, state: 'running', startedAt: 3000 }]);
    expect(fake.calls).toEqual(['RunPodSandbox', 'CreateContainer', 'StartContainer', 'ContainerStatus']);

    fake.calls.length = 0;
    await runtime.stopContainer(id, 1);
    expect((await runtime.observePod(ref)).containers).toMatchObject([{ id, state: 'exited', exitCode: 143 }]);
    await runtime.stopPodSandbox(sandbox);
    expect((await runtime.observePod(ref)).sandboxes).toMatchObject([{ id: sandbox, state: 'notReady' }]);
    await runtime.removePodSandbox(sandbox);
    expect(await runtime.observePod(ref)).toMatchObject({ sandboxes: [], containers: [] });
    expect(fake.calls).toEqual(['StopContainer', 'ContainerStatus', 'StopPodSandbox', 'RemovePodSandbox']);
  });

  test('a sandbox that a relist shows as not ready while it is being made is ready once it is made', async () => {
    const { fake, runtime, ref, spec } = await ownPod();
    const { promise, resolve } = Promise.withResolvers<void>();
    fake.retained.set('RunPodSandbox', promise);
    const running = runtime.runPodSandbox({ pod: spec.pod, attempt: 0, runtimeHandler: '' });
    await vi.waitUntil(() => fake.sandboxes.has('made-1'));
    const whole = fake.sandboxes.get('made-1');
    fake.sandboxes.set('made-1', { ...whole, state: 'SANDBOX_NOTREADY', status: { network: { ip: '' } } });
    await runtime.listPods();
    expect((await runtime.observePod(ref)).sandboxes).toMatchObject([{ state: 'notReady', ips: [] }]);
    fake.sandboxes.set('made-1', { ...whole });
    resolve();
    expect(await running).toBe('made-1');
    expect((await runtime.observePod(ref)).sandboxes).toMatchObject([{ state: 'ready', ips: ['10.0.0.9'] }]);
  });

  test('limits are read again after they were changed, and nothing else', async () => {
    const { fake, runtime } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    const [known] = (await runtime.observePod(POD)).containers;
    if (known === undefined) throw new Error('no container');
    await runtime.updateContainerResources(known.id, { cpuShares: 512 });
    fake.set('c1', { resources: { linux: { cpu_shares: 512 } } });
    fake.calls.length = 0;
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ resources: { cpuShares: 512 } }]);
    expect(fake.calls).toEqual(['ContainerStatus']);
  });

  test.each<[string, (setup: Setup) => Promise<unknown>]>([
    [
      'an event',
      ({ fake, next }) => {
        sendExit(fake, 'c1');
        return next(() => true);
      },
    ],
    [
      'a relist that differs',
      ({ fake, runtime }) => {
        fake.addSandbox('s2', 'u1');
        return runtime.listPods();
      },
    ],
    [
      'a status that shows it gone',
      ({ fake, runtime }) => {
        fake.containers.delete('c1');
        return runtime.updateContainerResources(containerId('c1'), {});
      },
    ],
    [
      'a call whose outcome is not known',
      ({ fake, runtime }) => {
        fake.failing.set('StopContainer', status.DEADLINE_EXCEEDED);
        return expect(runtime.stopContainer(containerId('c1'), 1)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      },
    ],
    [
      'a broken event stream',
      async ({ fake, runtime }) => {
        for (const stream of fake.streams.containerd.splice(0)) stream.end();
        // The answer to what is called after the end of the stream comes after it.
        await runtime.version();
      },
    ],
  ])('all of a pod is read again after %s', async (_what, happens) => {
    const all = await setup({ cri: false, containerd: true });
    const { fake, runtime } = all;
    await runtime.capabilities();
    await runtime.observePod(POD);
    fake.calls.length = 0;
    expect((await runtime.observePod(POD)).containers).toHaveLength(1);
    expect(fake.calls).toEqual([]);
    await happens(all);
    fake.calls.length = 0;
    const seen = await runtime.observePod(POD);
    expect(fake.calls).toEqual(expect.arrayContaining(['ListContainers', 'ListPodSandbox']));
    expect(seen.sandboxes).toHaveLength(fake.sandboxes.size);
    expect(seen.containers).toHaveLength(fake.containers.size);
  });

  test('a complete read is relied on for three of the longest pauses between relists and no longer', async () => {
    let ahead = 0;
    const clock: Clock = { ...systemClock, monotonic: () => plusMs(systemClock.monotonic(), ahead) };
    const { fake, runtime } = await setup({ cri: false, containerd: true }, { clock, relistPeriodMs: 100_000 });
    await runtime.capabilities();
    await runtime.observePod(POD);
    fake.calls.length = 0;
    ahead = 1_700_000;
    await runtime.observePod(POD);
    expect(fake.calls).toEqual([]);
    ahead = 1_801_000;
    await runtime.observePod(POD);
    expect(fake.calls.sort()).toEqual(['ListContainers', 'ListPodSandbox']);
  });

  test('without an event stream everything is read every time', async () => {
    const { fake, runtime } = await setup({ cri: false, containerd: false });
    await runtime.capabilities();
    await runtime.observePod(POD);
    fake.calls.length = 0;
    await runtime.observePod(POD);
    expect(fake.calls.sort()).toEqual(['ListContainers', 'ListPodSandbox']);
  });

  test('where what is shown came from', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    expect(runtime.provenance('c1')?.groups).toMatchObject({ state: { from: 'list', what: 'ListContainers' } });
    await runtime.observePod(POD);
    expect(runtime.provenance('c1')).toMatchObject({
      kind: 'container',
      state: 'running',
      groups: { identity: { from: 'status' }, state: { from: 'status' }, details: { what: 'ContainerStatus' } },
    });
    sendExit(fake, 'c1');
    await next(() => true);
    expect(runtime.provenance('c1')?.groups).toMatchObject({ exit: { from: 'event', what: 'exited' } });
    fake.set('c1', EXITED);
    await expect.poll(() => runtime.provenance('c1')?.groups['exit']).toMatchObject({ from: 'status' });
    expect(runtime.provenance('nobody')).toBeUndefined();
  });

  test.each([
    ['is not asked for again where its network told its addresses', () => ['10.0.0.7'], [], ['10.0.0.7']],
    ['is read where only the runtime has its addresses', () => undefined, ['PodSandboxStatus'], ['10.0.0.9']],
    ['is asked for where it has no address yet', () => [], ['PodSandboxStatus'], ['10.0.0.9']],
  ])('a sandbox that was just made %s', async (_rule, addressesOf, calls, ips) => {
    const logs = await mkdtemp(join(tmpdir(), 'nodelet-logs-'));
    onTestFinished(() => rm(logs, { recursive: true }));
    const node = { ...NODE, podLogsDir: logs, resolvConf: '' };
    const { fake, runtime } = await setup({ cri: false, containerd: true }, { node, addressesOf });
    await runtime.capabilities();
    const made = pod({}, { name: 'pod-u2', namespace: 'ns', uid: 'u2' });
    const ref = { uid: podUID('u2'), namespace: 'ns', name: 'pod-u2' };
    const id = await runtime.runPodSandbox({ pod: made, attempt: 0, runtimeHandler: '' });
    fake.calls.length = 0;
    const first = await runtime.observePod(ref);
    expect(fake.calls).toEqual(calls);
    expect(first.sandboxes).toMatchObject([{ id, attempt: 0, state: 'ready', ips, hostNetwork: false }]);
    // The next list shows what has become of it.
    fake.sandboxes.set(id, { ...fake.sandboxes.get(id), state: 'SANDBOX_NOTREADY' });
    await runtime.listPods();
    expect((await runtime.observePod(ref)).sandboxes).toMatchObject([{ id, state: 'notReady', ips }]);
  });

  test('reads a SIGKILL’s reason again until it cannot become OOMKilled any more', async () => {
    const { fake, runtime } = await setup({ cri: false, containerd: true });
    const finished_at = String(Date.now() * 1e6);
    fake.set('c1', { state: 'CONTAINER_EXITED', exit_code: 137, reason: 'Error', finished_at });
    expect((await runtime.observePod(POD)).containers[0]?.reason).toBe('Error');
    fake.set('c1', { reason: 'OOMKilled' });
    expect((await runtime.observePod(POD)).containers[0]?.reason).toBe('OOMKilled');
  });

  test('a pod that the runtime does not know is empty, and one that vanishes on the way is left out', async () => {
    const { fake, runtime } = await setup({ cri: false, containerd: true });
    const unknown = { uid: podUID('u9'), namespace: 'ns', name: 'gone' };
    expect(await runtime.observePod(unknown)).toMatchObject({ pod: unknown, sandboxes: [], containers: [] });
    expect((await runtime.listPods()).map(({ pod }) => pod)).toEqual([POD]);
    fake.sandboxes.clear();
    fake.containers.clear();
    expect(await runtime.listPods()).toEqual([]);
  });
});

test('sandbox ids are the runtime’s whole list, also those of another CRI client that have no pod labels', async () => {
  const { fake, runtime } = await setup({ cri: false, containerd: true });
  fake.sandboxes.set('foreign', { id: 'foreign', state: 'SANDBOX_READY', labels: {}, created_at: '1000000000' });
  expect((await runtime.listPods()).flatMap(({ sandboxes }) => sandboxes.map(({ id }) => id))).toEqual(['s1']);
  expect(await runtime.listSandboxIds()).toEqual(['s1', 'foreign']);
});

test('a pull names the pod as its sandbox does: attempt, annotations, and what the kubelet notes on the pod', async () => {
  const { fake, runtime, spec } = await ownPod();
  const annotations = { 'example.com/a': 'b' };
  const annotated = { ...spec.pod, metadata: { ...spec.pod.metadata, annotations } };
  await runtime.runPodSandbox({ pod: annotated, attempt: 2, runtimeHandler: '' });
  await runtime.pullImage('busybox:stable', undefined, annotated);
  const { config } = fake.requests.get('RunPodSandbox') ?? {};
  const { image, sandbox_config } = fake.requests.get('PullImage') ?? {};
  expect(sandbox_config).toEqual(config);
  expect(config).toMatchObject({ metadata: { attempt: 2 }, annotations });
  expect(image).toMatchObject({ image: 'busybox:stable', annotations: Object(config).annotations });
  expect(Object.keys(Object(config).annotations).sort()).toEqual([
    'example.com/a',
    'kubernetes.io/config.seen',
    'kubernetes.io/config.source',
  ]);
});
