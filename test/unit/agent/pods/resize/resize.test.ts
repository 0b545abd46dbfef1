// A pod resized in place: manager, worker, checkpoint and status together, on a simulated node and a virtual clock.
// Past 500 lines, since every case begins with the same node and pods; the pure rules are in rules.test.ts and actuated.test.ts.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseCheckpoints, printCheckpoint } from '../../../../../agent/pods/resize/checkpoint.ts';
import { PodResizes } from '../../../../../agent/pods/resize/pod-resizes.ts';
import type { Container, Pod } from '../../../../../client/types.ts';
import { settle } from '../../../../sim/clock.ts';
import { FakeNode, makePod } from '../../../../sim/fakes.ts';
import { instance } from '../status-of.ts';

let node: FakeNode;
let files: { allocated: string | undefined; actuated: string | undefined };
/** Every text that was written, in order. */
let written: { readonly file: string; readonly text: string }[];
/** Writes of checkpoints fail. */
let full: boolean;
/** Whether the server counts generations of pods, as it does since 1.33. */
let counting: boolean;

beforeEach(() => {
  files = { allocated: undefined, actuated: undefined };
  written = [];
  full = false;
  counting = true;
  node = new FakeNode(() => ({
    allocations: {
      initial: { ...files },
      save: (file, text) => {
        if (full) return Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
        files[file] = text;
        written.push({ file, text });
        return Promise.resolve();
      },
    },
  }));
});

afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

function burstable(name: string, cpu: string, more: Partial<Container> = {}, memory?: string): Pod {
  const pod = makePod(name, {
    containers: [
      {
        name: 'web',
        image: 'nginx:stable',
        imagePullPolicy: 'IfNotPresent',
        resources: { requests: { cpu }, limits: { cpu: '2', ...(memory === undefined ? {} : { memory }) } },
        ...more,
      },
    ],
  });
  return { ...pod, status: { phase: 'Pending', qosClass: 'Burstable' } };
}

async function running(pod: Pod): Promise<void> {
  node.api.put(pod);
  await node.clock.until(() => node.api.status(pod.metadata.name).phase === 'Running');
}

/** What a PATCH of pods/resize leaves at the server. */
function resize(name: string, resources: NonNullable<Container['resources']>, more: Partial<Container> = {}): void {
  const pod = [...node.api.pods.values()].find(({ metadata }) => metadata.name === name);
  if (pod === undefined) throw new Error(`no pod ${name}`);
  const [first, ...rest] = pod.spec.containers;
  if (first === undefined) throw new Error(`pod ${name} has no container`);
  node.api.put({
    ...pod,
    metadata: { ...pod.metadata, generation: (pod.metadata.generation ?? 0) + (counting ? 1 : 0) },
    spec: { ...pod.spec, containers: [{ ...first, resources, ...more }, ...rest] },
  });
}

const web = (name: string) => node.api.status(name).containerStatuses?.[0];
const condition = (name: string, type: string) => node.api.condition(name, type);
/** What was reported to the runtime of the pod's cgroup, as the requests and limits of its container. */
const sandboxUpdates = () =>
  node.runtime.calls
    .filter(({ call }) => call === 'updatePodSandboxResources')
    .map(({ subject, detail }) => [subject, (detail as Pod['spec']).containers[0]?.resources]);
const lastUpdate = (name = 'web') => [...node.runtime.containers.values()].find((one) => one.name === name)?.resources;

describe('a checkpoint that cannot be written', () => {
  it('does not prevent pods from running, and is written once the disk has space', async () => {
    full = true;
    await running(burstable('a', '500m'));
    await node.clock.advance(60_000);
    expect(written).toEqual([]);
    full = false;
    await node.clock.advance(10_000);
    expect(files.allocated).toContain('uid-a');
    expect(files.actuated).toContain('uid-a');
  });
});

describe('a resize that fits on the node', () => {
  it('reaches the running container, which is not restarted, and is reported when it is done', async () => {
    await running(burstable('a', '500m'));
    const id = web('a')?.containerID;
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => web('a')?.resources?.requests?.['cpu'] === '1');
    expect(lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(web('a')).toMatchObject({ containerID: id, restartCount: 0, allocatedResources: { cpu: '1' } });
    await node.clock.until(() => condition('a', 'PodResizeInProgress') === undefined);
    expect(node.api.status('a').observedGeneration).toBe(2);
    expect(node.api.status('a').resize).toBeUndefined();
    expect(node.recorder.reasons()).toEqual(expect.arrayContaining(['ResizeStarted', 'ResizeCompleted']));
  });

  it('reports to the runtime what the pod’s cgroup has, when it grows before the container and when it shrinks after it', async () => {
    await running(burstable('a', '500m', {}, '64Mi'));
    const [sandbox] = [...node.runtime.sandboxes.keys()];
    const more = { requests: { cpu: '1' }, limits: { cpu: '2', memory: '64Mi' } };
    resize('a', more);
    await node.clock.until(() => node.recorder.of('ResizeCompleted').length === 1);
    expect(sandboxUpdates()).toEqual([[sandbox, more]]);
    const less = { requests: { cpu: '250m' }, limits: { cpu: '2', memory: '64Mi' } };
    resize('a', less);
    await node.clock.until(() => node.recorder.of('ResizeCompleted').length === 2);
    expect(sandboxUpdates()).toEqual([
      [sandbox, more],
      [sandbox, less],
    ]);
    const calls = node.runtime.calls.map(({ call }) => call).filter((call) => call.startsWith('update'));
    const [pod, web] = ['updatePodSandboxResources', 'updateContainerResources'];
    expect(calls).toEqual([pod, web, web, pod]);
    // One up, the other down: both.
    const mixed = { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '32Mi' } };
    resize('a', mixed);
    await node.clock.until(() => node.recorder.of('ResizeCompleted').length === 3);
    const room = { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '64Mi' } };
    expect(sandboxUpdates().slice(2)).toEqual([
      [sandbox, room],
      [sandbox, mixed],
    ]);
  });

  it('succeeds although the runtime refuses the report of the pod’s cgroup', async () => {
    await running(burstable('a', '500m'));
    node.runtime.failNext('updatePodSandboxResources', 'NRI sandbox update failed');
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => node.recorder.of('ResizeCompleted').length === 1);
    expect(lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(node.recorder.of('ResizeError')).toEqual([]);
  });

  it('that failed and is then reverted is undone: the call may have been applied and its response lost', async () => {
    await running(burstable('a', '500m'));
    node.runtime.failNext('updateContainerResources', 'the connection is closing', 'UNAVAILABLE');
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => node.runtime.count('updateContainerResources') === 1);
    resize('a', { requests: { cpu: '500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => lastUpdate() !== undefined, 30_000);
    expect(lastUpdate()).toEqual({ cpuShares: 512 });
    await node.clock.until(() => condition('a', 'PodResizeInProgress') === undefined);
    expect(web('a')?.resources?.requests?.['cpu']).toBe('500m');
    expect(node.runtime.count('updateContainerResources')).toBe(2);
  });

  it('is in progress until the runtime has applied it; an error is reported and retried', async () => {
    await running(burstable('a', '500m'));
    node.runtime.failNext('updateContainerResources', 'device or resource busy');
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition('a', 'PodResizeInProgress')?.message).toBe(
      'rpc error: code = Unknown desc = device or resource busy',
    );
    expect(node.api.status('a').resize).toBe('InProgress');
    expect(web('a')?.resources?.requests?.['cpu']).toBe('500m');
    expect(web('a')?.allocatedResources?.['cpu']).toBe('1');
    await node.clock.until(() => condition('a', 'PodResizeInProgress') === undefined, 10_000);
    expect(web('a')?.resources?.requests?.['cpu']).toBe('1');
    expect(node.recorder.of('ResizeError')[0]).toContain(
      '"error":"rpc error: code = Unknown desc = device or resource',
    );
  });

  it('restarts the container where its resizePolicy requires that, and only once', async () => {
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    await running(burstable('a', '500m', { resizePolicy }));
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => web('a')?.restartCount === 1 && web('a')?.state?.running !== undefined, 60_000);
    expect(node.recorder.of('Killing')).toContain('Container web resize requires restart');
    expect(web('a')?.resources?.requests?.['cpu']).toBe('1');
    await node.clock.advance(60_000);
    expect(web('a')?.restartCount).toBe(1);
    expect(condition('a', 'PodResizeInProgress')).toBeUndefined();
    expect(lastUpdate()).toBeUndefined();
  });

  it('does not set a memory limit below the usage, and does so when the usage has fallen', async () => {
    await running(burstable('a', '500m', {}, '1Gi'));
    const id = [...node.runtime.containers.keys()][0] ?? '';
    node.cgroups.memory.set(id, 600 * 1024 ** 2);
    resize('a', { requests: { cpu: '500m' }, limits: { cpu: '2', memory: '512Mi' } });
    await node.clock.until(() => condition('a', 'PodResizeInProgress')?.reason === 'Error');
    expect(condition('a', 'PodResizeInProgress')?.message).toBe(
      'attempting to set container "web" memory limit (536870912) below current usage (629145600)',
    );
    expect(lastUpdate()).toBeUndefined();
    node.cgroups.memory.set(id, 100);
    await node.clock.until(() => web('a')?.resources?.limits?.['memory'] === '512Mi', 60_000);
    expect(lastUpdate()).toEqual({ memoryLimitBytes: 512 * 1024 ** 2 });
  });

  it('restarts a container in back-off at once with the new resources', async () => {
    await running(burstable('a', '500m'));
    for (let round = 0; round < 3; round++) {
      node.runtime.exit('web', 137);
      await node.clock.until(() => node.runtime.running('web') !== undefined, 120_000);
      await settle();
    }
    node.runtime.exit('web', 137);
    await node.clock.until(() => web('a')?.state?.waiting?.reason === 'CrashLoopBackOff');
    const before = node.clock.now();
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => node.runtime.running('web') !== undefined, 60_000);
    expect(node.clock.now() - before).toBeLessThan(1_000);
    expect(web('a')?.resources?.requests?.['cpu']).toBe('1');
  });
});

describe('a resize allocated while its container is being started', () => {
  const large = { requests: { cpu: '1' }, limits: { cpu: '2' } };
  const inProgress = () => condition('a', 'PodResizeInProgress')?.status;

  /** The pod, whose container's start waits in `call`. */
  async function startingAt(call: 'pullImage' | 'createContainer' | 'startContainer', pod: Pod): Promise<void> {
    node.runtime.registry.add('slow:1');
    node.runtime.latency.set(call, 20_000);
    node.api.put(pod);
    await node.clock.until(() => node.runtime.calls.some((made) => made.call === call));
  }

  it.each(['pullImage', 'createContainer', 'startContainer'] as const)(
    'during %s is not done before the container that has the old resources is updated',
    async (call) => {
      await startingAt(call, burstable('a', '500m', { image: 'slow:1' }));
      resize('a', large);
      await node.clock.advance(5_000);
      expect(inProgress()).toBe('True');
      expect(node.recorder.of('ResizeCompleted')).toEqual([]);
      // The next agent would find an instance that was created with the old ones, if any.
      const [saved] = parseCheckpoints(files).values();
      expect(saved?.allocated['web']?.requests).toEqual({ cpu: '1' });
      expect(saved?.actuated['web']?.resources.requests).toEqual({ cpu: '500m' });
      await node.clock.until(() => node.api.status('a').phase === 'Running', 60_000);
      await node.clock.until(() => inProgress() === undefined, 60_000);
      expect(lastUpdate()).toEqual({ cpuShares: 1024 });
      expect(web('a')).toMatchObject({ restartCount: 0, resources: large });
      expect(node.recorder.of('ResizeCompleted')).toHaveLength(1);
    },
  );

  it('restarts it once, where its resizePolicy requires that', async () => {
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    await startingAt('pullImage', burstable('a', '500m', { image: 'slow:1', resizePolicy }));
    resize('a', large);
    await node.clock.until(() => web('a')?.restartCount === 1 && web('a')?.state?.running !== undefined, 120_000);
    await node.clock.advance(60_000);
    expect(web('a')?.restartCount).toBe(1);
    expect(inProgress()).toBeUndefined();
    expect(lastUpdate()).toBeUndefined();
  });

  it('is actuated by the next start when that start fails', async () => {
    await startingAt('pullImage', burstable('a', '500m', { image: 'slow:1' }));
    resize('a', large);
    node.runtime.registry.delete('slow:1');
    await node.clock.until(() => node.recorder.of('ResizeCompleted').length === 1, 60_000);
    node.runtime.registry.add('slow:1');
    node.runtime.latency.clear();
    await node.clock.until(() => node.api.status('a').phase === 'Running', 120_000);
    expect([...node.runtime.containers.values()][0]?.spec.container.resources).toEqual(large);
    await node.clock.advance(30_000);
    expect(lastUpdate()).toBeUndefined();
  });

  it('is not in progress while the pod has no container', async () => {
    node.runtime.latency.set('runPodSandbox', 20_000);
    node.api.put(burstable('a', '500m'));
    await node.clock.until(() => node.runtime.calls.some(({ call }) => call === 'runPodSandbox'));
    resize('a', large);
    await node.clock.advance(10_000);
    expect(inProgress()).toBeUndefined();
    await node.clock.until(() => node.api.status('a').phase === 'Running', 60_000);
    expect(node.runtime.running('web')?.spec.container.resources).toEqual(large);
    await node.clock.until(() => node.recorder.of('ResizeCompleted').length === 1, 60_000);
    expect(inProgress()).toBeUndefined();
  });

  it('does not start an instance that was created with the old resources', async () => {
    node.runtime.failNext('startContainer', 'busy');
    await startingAt('startContainer', burstable('a', '500m'));
    resize('a', large);
    await node.clock.until(() => node.api.status('a').phase === 'Running', 120_000);
    expect(node.runtime.running('web')?.spec.container.resources).toEqual(large);
    await node.clock.until(() => inProgress() === undefined, 60_000);
  });
});

it('a container of a start that failed before a resize, and was executed after it, is resized when it appears', () => {
  const pod = burstable('a', '500m');
  const { uid } = pod.metadata;
  const resizes = new PodResizes({
    host: { activePods: () => [], resizeChanged: () => undefined },
    store: undefined,
    node: { allocatable: () => ({ cpu: '4' }) },
    recorder: node.recorder,
    clock: node.clock,
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
  await running(burstable('a', '500m'));
  const { ensurePod } = node.cgroups;
  const sized: string[] = [];
  node.cgroups.ensurePod = async (pod) => {
    sized.push(String(pod.spec.containers[0]?.resources?.requests?.['cpu']));
    // The second is the last step of the first resize.
    if (sized.length === 2) {
      resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
      await settle();
    }
    await ensurePod.call(node.cgroups, pod);
  };
  resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
  await node.clock.until(() => lastUpdate()?.cpuShares === 1536, 60_000);
  await node.clock.until(() => condition('a', 'PodResizeInProgress') === undefined, 60_000);
  expect(sized.at(-1)).toBe('1500m');
});

describe('a resize that does not fit on the node', () => {
  it('is Deferred, does not change the container, and is allocated when another pod ends', async () => {
    await running(burstable('a', '500m'));
    await running(burstable('b', '1'));
    resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending') !== undefined);
    expect(condition('a', 'PodResizePending')).toMatchObject({
      status: 'True',
      reason: 'Deferred',
      message: "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
    });
    expect(node.api.status('a').resize).toBe('Deferred');
    expect(web('a')).toMatchObject({ allocatedResources: { cpu: '500m' }, resources: { requests: { cpu: '500m' } } });
    expect(node.recorder.of('ResizeDeferred')).toHaveLength(1);
    node.api.delete('b', 0);
    await node.clock.until(() => web('a')?.resources?.requests?.['cpu'] === '1500m', 60_000);
    await node.clock.until(() => condition('a', 'PodResizePending') === undefined);
    expect(node.recorder.of('ResizeDeferred')).toHaveLength(1);
  });

  it('is allocated when another pod is resized down', async () => {
    await running(burstable('a', '500m'));
    await running(burstable('b', '1500m'));
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Deferred');
    resize('b', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => web('a')?.resources?.requests?.['cpu'] === '1', 60_000);
  });

  it('does not count against new pods: admission uses allocated, not desired resources', async () => {
    await running(burstable('a', '500m'));
    await running(burstable('b', '1'));
    resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Deferred');
    expect(node.agent.activePods().map(({ spec }) => spec.containers[0]?.resources?.requests?.['cpu'])).toEqual([
      '500m',
      '1',
    ]);
  });

  it('is reported with a server that has no metadata.generation of pods', async () => {
    counting = false;
    await running(burstable('a', '500m'));
    await running(burstable('b', '1'));
    resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Deferred', 1_000);
    resize('a', { requests: { cpu: '3' }, limits: { cpu: '4' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Infeasible', 1_000);
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => web('a')?.resources?.requests?.['cpu'] === '1', 1_000);
  });

  it('is Infeasible when it exceeds the node’s capacity, and withdrawn when the user reverts it', async () => {
    await running(burstable('a', '500m'));
    resize('a', { requests: { cpu: '3' }, limits: { cpu: '4' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Infeasible');
    expect(condition('a', 'PodResizePending')?.message).toBe(
      "Node didn't have enough capacity: cpu, requested: 3000, capacity: 2000",
    );
    expect(node.api.status('a').observedGeneration).toBe(2);
    resize('a', { requests: { cpu: '500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending') === undefined);
    expect(lastUpdate()).toBeUndefined();
  });
});

describe('an agent that is killed', () => {
  it('keeps the allocated resources of a pod, whatever its spec desires by then', async () => {
    await running(burstable('a', '500m'));
    await running(burstable('b', '1'));
    resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Deferred');
    await node.clock.advance(2_000);
    await node.restartAgent();
    await node.clock.advance(5_000);
    expect(web('a')).toMatchObject({ restartCount: 0, allocatedResources: { cpu: '500m' } });
    expect(condition('a', 'PodResizePending')?.reason).toBe('Deferred');
    expect(lastUpdate()).toBeUndefined();
  });

  it('between allocation and actuation is followed by one that actuates', async () => {
    await running(burstable('a', '500m'));
    node.runtime.failNext('updateContainerResources', 'busy');
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizeInProgress')?.reason === 'Error');
    expect(lastUpdate()).toBeUndefined();
    await node.restartAgent();
    await node.clock.until(() => lastUpdate() !== undefined, 30_000);
    expect(lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(web('a')?.restartCount).toBe(0);
  });

  it('writes the allocation before it actuates it, and drops deleted pods', async () => {
    await running(burstable('a', '500m'));
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => lastUpdate() !== undefined);
    const allocated = written.findIndex(
      ({ file, text }) => file === 'allocated' && text.includes('\\"requests\\":{\\"cpu\\":\\"1\\"}'),
    );
    // The actuated resources are on disk before the allocated ones.
    expect(written.slice(0, allocated)).toContainEqual({
      file: 'actuated',
      text: expect.stringContaining('\\"requests\\":{\\"cpu\\":\\"500m\\"}'),
    });
    node.api.delete('a', 0);
    await node.clock.until(() => !node.api.has('a'), 60_000);
    await node.clock.advance(2_000);
    expect(parseCheckpoints(files)).toEqual(new Map());
  });

  it('whose checkpoint is corrupted logs it, and uses the reported status', async () => {
    await running(burstable('a', '500m'));
    await running(burstable('b', '1'));
    resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await node.clock.until(() => condition('a', 'PodResizePending')?.reason === 'Deferred');
    node.killAgent();
    files.allocated = '{"data":"{}","checksum":1}';
    await node.restartAgent();
    await node.clock.advance(5_000);
    expect(web('a')?.allocatedResources).toEqual({ cpu: '500m' });
    expect(lastUpdate()).toBeUndefined();
  });
});

describe('an agent that finds no checkpoint', () => {
  // A status has no resources of a container that has not been started.
  it.each([
    ['without resources', {}],
    ['with resources', { requests: { cpu: '500m' }, limits: { cpu: '2' } }],
  ])('resizes a container %s that had not been started, and nothing before', async (_, resources) => {
    const pod = burstable('a', '500m', { resources });
    const other = { name: 'other', image: 'nginx:stable', resources: { requests: { cpu: '100m' } } };
    node.runtime.failNext('createContainer', 'busy');
    node.api.put({ ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, other] } });
    const statusOf = (name: string) => node.api.status('a').containerStatuses?.find((status) => status.name === name);
    await node.clock.until(() => statusOf('other')?.resources !== undefined);
    expect(statusOf('web')?.resources).toBeUndefined();
    node.killAgent();
    files.allocated = undefined;
    files.actuated = undefined;
    await node.restartAgent();
    await node.clock.until(() => statusOf('web')?.state?.running !== undefined);
    expect(node.recorder.reasons()).not.toContain('ResizeStarted');
    resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await node.clock.until(() => lastUpdate() !== undefined, 30_000);
    expect(lastUpdate()).toMatchObject({ cpuShares: 1024 });
  });
});

describe('a root directory that a kubelet used in between', () => {
  const small = { limits: { cpu: '2' }, requests: { cpu: '500m' } };
  const large = { limits: { cpu: '2' }, requests: { cpu: '1' } };
  const one = (resources: object) => printCheckpoint(new Map([['uid-a', { web: resources }]]));
  const restarting = { resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] };

  /** The kubelet ran while the agent did not, and left these files. */
  async function afterKubelet(left: typeof files): Promise<void> {
    node.killAgent();
    files = left;
    await node.restartAgent();
    await node.clock.advance(30_000);
  }

  it.each([
    ['may be updated', {}],
    ['restart for a resize', restarting],
  ])('leaves pods running that were not resized, where they %s', async (_, more) => {
    await running(burstable('a', '500m', more));
    await node.clock.advance(2_000);
    const id = web('a')?.containerID;
    await afterKubelet({ allocated: one(small), actuated: one(small) });
    expect(web('a')).toMatchObject({ containerID: id, restartCount: 0, ready: true });
    expect(lastUpdate()).toBeUndefined();
  });

  it('is one where a resize that the kubelet allocated is actuated', async () => {
    await running(burstable('a', '500m'));
    node.killAgent();
    resize('a', large);
    await afterKubelet({ allocated: one(large), actuated: one(small) });
    expect(lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(web('a')).toMatchObject({ restartCount: 0, allocatedResources: { cpu: '1' } });
  });

  it('is one where a resize that the kubelet actuated is not repeated', async () => {
    await running(burstable('a', '500m', restarting));
    node.killAgent();
    resize('a', large, restarting);
    await afterKubelet({ allocated: one(large), actuated: one(large) });
    expect(lastUpdate()).toBeUndefined();
    expect(web('a')).toMatchObject({ restartCount: 0, allocatedResources: { cpu: '1' } });
  });

  it('is returned with every running container in both files', async () => {
    await running(burstable('a', '500m', restarting));
    await node.clock.advance(2_000);
    expect(files).toEqual({ allocated: one(small), actuated: one(small) });
    resize('a', large, restarting);
    await node.clock.until(() => web('a')?.restartCount === 1 && web('a')?.state?.running !== undefined, 60_000);
    // Before the instance is created, or a kubelet that starts now would restart it once more.
    expect(files).toEqual({ allocated: one(large), actuated: one(large) });
  });

  it('with the former format is read, and rewritten in the kubelet’s', async () => {
    await running(burstable('a', '500m'));
    const id = web('a')?.containerID?.replace(/^.*:\/\//, '');
    node.killAgent();
    resize('a', large);
    const former = { allocated: { web: large }, actual: { web: { id, resources: small } }, resizing: true };
    await afterKubelet({
      allocated: JSON.stringify({ version: 1, pods: { 'uid-a': former } }),
      actuated: undefined,
    });
    expect(lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(files).toEqual({ allocated: one(large), actuated: one(large) });
  });
});

it('writes nothing for pods without resources', async () => {
  await running(makePod('plain'));
  await node.clock.advance(10_000);
  expect(written).toEqual([]);
});
