// Admission as a whole node applies it: refused pods leave no trace, and a critical pod waits for the room made for it.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAdmission } from '../../../../agent/admission/admission.ts';
import type { Pod } from '../../../../client/types.ts';
import { settle } from '../../../sim/clock.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';
import { NODE } from './support.ts';

let node: FakeNode;

beforeEach(() => {
  const admit = createAdmission({ node: () => NODE, kernelVersion: '6.1.0', allowedUnsafeSysctls: [], appArmor: true });
  node = new FakeNode({ config: { admit } });
});
afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

function pod(name: string, cpu: string, spec: Partial<Pod['spec']> = {}): Pod {
  const container = { name, image: 'nginx:stable', imagePullPolicy: 'IfNotPresent', resources: { requests: { cpu } } };
  const made = makePod(name, { containers: [container], ...spec });
  return { ...made, status: { phase: 'Pending' } };
}
const CRITICAL = { priority: 2_000_001_000, priorityClassName: 'system-node-critical' };
const phase = (name: string) => node.api.status(name).phase;

async function running(...pods: Pod[]): Promise<void> {
  for (const each of pods) node.api.put(each);
  await node.clock.until(() => pods.every(({ metadata }) => phase(metadata.name) === 'Running'));
}

describe('a pod that is refused', () => {
  it('has sandbox, cgroup and volumes never, a terminal phase at once, an event, and can be deleted', async () => {
    node.api.put(pod('big', '3'));
    await settle();
    expect(node.api.status('big')).toMatchObject({
      phase: 'Failed',
      reason: 'OutOfcpu',
      message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000",
    });
    expect(node.recorder.of('OutOfcpu')).toHaveLength(1);
    expect(node.leftovers()).toEqual([]);
    await node.clock.advance(300_000);
    expect(node.runtime.count('runPodSandbox')).toBe(0);
    node.api.delete('big');
    await node.clock.until(() => !node.api.has('big'), 5_000);
    expect(node.leftovers()).toEqual([]);
  });

  it('stays refused when there is room later, also for the next agent', async () => {
    await running(pod('first', '1500m'));
    node.api.put(pod('second', '1'));
    await settle();
    node.api.delete('first', 1);
    await node.clock.until(() => !node.api.has('first'));
    await node.restartAgent();
    await node.clock.advance(60_000);
    expect(phase('second')).toBe('Failed');
    expect(node.runtime.count('runPodSandbox', 'second')).toBe(0);
  });

  it('takes no room from others', async () => {
    node.api.put(pod('big', '3'));
    await running(pod('fits', '2'));
  });
});

describe('a pod that runs already', () => {
  it('is admitted before younger ones when the agent starts again', async () => {
    await running(pod('old', '1500m'));
    node.killAgent();
    const creationTimestamp = '2025-01-01T00:00:00Z';
    const older = pod('older', '1');
    node.api.put({ ...older, metadata: { ...older.metadata, creationTimestamp } });
    await node.restartAgent();
    await node.clock.advance(5_000);
    expect(phase('old')).toBe('Running');
    expect(node.api.status('older')).toMatchObject({ phase: 'Failed', reason: 'OutOfcpu' });
  });
});

describe('a critical pod', () => {
  it('starts when the pod that makes room has ended, and not before', async () => {
    await running(pod('ordinary', '1500m', { terminationGracePeriodSeconds: 20 }));
    node.runtime.ignoresTerm.add('ordinary');
    node.api.put(pod('critical', '1', CRITICAL));
    await node.clock.advance(10_000);
    expect(node.recorder.of('Preempting')).toEqual(['Preempted in order to admit critical pod']);
    expect(node.runtime.count('runPodSandbox', 'critical')).toBe(0);
    await node.clock.until(() => phase('critical') === 'Running', 30_000);
    expect(node.api.status('ordinary')).toMatchObject({
      phase: 'Failed',
      reason: 'Preempting',
      message: 'Preempted in order to admit critical pod',
    });
    expect(node.runtime.running('ordinary')).toBeUndefined();
  });

  it('gets the room even when another pod comes meanwhile', async () => {
    await running(pod('ordinary', '1500m', { terminationGracePeriodSeconds: 20 }));
    node.runtime.ignoresTerm.add('ordinary');
    node.api.put(pod('critical', '1500m', CRITICAL));
    await settle();
    node.api.put(pod('late', '1'));
    await node.clock.until(() => phase('critical') === 'Running', 60_000);
    expect(node.api.status('late')).toMatchObject({ phase: 'Failed', reason: 'OutOfcpu' });
  });

  it('leaves pods alone that need not end', async () => {
    await running(pod('small', '200m'), pod('large', '1500m'));
    node.api.put(pod('critical', '1', CRITICAL));
    await node.clock.until(() => phase('critical') === 'Running', 60_000);
    expect(phase('small')).toBe('Running');
    expect(phase('large')).toBe('Failed');
  });

  it('for which no room can be made is refused, and evicts no pod', async () => {
    await running(pod('ordinary', '500m'));
    node.api.put(pod('critical', '3', CRITICAL));
    await settle();
    expect(node.api.status('critical')).toMatchObject({ phase: 'Failed', reason: 'UnexpectedAdmissionError' });
    expect(phase('ordinary')).toBe('Running');
  });
});
