// A pod resized in place: manager, worker and status together, on a simulated node and a virtual clock. The checkpoints are in
// resize-checkpoints.test.ts, the pure rules in rules.test.ts and actuated.test.ts.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseCheckpoints } from '../../../../../agent/pods/resize/checkpoint.ts';
import { PodResizes } from '../../../../../agent/pods/resize/pod-resizes.ts';
import type { Pod } from '../../../../../client/types.ts';
import { settle } from '../../../../sim/clock.ts';
import { instance } from '../status-of.ts';
import { burstable, ResizeNode } from './resize-node.ts';

let on: ResizeNode;

beforeEach(() => {
  on = new ResizeNode();
});

afterEach(() => {
  on.node.agent.stop();
  expect(on.node.violations).toEqual([]);
});

describe('a resize that fits on the node', () => {
  it('reaches the running container, which is not restarted, and is reported when it is done', async () => {
    await on.running(burstable('a', '500m'));
    const id = on.web('a')?.containerID;
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.web('a')?.resources?.requests?.['cpu'] === '1');
    expect(on.lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(on.web('a')).toMatchObject({ containerID: id, restartCount: 0, allocatedResources: { cpu: '1' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress') === undefined);
    expect(on.node.api.status('a').observedGeneration).toBe(2);
    expect(on.node.api.status('a').resize).toBeUndefined();
    expect(on.node.recorder.reasons()).toEqual(expect.arrayContaining(['ResizeStarted', 'ResizeCompleted']));
  });

  it('reports to the runtime what the pod’s cgroup has, when it grows before the container and when it shrinks after it', async () => {
    await on.running(burstable('a', '500m', {}, '64Mi'));
    const [sandbox] = [...on.node.runtime.sandboxes.keys()];
    const more = { requests: { cpu: '1' }, limits: { cpu: '2', memory: '64Mi' } };
    on.resize('a', more);
    await on.node.clock.until(() => on.node.recorder.of('ResizeCompleted').length === 1);
    expect(on.sandboxUpdates()).toEqual([[sandbox, more]]);
    const less = { requests: { cpu: '250m' }, limits: { cpu: '2', memory: '64Mi' } };
    on.resize('a', less);
    await on.node.clock.until(() => on.node.recorder.of('ResizeCompleted').length === 2);
    expect(on.sandboxUpdates()).toEqual([
      [sandbox, more],
      [sandbox, less],
    ]);
    const calls = on.node.runtime.calls.map(({ call }) => call).filter((call) => call.startsWith('update'));
    const [pod, web] = ['updatePodSandboxResources', 'updateContainerResources'];
    expect(calls).toEqual([pod, web, web, pod]);
    // One up, the other down: both.
    const mixed = { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '32Mi' } };
    on.resize('a', mixed);
    await on.node.clock.until(() => on.node.recorder.of('ResizeCompleted').length === 3);
    const room = { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '64Mi' } };
    expect(on.sandboxUpdates().slice(2)).toEqual([
      [sandbox, room],
      [sandbox, mixed],
    ]);
  });

  it('succeeds although the runtime refuses the report of the pod’s cgroup', async () => {
    await on.running(burstable('a', '500m'));
    on.node.runtime.failNext('updatePodSandboxResources', 'NRI sandbox update failed');
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.node.recorder.of('ResizeCompleted').length === 1);
    expect(on.lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(on.node.recorder.of('ResizeError')).toEqual([]);
  });

  it('that failed and is then reverted is undone: the call may have been applied and its response lost', async () => {
    await on.running(burstable('a', '500m'));
    on.node.runtime.failNext('updateContainerResources', 'the connection is closing', 'UNAVAILABLE');
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.node.runtime.count('updateContainerResources') === 1);
    on.resize('a', { requests: { cpu: '500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.lastUpdate() !== undefined, 30_000);
    expect(on.lastUpdate()).toEqual({ cpuShares: 512 });
    await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress') === undefined);
    expect(on.web('a')?.resources?.requests?.['cpu']).toBe('500m');
    expect(on.node.runtime.count('updateContainerResources')).toBe(2);
  });

  it('is in progress until the runtime has applied it; an error is reported and retried', async () => {
    await on.running(burstable('a', '500m'));
    on.node.runtime.failNext('updateContainerResources', 'device or resource busy');
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress')?.reason === 'Error');
    expect(on.condition('a', 'PodResizeInProgress')?.message).toBe(
      'rpc error: code = Unknown desc = device or resource busy',
    );
    expect(on.node.api.status('a').resize).toBe('InProgress');
    expect(on.web('a')?.resources?.requests?.['cpu']).toBe('500m');
    expect(on.web('a')?.allocatedResources?.['cpu']).toBe('1');
    await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress') === undefined, 10_000);
    expect(on.web('a')?.resources?.requests?.['cpu']).toBe('1');
    expect(on.node.recorder.of('ResizeError')[0]).toContain(
      '"error":"rpc error: code = Unknown desc = device or resource',
    );
  });

  it('restarts the container where its resizePolicy requires that, and only once', async () => {
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    await on.running(burstable('a', '500m', { resizePolicy }));
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(
      () => on.web('a')?.restartCount === 1 && on.web('a')?.state?.running !== undefined,
      60_000,
    );
    expect(on.node.recorder.of('Killing')).toContain('Container web resize requires restart');
    expect(on.web('a')?.resources?.requests?.['cpu']).toBe('1');
    await on.node.clock.advance(60_000);
    expect(on.web('a')?.restartCount).toBe(1);
    expect(on.condition('a', 'PodResizeInProgress')).toBeUndefined();
    expect(on.lastUpdate()).toBeUndefined();
  });

  it('does not set a memory limit below the usage, and does so when the usage has fallen', async () => {
    await on.running(burstable('a', '500m', {}, '1Gi'));
    const id = [...on.node.runtime.containers.keys()][0] ?? '';
    on.node.cgroups.memory.set(id, 600 * 1024 ** 2);
    on.resize('a', { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '512Mi' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress')?.reason === 'Error');
    expect(on.condition('a', 'PodResizeInProgress')?.message).toBe(
      'attempting to set container "web" memory limit (536870912) below current usage (629145600)',
    );
    expect(on.lastUpdate()).toBeUndefined();
    on.node.cgroups.memory.set(id, 100);
    await on.node.clock.until(() => on.web('a')?.resources?.limits?.['memory'] === '512Mi', 60_000);
    expect(on.lastUpdate()).toEqual({ memoryLimitBytes: 512 * 1024 ** 2 });
  });

  it('restarts a container in back-off at once with the new resources', async () => {
    await on.running(burstable('a', '500m'));
    for (let round = 0; round < 3; round++) {
      on.node.runtime.exit('web', 137);
      await on.node.clock.until(() => on.node.runtime.running('web') !== undefined, 120_000);
      await settle();
    }
    on.node.runtime.exit('web', 137);
    await on.node.clock.until(() => on.web('a')?.state?.waiting?.reason === 'CrashLoopBackOff');
    const before = on.node.clock.now();
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.node.runtime.running('web') !== undefined, 60_000);
    expect(on.node.clock.now() - before).toBeLessThan(1_000);
    expect(on.web('a')?.resources?.requests?.['cpu']).toBe('1');
  });
});

describe('a resize allocated while its container is being started', () => {
  const large = { requests: { cpu: '1' }, limits: { cpu: '2' } };
  const inProgress = () => on.condition('a', 'PodResizeInProgress')?.status;

  /** The pod, whose container's start waits in `call`. */
  async function startingAt(call: 'pullImage' | 'createContainer' | 'startContainer', pod: Pod): Promise<void> {
    on.node.runtime.registry.add('slow:1');
    on.node.runtime.latency.set(call, 20_000);
    on.node.api.put(pod);
    await on.node.clock.until(() => on.node.runtime.calls.some((made) => made.call === call));
  }

  it.each(['pullImage', 'createContainer', 'startContainer'] as const)(
    'during %s is not done before the container that has the old resources is updated',
    async (call) => {
      await startingAt(call, burstable('a', '500m', { image: 'slow:1' }));
      on.resize('a', large);
      await on.node.clock.advance(5_000);
      expect(inProgress()).toBe('True');
      expect(on.node.recorder.of('ResizeCompleted')).toEqual([]);
      // The next agent would find an instance that was created with the old ones, if any.
      const [saved] = parseCheckpoints(on.files).values();
      expect(saved?.allocated['web']?.requests).toEqual({ cpu: '1' });
      expect(saved?.actuated['web']?.resources.requests).toEqual({ cpu: '500m' });
      await on.node.clock.until(() => on.node.api.status('a').phase === 'Running', 60_000);
      await on.node.clock.until(() => inProgress() === undefined, 60_000);
      expect(on.lastUpdate()).toEqual({ cpuShares: 1024 });
      expect(on.web('a')).toMatchObject({ restartCount: 0, resources: large });
      expect(on.node.recorder.of('ResizeCompleted')).toHaveLength(1);
    },
  );

  it('restarts it once, where its resizePolicy requires that', async () => {
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    await startingAt('pullImage', burstable('a', '500m', { image: 'slow:1', resizePolicy }));
    on.resize('a', large);
    await on.node.clock.until(
      () => on.web('a')?.restartCount === 1 && on.web('a')?.state?.running !== undefined,
      120_000,
    );
    await on.node.clock.advance(60_000);
    expect(on.web('a')?.restartCount).toBe(1);
    expect(inProgress()).toBeUndefined();
    expect(on.lastUpdate()).toBeUndefined();
  });

  it('is actuated by the next start when that start fails', async () => {
    await startingAt('pullImage', burstable('a', '500m', { image: 'slow:1' }));
    on.resize('a', large);
    on.node.runtime.registry.delete('slow:1');
    await on.node.clock.until(() => on.node.recorder.of('ResizeCompleted').length === 1, 60_000);
    on.node.runtime.registry.add('slow:1');
    on.node.runtime.latency.clear();
    await on.node.clock.until(() => on.node.api.status('a').phase === 'Running', 120_000);
    expect([...on.node.runtime.containers.values()][0]?.spec.container.resources).toEqual(large);
    await on.node.clock.advance(30_000);
    expect(on.lastUpdate()).toBeUndefined();
  });

  it('is not in progress while the pod has no container', async () => {
    on.node.runtime.latency.set('runPodSandbox', 20_000);
    on.node.api.put(burstable('a', '500m'));
    await on.node.clock.until(() => on.node.runtime.calls.some(({ call }) => call === 'runPodSandbox'));
    on.resize('a', large);
    await on.node.clock.advance(10_000);
    expect(inProgress()).toBeUndefined();
    await on.node.clock.until(() => on.node.api.status('a').phase === 'Running', 60_000);
    expect(on.node.runtime.running('web')?.spec.container.resources).toEqual(large);
    await on.node.clock.until(() => on.node.recorder.of('ResizeCompleted').length === 1, 60_000);
    expect(inProgress()).toBeUndefined();
  });

  it('does not start an instance that was created with the old resources', async () => {
    on.node.runtime.failNext('startContainer', 'busy');
    await startingAt('startContainer', burstable('a', '500m'));
    on.resize('a', large);
    await on.node.clock.until(() => on.node.api.status('a').phase === 'Running', 120_000);
    expect(on.node.runtime.running('web')?.spec.container.resources).toEqual(large);
    await on.node.clock.until(() => inProgress() === undefined, 60_000);
  });
});

it('a container of a start that failed before a resize, and was executed after it, is resized when it appears', () => {
  const pod = burstable('a', '500m');
  const { uid } = pod.metadata;
  const resizes = new PodResizes({
    host: { activePods: () => [], resizeChanged: () => undefined },
    store: undefined,
    node: { allocatable: () => ({ cpu: '4' }) },
    recorder: on.node.recorder,
    clock: on.node.clock,
    log: () => undefined,
  });
  const [container] = pod.spec.containers;
  const old = { requests: { cpu: '500m' }, limits: { cpu: '2' } };
  const large = { requests: { cpu: '1' }, limits: { cpu: '2' } };
  const resized = { ...pod, spec: { ...pod.spec, containers: [{ ...container, name: 'web', resources: large }] } };
  resizes.admitted(pod);
  resizes.observed(uid, { containers: [] });
  resizes.starting(uid, 'web', old);
  resizes.startFailed(uid, 'web', true);
  resizes.seen(resized);
  resizes.completed(resized);
  expect(resizes.facts(uid)).toBeUndefined();
  resizes.starting(uid, 'web', large);
  resizes.startFailed(uid, 'web', true);
  const late = instance('web', { state: 'created' });
  resizes.observed(uid, { containers: [late] });
  expect(resizes.facts(uid)?.actual).toEqual(new Map([[late.id, old]]));
});

it('a resize allocated while the previous one is being completed is actuated too', async () => {
  await on.running(burstable('a', '500m'));
  const { ensurePod } = on.node.cgroups;
  const sized: string[] = [];
  on.node.cgroups.ensurePod = async (pod) => {
    sized.push(String(pod.spec.containers[0]?.resources?.requests?.['cpu']));
    // The second is the last step of the first resize.
    if (sized.length === 2) {
      on.resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
      await settle();
    }
    await ensurePod.call(on.node.cgroups, pod);
  };
  on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
  await on.node.clock.until(() => on.lastUpdate()?.cpuShares === 1536, 60_000);
  await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress') === undefined, 60_000);
  expect(sized.at(-1)).toBe('1500m');
});

describe('a resize that does not fit on the node', () => {
  it('is Deferred, does not change the container, and is allocated when another pod ends', async () => {
    await on.running(burstable('a', '500m'));
    await on.running(burstable('b', '1'));
    on.resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending') !== undefined);
    expect(on.condition('a', 'PodResizePending')).toMatchObject({
      status: 'True',
      reason: 'Deferred',
      message: "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
    });
    expect(on.node.api.status('a').resize).toBe('Deferred');
    expect(on.web('a')).toMatchObject({
      allocatedResources: { cpu: '500m' },
      resources: { requests: { cpu: '500m' } },
    });
    expect(on.node.recorder.of('ResizeDeferred')).toHaveLength(1);
    on.node.api.delete('b', 0);
    await on.node.clock.until(() => on.web('a')?.resources?.requests?.['cpu'] === '1500m', 60_000);
    await on.node.clock.until(() => on.condition('a', 'PodResizePending') === undefined);
    expect(on.node.recorder.of('ResizeDeferred')).toHaveLength(1);
  });

  it('is allocated when another pod is resized down', async () => {
    await on.running(burstable('a', '500m'));
    await on.running(burstable('b', '1500m'));
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Deferred');
    on.resize('b', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.web('a')?.resources?.requests?.['cpu'] === '1', 60_000);
  });

  it('does not count against new pods: admission uses allocated, not desired resources', async () => {
    await on.running(burstable('a', '500m'));
    await on.running(burstable('b', '1'));
    on.resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Deferred');
    expect(on.node.agent.activePods().map(({ spec }) => spec.containers[0]?.resources?.requests?.['cpu'])).toEqual([
      '500m',
      '1',
    ]);
  });

  it('is reported with a server that has no metadata.generation of pods', async () => {
    on.counting = false;
    await on.running(burstable('a', '500m'));
    await on.running(burstable('b', '1'));
    on.resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Deferred', 1_000);
    on.resize('a', { requests: { cpu: '3' }, limits: { cpu: '4' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Infeasible', 1_000);
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.web('a')?.resources?.requests?.['cpu'] === '1', 1_000);
  });

  it('is Infeasible when it exceeds the node’s capacity, and withdrawn when the user reverts it', async () => {
    await on.running(burstable('a', '500m'));
    on.resize('a', { requests: { cpu: '3' }, limits: { cpu: '4' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Infeasible');
    expect(on.condition('a', 'PodResizePending')?.message).toBe(
      "Node didn't have enough capacity: cpu, requested: 3000, capacity: 2000",
    );
    expect(on.node.api.status('a').observedGeneration).toBe(2);
    on.resize('a', { requests: { cpu: '500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending') === undefined);
    expect(on.lastUpdate()).toBeUndefined();
  });
});
