// A pod that the node itself ends: evicted, preempted, short of time. Its message, its grace period, what stays of it.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodEnd } from '../../../../agent/ports/pod-end.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

const MESSAGE = 'The node was low on resource: memory. ';
const EVICTION: PodEnd = {
  reason: 'Evicted',
  message: MESSAGE,
  graceSeconds: 1,
  disruption: { reason: 'TerminationByKubelet', message: MESSAGE },
};

let node: FakeNode;

beforeEach(async () => {
  node = new FakeNode();
  node.api.put(makePod('web-pod', { terminationGracePeriodSeconds: 300 }));
  await node.clock.until(() => node.api.status('web-pod').phase === 'Running');
});

afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

const uid = (): string => node.api.named('web-pod').metadata.uid;

describe('a pod that the node ends', () => {
  it('is Failed with reason, message and DisruptionTarget, and is not started again', async () => {
    const ended = node.agent.endPod(uid(), EVICTION);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Failed');
    await ended;
    expect(node.api.status('web-pod')).toMatchObject({ reason: 'Evicted', message: MESSAGE });
    expect(node.api.condition('web-pod', 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'TerminationByKubelet',
      message: MESSAGE,
    });
    await node.clock.advance(600_000);
    expect(node.runtime.count('startContainer')).toBe(1);
    expect(node.api.has('web-pod')).toBe(true);
    expect(node.agent.activePods()).toEqual([]);
  });

  it('gets the seconds that the node grants, not its own grace period', async () => {
    void node.agent.endPod(uid(), EVICTION);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Failed');
    expect(node.runtime.calls.filter(({ call }) => call === 'stopContainer').map(({ detail }) => detail)).toEqual([2]);
  });

  it('is over for its waiters only when nothing of it runs any more', async () => {
    node.runtime.ignoresTerm.add('web');
    let over = false;
    void node.agent.endPod(uid(), EVICTION).then(() => {
      over = true;
    });
    await node.clock.advance(1_900);
    expect(over).toBe(false);
    expect(node.api.status('web-pod').phase).toBe('Running');
    await node.clock.advance(1_000);
    expect(over).toBe(true);
    expect(node.api.status('web-pod').phase).toBe('Failed');
  });

  it('goes faster when it was being deleted slowly', async () => {
    node.runtime.ignoresTerm.add('web');
    node.api.delete('web-pod');
    await node.clock.advance(5_000);
    expect(node.runtime.running('web')).toBeDefined();
    const ended = node.agent.endPod(uid(), EVICTION);
    await node.clock.advance(3_000);
    await ended;
    expect(node.runtime.running('web')).toBeUndefined();
    await node.clock.until(() => !node.api.has('web-pod'));
  });

  it('has no DisruptionTarget when it brought the end upon itself, and keeps that of another writer', async () => {
    const pod = node.api.named('web-pod');
    const theirs = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' };
    const conditions = [...(pod.status?.conditions ?? []), theirs];
    node.api.put({ ...pod, status: { ...pod.status, conditions } });
    void node.agent.endPod(uid(), { reason: 'Evicted', message: 'too much', graceSeconds: 1 });
    await node.clock.until(() => node.api.status('web-pod').phase === 'Failed');
    expect(node.api.condition('web-pod', 'DisruptionTarget')).toEqual(theirs);
  });

  it('keeps its dead containers for their logs until the disk is wanted for better', async () => {
    void node.agent.endPod(uid(), EVICTION);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Failed');
    await node.clock.advance(1_000);
    expect(node.runtime.containers.size).toBe(1);
    const before = node.api.status('web-pod');
    await node.agent.removeEnded();
    expect(node.runtime.containers.size).toBe(0);
    expect(node.runtime.sandboxes.size).toBe(0);
    node.api.notify();
    await node.clock.advance(120_000);
    expect(node.api.status('web-pod')).toEqual(before);
  });

  it('that has ended or is unknown has nothing left to wait for', async () => {
    await node.agent.endPod('nobody', EVICTION);
    void node.agent.endPod(uid(), EVICTION);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Failed');
    await node.clock.advance(1_000);
    await node.agent.endPod(uid(), { ...EVICTION, message: 'again' });
    expect(node.api.status('web-pod').message).toBe(MESSAGE);
  });

  it('of which the runtime keeps what still runs: only what has ended is removed', async () => {
    await node.agent.removeEnded();
    expect(node.runtime.running('web')).toBeDefined();
  });
});
