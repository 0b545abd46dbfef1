import { describe, expect, onTestFinished, test } from 'vitest';
import { sandboxId } from '../../../../../agent/runtime/convert.ts';
import { createCriRuntime } from '../../../../../agent/runtime/cri-runtime.ts';
import { type Clock, plusMs, systemClock } from '../../../../../lib/clock.ts';
import { Tracer } from '../../../../../lib/trace.ts';
import type { FakeCri } from '../fake-cri.ts';
import { NODE } from '../fixtures.ts';
import { EXITED, POD, type Setup, sendExit, setup } from './watched-runtime.ts';

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
    'is as well what a machine finds that is too slow to receive a refusal in time: %j',
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
    onTestFinished(async () => runtime.close());
    expect(await runtime.capabilities()).toBeUndefined();
    await expect(runtime.version()).rejects.toMatchObject({ name: 'RuntimeError', code: 'UNAVAILABLE' });
  });
});

describe('containerd’s event stream', () => {
  test('an exit is reported at once, and an observation shows it although the runtime does not yet', async () => {
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

  test('an exit that our own stop causes is reported at once, takes no list, and is looked for once, after the response', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true });
    await runtime.capabilities();
    const [container] = (await runtime.observePod(POD)).containers;
    if (container === undefined) throw new Error('no container');
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    fake.retained.set('StopContainer', answered);
    fake.calls.length = 0;
    const stopping = runtime.stopContainer(container.id, 30);
    while (!fake.calls.includes('StopContainer')) await systemClock.sleep(1);
    sendExit(fake, 'c1', 143);
    await next(({ type }) => type === 'containerDied');
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ state: 'exited', exitCode: 143 }]);
    expect(fake.calls).toEqual(['StopContainer']);
    answer();
    await stopping;
    await runtime.removeContainer(container.id);
    expect(fake.calls).toEqual(['StopContainer', 'ContainerStatus', 'ContainerStatus', 'RemoveContainer']);
  });

  test('an exit whose message is the end of the log is reported only once the runtime shows it', async () => {
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

  test('an exit that comes before the runtime has recorded the start is reported once that is read', async () => {
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
    fake.retained.set('ContainerStatus', promise);
    const seen = fake.calls.length;
    const late = runtime.observePod(POD);
    while (!fake.calls.slice(seen).includes('ContainerStatus')) await systemClock.sleep(1);
    fake.retained.clear();
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
    fake.retained.set('StopPodSandbox', promise);
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

  test('an unknown id is ignored, and one made by another client finds its pod', async () => {
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

  test('does not delay an exit that containerd’s bus reports sooner, and does not report it a second time', async () => {
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

  test('exits are reported by it while the bus is broken, and by the bus again after that', async () => {
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
  test('the relist finds what no stream reported', async () => {
    const { fake, runtime, next } = await setup({ cri: false, containerd: true }, { relistPeriodMs: 20 });
    await runtime.capabilities();
    fake.set('c1', EXITED);
    expect(await next(() => true)).toMatchObject({ podUID: 'u1', type: 'containerDied', containerId: 'c1' });
  });

  test('the relist finds the exit of what was seen running after its exit had been reported', async () => {
    const { fake, runtime, next, events } = await setup({ cri: false, containerd: true }, { relistPeriodMs: 20 });
    await runtime.capabilities();
    // No list shows it before the exit has been reported.
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const list of ['ListContainers', 'ListPodSandbox']) fake.retained.set(list, promise);
    fake.set('c1', { state: 'CONTAINER_UNKNOWN' });
    sendExit(fake, 'c1');
    await next(({ type }) => type === 'containerDied');
    fake.retained.clear();
    resolve();
    fake.set('c1', { state: 'CONTAINER_RUNNING' });
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ state: 'running' }]);
    events.length = 0;
    fake.set('c1', EXITED);
    expect(await next(({ type }) => type === 'containerDied')).toMatchObject({ podUID: 'u1', containerId: 'c1' });
    expect((await runtime.observePod(POD)).containers).toMatchObject([{ state: 'exited' }]);
  });

  test('what happened while the runtime was down is reported when it is back', async () => {
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
    .toMatch(/^PLEG is not healthy: pleg was last seen active \d+m\d+(\.\d+)?s ago; threshold is 3m0s$/);
  await fake.listen();
  await expect.poll(() => runtime.plegProblem()).toBeUndefined();
});
