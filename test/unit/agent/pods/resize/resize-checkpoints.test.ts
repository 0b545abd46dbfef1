// The checkpoints of resizes: a disk that is full, an agent that is killed, files of a kubelet that ran in between.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseCheckpoints, printCheckpoint } from '../../../../../agent/pods/resize/checkpoint.ts';
import { makePod } from '../../../../sim/fakes.ts';
import { burstable, ResizeNode } from './resize-node.ts';

let on: ResizeNode;

beforeEach(() => {
  on = new ResizeNode();
});

afterEach(() => {
  on.node.agent.stop();
  expect(on.node.violations).toEqual([]);
});

describe('a checkpoint that cannot be written', () => {
  it('does not prevent pods from running, and is written once the disk has space', async () => {
    on.full = true;
    await on.running(burstable('a', '500m'));
    await on.node.clock.advance(60_000);
    expect(on.written).toEqual([]);
    on.full = false;
    await on.node.clock.advance(10_000);
    expect(on.files.allocated).toContain('uid-a');
    expect(on.files.actuated).toContain('uid-a');
  });
});

describe('an agent that is killed', () => {
  it('keeps the allocated resources of a pod, whatever its spec desires by then', async () => {
    await on.running(burstable('a', '500m'));
    await on.running(burstable('b', '1'));
    on.resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Deferred');
    await on.node.clock.advance(2_000);
    await on.node.restartAgent();
    await on.node.clock.advance(5_000);
    expect(on.web('a')).toMatchObject({ restartCount: 0, allocatedResources: { cpu: '500m' } });
    expect(on.condition('a', 'PodResizePending')?.reason).toBe('Deferred');
    expect(on.lastUpdate()).toBeUndefined();
  });

  it('between allocation and actuation is followed by one that actuates', async () => {
    await on.running(burstable('a', '500m'));
    on.node.runtime.failNext('updateContainerResources', 'busy');
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizeInProgress')?.reason === 'Error');
    expect(on.lastUpdate()).toBeUndefined();
    await on.node.restartAgent();
    await on.node.clock.until(() => on.lastUpdate() !== undefined, 30_000);
    expect(on.lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(on.web('a')?.restartCount).toBe(0);
  });

  it('writes the allocation before it actuates it, and drops deleted pods', async () => {
    await on.running(burstable('a', '500m'));
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.lastUpdate() !== undefined);
    const allocated = on.written.findIndex(
      ({ file, text }) => file === 'allocated' && text.includes('\\"requests\\":{\\"cpu\\":\\"1\\"}'),
    );
    // The actuated resources are on disk before the allocated ones.
    expect(on.written.slice(0, allocated)).toContainEqual({
      file: 'actuated',
      text: expect.stringContaining('\\"requests\\":{\\"cpu\\":\\"500m\\"}'),
    });
    on.node.api.delete('a', 0);
    await on.node.clock.until(() => !on.node.api.has('a'), 60_000);
    await on.node.clock.advance(2_000);
    expect(parseCheckpoints(on.files)).toEqual(new Map());
  });

  it('whose checkpoint is corrupted logs it, and uses the reported status', async () => {
    await on.running(burstable('a', '500m'));
    await on.running(burstable('b', '1'));
    on.resize('a', { requests: { cpu: '1500m' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.condition('a', 'PodResizePending')?.reason === 'Deferred');
    on.node.killAgent();
    on.files.allocated = '{"data":"{}","checksum":1}';
    await on.node.restartAgent();
    await on.node.clock.advance(5_000);
    expect(on.web('a')?.allocatedResources).toEqual({ cpu: '500m' });
    expect(on.lastUpdate()).toBeUndefined();
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
    on.node.runtime.failNext('createContainer', 'busy');
    on.node.api.put({ ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, other] } });
    const statusOf = (name: string) =>
      on.node.api.status('a').containerStatuses?.find((status) => status.name === name);
    await on.node.clock.until(() => statusOf('other')?.resources !== undefined);
    expect(statusOf('web')?.resources).toBeUndefined();
    on.node.killAgent();
    on.files.allocated = undefined;
    on.files.actuated = undefined;
    await on.node.restartAgent();
    await on.node.clock.until(() => statusOf('web')?.state?.running !== undefined);
    expect(on.node.recorder.reasons()).not.toContain('ResizeStarted');
    on.resize('a', { requests: { cpu: '1' }, limits: { cpu: '2' } });
    await on.node.clock.until(() => on.lastUpdate() !== undefined, 30_000);
    expect(on.lastUpdate()).toMatchObject({ cpuShares: 1024 });
  });
});

describe('a root directory that a kubelet used in between', () => {
  const small = { limits: { cpu: '2' }, requests: { cpu: '500m' } };
  const large = { limits: { cpu: '2' }, requests: { cpu: '1' } };
  const one = (resources: object) => printCheckpoint(new Map([['uid-a', { web: resources }]]));
  const restarting = { resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] };

  /** The kubelet ran while the agent did not, and left these on.files. */
  async function afterKubelet(left: typeof on.files): Promise<void> {
    on.node.killAgent();
    on.files = left;
    await on.node.restartAgent();
    await on.node.clock.advance(30_000);
  }

  it.each([
    ['may be updated', {}],
    ['restart for a resize', restarting],
  ])('leaves pods running that were not resized, where they %s', async (_, more) => {
    await on.running(burstable('a', '500m', more));
    await on.node.clock.advance(2_000);
    const id = on.web('a')?.containerID;
    await afterKubelet({ allocated: one(small), actuated: one(small) });
    expect(on.web('a')).toMatchObject({ containerID: id, restartCount: 0, ready: true });
    expect(on.lastUpdate()).toBeUndefined();
  });

  it('is one where a resize that the kubelet allocated is actuated', async () => {
    await on.running(burstable('a', '500m'));
    on.node.killAgent();
    on.resize('a', large);
    await afterKubelet({ allocated: one(large), actuated: one(small) });
    expect(on.lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(on.web('a')).toMatchObject({ restartCount: 0, allocatedResources: { cpu: '1' } });
  });

  it('is one where a resize that the kubelet actuated is not repeated', async () => {
    await on.running(burstable('a', '500m', restarting));
    on.node.killAgent();
    on.resize('a', large, restarting);
    await afterKubelet({ allocated: one(large), actuated: one(large) });
    expect(on.lastUpdate()).toBeUndefined();
    expect(on.web('a')).toMatchObject({ restartCount: 0, allocatedResources: { cpu: '1' } });
  });

  it('is returned with every running container in both files', async () => {
    await on.running(burstable('a', '500m', restarting));
    await on.node.clock.advance(2_000);
    expect(on.files).toEqual({ allocated: one(small), actuated: one(small) });
    on.resize('a', large, restarting);
    await on.node.clock.until(
      () => on.web('a')?.restartCount === 1 && on.web('a')?.state?.running !== undefined,
      60_000,
    );
    // Before the instance is created, or a kubelet that starts now would restart it once more.
    expect(on.files).toEqual({ allocated: one(large), actuated: one(large) });
  });

  it('with the former format is read, and rewritten in the kubelet’s', async () => {
    await on.running(burstable('a', '500m'));
    const id = on.web('a')?.containerID?.replace(/^.*:\/\//, '');
    on.node.killAgent();
    on.resize('a', large);
    const former = { allocated: { web: large }, actual: { web: { id, resources: small } }, resizing: true };
    await afterKubelet({
      allocated: JSON.stringify({ version: 1, pods: { 'uid-a': former } }),
      actuated: undefined,
    });
    expect(on.lastUpdate()).toEqual({ cpuShares: 1024 });
    expect(on.files).toEqual({ allocated: one(large), actuated: one(large) });
  });
});

it('writes nothing for pods without resources', async () => {
  await on.running(makePod('plain'));
  await on.node.clock.advance(10_000);
  expect(on.written).toEqual([]);
});
