import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { podUID } from '../../../../../agent/model/pod-uid.ts';
import type { PodLifecycleEvent } from '../../../../../agent/ports/runtime.ts';
import { containerId, sandboxId } from '../../../../../agent/runtime/convert.ts';
import { createCriRuntime } from '../../../../../agent/runtime/cri-runtime.ts';
import type { CriRuntimeOptions } from '../../../../../agent/runtime/options.ts';
import type { CriRuntime } from '../../../../../agent/runtime/types.ts';
import { type Clock, plusMs, systemClock } from '../../../../../lib/clock.ts';
import { Tracer } from '../../../../../lib/trace.ts';
import { loadProto } from '../../../../../proto/load.ts';
import { FakeCri } from '../fake-cri.ts';
import { spec as containerSpec, NODE, pod } from '../fixtures.ts';

const types = loadProto('containerd-tasks').containerd.events;
const POD = { uid: podUID('u1'), namespace: 'ns', name: 'pod-u1' };
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

interface Setup {
  readonly fake: FakeCri;
  readonly runtime: CriRuntime;
  readonly events: PodLifecycleEvent[];
  /** Resolves with the first event, past or to come, that `matches`. */
  next(matches: (event: PodLifecycleEvent) => boolean): Promise<PodLifecycleEvent>;
}

/** A runtime with one pod of one running container, watched. */
async function setup(
  serves: { cri: boolean; containerd: boolean },
  options: Partial<CriRuntimeOptions> = {},
): Promise<Setup> {
  const fake = await FakeCri.start(serves);
  fake.addSandbox('s1', 'u1');
  fake.addContainer('c1', 'u1', 's1');
  const runtime = createCriRuntime({
    endpoint: `unix://${fake.socket}`,
    tracer: new Tracer(),
    clock: systemClock,
    node: NODE,
    ...options,
  });
  cleanups.push(async () => {
    runtime.close();
    await fake.stop();
  });
  const events: PodLifecycleEvent[] = [];
  const waiters = new Set<(event: PodLifecycleEvent) => void>();
  runtime.watch((event) => {
    events.push(event);
    for (const waiter of waiters) waiter(event);
  });
  const next = (matches: (event: PodLifecycleEvent) => boolean): Promise<PodLifecycleEvent> => {
    const past = events.find(matches);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => {
      const waiter = (event: PodLifecycleEvent): void => {
        if (!matches(event)) return;
        waiters.delete(waiter);
        resolve(event);
      };
      waiters.add(waiter);
    });
  };
  return { fake, runtime, events, next };
}

function sendExit(fake: FakeCri, id: string, exit_status = 3): void {
  const exited_at = { seconds: 100, nanos: 0 };
  const value = types.TaskExit.serialize({ container_id: id, id, exit_status, exited_at });
  for (const stream of fake.streams.containerd) {
    stream.write({
      namespace: 'k8s.io',
      topic: '/tasks/exit',
      timestamp: { seconds: 100, nanos: 0 },
      event: { type_url: 'containerd.events.TaskExit', value },
    });
  }
}

const EXITED = { state: 'CONTAINER_EXITED', exit_code: 3, finished_at: '100000000000' } as const;

describe('the source of events', () => {
  test.each([
    ['CRI’s stream where it is served', { cri: true, containerd: true }, 'cri'],
    ['containerd’s own where CRI has none', { cri: false, containerd: true }, 'containerd'],
    ['a list every second where there is neither', { cri: false, containerd: false }, 'poll'],
  ] as const)('is %s', async (_rule, serves, expected) => {
    const { runtime } = await setup(serves);
    expect(await runtime.capabilities()).toEqual({ events: expected, cgroupDriver: undefined });
  });

  test.each([
    [{ cri: false, containerd: true }, 'containerd'],
    [{ cri: false, containerd: false }, 'poll'],
  ] as const)(
    'is as well what a machine finds that is too slow to hear a refusal in time: %j',
    async (serves, expected) => {
      const inNoTime: Clock = {
        ...systemClock,
        sleep: (ms, signal) => (ms < 1000 ? Promise.resolve() : systemClock.sleep(ms, signal)),
      };
      const { runtime } = await setup(serves, { clock: inNoTime });
      expect(await runtime.capabilities()).toMatchObject({ events: expected });
    },
  );

  test('is none while there is no runtime', async () => {
    const { fake } = await setup({ cri: false, containerd: true });
    await fake.crash();
    const runtime = createCriRuntime({
      endpoint: `unix://${fake.socket}`,
      tracer: new Tracer(),
      clock: systemClock,
      node: NODE,
    });
    cleanups.push(async () => runtime.close());
    expect(await runtime.capabilities()).toBeUndefined();
    await expect(runtime.version()).rejects.toMatchObject({ name: 'RuntimeError', code: 'UNAVAILABLE' });
  });
});

describe('containerd’s event stream', () => {
  test('an exit is told at once, and an observation shows it although the runtime does not yet', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    await runtime.observePod(POD);
    const before = fake.calls.length;
    sendExit(fake, 'c1', 3);
    expect(await next(() => true)).toEqual({ podUID: 'u1', type: 'containerDied', containerId: 'c1', at: 100_000 });
    expect(fake.containers.get('c1')?.state).toBe('CONTAINER_RUNNING');
    const [container] = (await runtime.observePod(POD)).containers;
    expect(container).toMatchObject({
      state: 'exited',
      exitCode: 3,
      reason: 'Error',
      startedAt: 3000,
      finishedAt: 100_000,
      sandboxId: 's1',
    });
    const calls = fake.calls.slice(before).filter((call) => call.startsWith('List'));
    expect(calls.sort()).toEqual(['ListContainers', 'ListPodSandbox']);
  });

  test('when the runtime then says more of the end, the pod is woken again', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    await runtime.observePod(POD);
    sendExit(fake, 'c1', 3);
    await next(({ type }) => type === 'containerDied');
    fake.set('c1', { ...EXITED, reason: 'OOMKilled' });
    await next(({ type }) => type === 'podSync');
    expect((await runtime.observePod(POD)).containers[0]).toMatchObject({ reason: 'OOMKilled' });
    expect(events.map(({ type }) => type)).toEqual(['containerDied', 'podSync']);
  });

  test('a stop of what has died by itself waits for the runtime to be done with it, and asks for nothing', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    const [container] = (await runtime.observePod(POD)).containers;
    if (container === undefined) throw new Error('no container');
    sendExit(fake, 'c1', 0);
    await next(({ type }) => type === 'containerDied');
    let stopped = false;
    const stopping = runtime.stopContainer(container.id, 30).then(() => {
      stopped = true;
    });
    const seen = fake.calls.length;
    while (fake.calls.length < seen + 2) await systemClock.sleep(1);
    expect(stopped).toBe(false);
    fake.set('c1', { ...EXITED, exit_code: 0 });
    await stopping;
    expect(fake.calls).not.toContain('StopContainer');
  });

  test('an exit whose message is the end of the log is told only once the runtime shows it', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true });
    const annotations = { 'io.kubernetes.container.terminationMessagePolicy': 'FallbackToLogsOnError' };
    fake.set('c1', { annotations, log_path: '/nonexistent/0.log' });
    await runtime.capabilities();
    await runtime.observePod(POD);
    const seen = fake.calls.length;
    sendExit(fake, 'c1', 3);
    while (fake.calls.length < seen + 3) await systemClock.sleep(1);
    expect(events).toEqual([]);
    fake.set('c1', EXITED);
    await next(({ type }) => type === 'containerDied');
    expect((await runtime.observePod(POD)).containers[0]).toMatchObject({ state: 'exited', exitCode: 3 });
  });

  test('an exit that comes before the runtime has written down the start is told once that is read', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true });
    fake.set('c1', { state: 'CONTAINER_CREATED' });
    await runtime.capabilities();
    const seen = fake.calls.length;
    sendExit(fake, 'c1', 0);
    while (fake.calls.length < seen + 3) await systemClock.sleep(1);
    expect(events).toEqual([]);
    fake.set('c1', { state: 'CONTAINER_RUNNING' });
    // The look of the worker that started it.
    await runtime.observePod(POD);
    await next(({ type }) => type === 'containerDied');
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ state: 'exited', exitCode: 0 }]);
  });

  test('an answer that is older than the end of the container does not bring it back', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    const { promise, resolve } = Promise.withResolvers<void>();
    fake.held.set('ContainerStatus', promise);
    const seen = fake.calls.length;
    const late = runtime.observePod(POD);
    while (!fake.calls.slice(seen).includes('ContainerStatus')) await systemClock.sleep(1);
    fake.held.clear();
    fake.set('c1', EXITED);
    sendExit(fake, 'c1', 3);
    await next(({ type }) => type === 'containerDied');
    resolve();
    expect((await late).containers).toMatchObject([{ state: 'exited', exitCode: 3 }]);
  });

  test('the exit of a sandbox wakes its pod', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    const sandbox = fake.sandboxes.get('s1');
    if (sandbox !== undefined) fake.sandboxes.set('s1', { ...sandbox, state: 'SANDBOX_NOTREADY' });
    sendExit(fake, 's1');
    expect(await next(() => true)).toEqual({ podUID: 'u1', type: 'podSync', at: 100_000 });
  });

  test('the exit of a sandbox that we are stopping ourselves is not followed: the answer of the stop says it', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    await runtime.observePod(POD);
    const { promise, resolve } = Promise.withResolvers<void>();
    fake.held.set('StopPodSandbox', promise);
    fake.calls.length = 0;
    const stopping = runtime.stopPodSandbox(sandboxId('s1'));
    while (!fake.calls.includes('StopPodSandbox')) await systemClock.sleep(1);
    sendExit(fake, 's1');
    // An end of another container comes out last.
    fake.addContainer('c2', 'u2', 's2', EXITED);
    sendExit(fake, 'c2');
    await next(({ containerId }) => containerId === 'c2');
    resolve();
    await stopping;
    expect(fake.calls).toEqual(['StopPodSandbox', 'ContainerStatus']);
    expect(events).toHaveLength(1);
    expect((await runtime.observePod(POD)).sandboxes).toMatchObject([{ id: 's1', state: 'notReady' }]);
  });

  test('an id that is nobody’s is ignored, and one made by others finds its pod', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    sendExit(fake, 'stranger');
    fake.addContainer('c2', 'u2', 's2', EXITED);
    sendExit(fake, 'c2');
    expect(await next(() => true)).toMatchObject({ podUID: 'u2', containerId: 'c2', type: 'containerDied' });
    expect(events).toHaveLength(1);
  });
});

/** CRI's event about a container of the pod, with the statuses of the moment. */
function sendCri(fake: FakeCri, type: 'CONTAINER_STOPPED_EVENT' | 'CONTAINER_STARTED_EVENT', id: string): void {
  for (const stream of fake.streams.cri) {
    stream.write({
      container_id: id,
      container_event_type: type,
      created_at: '100000000000',
      pod_sandbox_status: fake.sandboxes.get('s1'),
      containers_statuses: [fake.containers.get(id)],
    });
  }
}

/** Resolves when everything that was sent before has been taken in: an end of another container comes out last. */
async function drained({ fake, next }: Setup, marker: string): Promise<void> {
  fake.addContainer(marker, 'u9', 's9', EXITED);
  sendCri(fake, 'CONTAINER_STOPPED_EVENT', marker);
  await next(({ containerId }) => containerId === marker);
}

describe('CRI’s event stream', () => {
  test.each([
    ['with containerd’s bus beside it', true],
    ['alone, on a runtime that is not containerd', false],
  ])('%s brings the exit along: nothing is asked again', async (_rule, containerd) => {
    const { fake, runtime, next } = await setup({ cri: true, containerd });
    await runtime.capabilities();
    await runtime.observePod(POD);
    const before = fake.calls.length;
    fake.set('c1', EXITED);
    sendCri(fake, 'CONTAINER_STOPPED_EVENT', 'c1');
    expect(await next(() => true)).toMatchObject({ podUID: 'u1', type: 'containerDied', containerId: 'c1' });
    expect(fake.calls.slice(before)).toEqual([]);
  });

  test('does not hold up an end that containerd’s bus tells sooner, and does not tell it a second time', async () => {
    const all = await setup({ cri: true, containerd: true });
    const { fake, runtime, next, events } = all;
    await runtime.capabilities();
    while (fake.streams.containerd.length === 0) await systemClock.sleep(1);
    await runtime.observePod(POD);
    sendExit(fake, 'c1', 3);
    expect(await next(() => true)).toMatchObject({ type: 'containerDied', containerId: 'c1' });
    expect((await runtime.observePod(POD)).containers[0]).toMatchObject({ state: 'exited', exitCode: 3 });
    fake.set('c1', { ...EXITED, reason: 'Error' });
    // A start that was slower on its stream than the end on the other.
    sendCri(fake, 'CONTAINER_STARTED_EVENT', 'c1');
    sendCri(fake, 'CONTAINER_STOPPED_EVENT', 'c1');
    await drained(all, 'c9');
    expect(events.map(({ type, containerId }) => `${type} ${containerId}`)).toEqual([
      'containerDied c1',
      'containerDied c9',
    ]);
  });

  test('ends are told by it while the bus is broken, and by the bus again after that', async () => {
    const { fake, runtime, next } = await setup({ cri: true, containerd: true });
    await runtime.capabilities();
    while (fake.streams.containerd.length === 0) await systemClock.sleep(1);
    await runtime.observePod(POD);
    for (const stream of fake.streams.containerd.splice(0)) stream.end();
    fake.addContainer('c2', 'u1', 's1', EXITED);
    sendCri(fake, 'CONTAINER_STOPPED_EVENT', 'c2');
    await next(({ containerId }) => containerId === 'c2');
    while (fake.streams.containerd.length === 0) await systemClock.sleep(1);
    expect(fake.streams.cri).toHaveLength(1);
    sendExit(fake, 'c1', 3);
    await next(({ containerId }) => containerId === 'c1');
  });
});

describe('without events', () => {
  test('the safety net finds what no stream told', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true }, { relistPeriodMs: 20 });
    await runtime.capabilities();
    fake.set('c1', EXITED);
    expect(await next(() => true)).toMatchObject({ podUID: 'u1', type: 'containerDied', containerId: 'c1' });
  });

  test('the safety net finds the end of what was seen running after its end had been told', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true }, { relistPeriodMs: 20 });
    await runtime.capabilities();
    fake.set('c1', { state: 'CONTAINER_UNKNOWN' });
    sendExit(fake, 'c1');
    await next(({ type }) => type === 'containerDied');
    fake.set('c1', { state: 'CONTAINER_RUNNING' });
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ state: 'running' }]);
    events.length = 0;
    fake.set('c1', EXITED);
    expect(await next(({ type }) => type === 'containerDied')).toMatchObject({ podUID: 'u1', containerId: 'c1' });
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ state: 'exited' }]);
  });

  test('what happened while the runtime was away is told when it is back', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    await fake.crash();
    fake.set('c1', EXITED);
    await fake.listen();
    expect(await next(() => true)).toMatchObject({ podUID: 'u1', type: 'containerDied', containerId: 'c1' });
    expect((await runtime.capabilities())?.events).toBe('containerd');
    // And the stream serves again.
    fake.addContainer('c2', 'u1', 's1', EXITED);
    sendExit(fake, 'c2');
    await next(({ containerId }) => containerId === 'c2');
  });
});

/** A runtime on directories of its own, and a pod that it knows nothing of. */
async function ownPod() {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-runtime-'));
  cleanups.push(() => rm(directory, { recursive: true }));
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

  test('a complete read is relied on for three periods of the relist and no longer', async () => {
    let ahead = 0;
    const clock: Clock = { ...systemClock, monotonic: () => plusMs(systemClock.monotonic(), ahead) };
    const { fake, runtime } = await setup({ cri: false, containerd: true }, { clock, relistPeriodMs: 600_000 });
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
    [
      'is asked for where nobody but the runtime knows its addresses',
      () => undefined,
      ['PodSandboxStatus'],
      ['10.0.0.9'],
    ],
    ['is asked for where it has no address yet', () => [], ['PodSandboxStatus'], ['10.0.0.9']],
  ])('a sandbox that was just made %s', async (_rule, addressesOf, calls, ips) => {
    const logs = await mkdtemp(join(tmpdir(), 'nodelet-logs-'));
    cleanups.push(() => rm(logs, { recursive: true }));
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

test('a runtime that has not been listed for three minutes is an unhealthy PLEG, until it is listed again', async () => {
  let ahead = 0;
  const clock: Clock = { ...systemClock, monotonic: () => plusMs(systemClock.monotonic(), ahead) };
  const { fake, runtime } = await setup({ cri: false, containerd: true }, { clock, relistPeriodMs: 20 });
  await runtime.capabilities();
  expect(runtime.plegProblem()).toBeUndefined();
  await fake.crash();
  ahead = 200_000;
  await expect
    .poll(() => runtime.plegProblem())
    .toMatch(/^PLEG is not healthy: pleg was last seen active 3m2\d(\.\d+)?s ago; threshold is 3m0s$/);
  await fake.listen();
  await expect.poll(() => runtime.plegProblem(), { timeout: 30_000 }).toBeUndefined();
});
