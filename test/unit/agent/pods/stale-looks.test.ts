// A look at a pod that shows what was before an action ended which ended while the look lasted: nothing may be decided as if
// that action had never been.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { podUID } from '../../../../agent/model/pod-uid.ts';
import type { ContainerRuntime } from '../../../../agent/ports/runtime.ts';
import { settle } from '../../../sim/clock.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

/** How long a look takes after it has seen what is there, virtual ms. */
let lagMs: number;
let node: FakeNode;

/** The fake runtime, whose looks are late. */
function late({ runtime, clock }: FakeNode): ContainerRuntime {
  return new Proxy<ContainerRuntime>(runtime, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      if (key !== 'observePod') return member.bind(target);
      return async (...args: Parameters<ContainerRuntime['observePod']>) => {
        const seen = await target.observePod(...args);
        if (lagMs > 0) await clock.sleep(lagMs);
        return seen;
      };
    },
  });
}

beforeEach(() => {
  lagMs = 0;
  node = new FakeNode((made) => ({ runtime: late(made) }));
});

afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

const UID = podUID('uid-web-pod');

/** A look begins while the container is being started, and is over when it runs. */
async function lookDuringStart(restartPolicy: string): Promise<void> {
  node.runtime.latency.set('startContainer', 1_000);
  node.api.put(makePod('web-pod', { restartPolicy }));
  await node.clock.until(() => node.runtime.count('startContainer') === 1);
  lagMs = 5_000;
  node.agent.wake(UID, 'timer');
  await settle();
}

describe('a start that ends during a look that does not show it', () => {
  it('keeps its pod from being reported as ended, and its volumes and cgroup from being given back', async () => {
    await lookDuringStart('Never');
    void node.agent.endPod(UID, { reason: 'Evicted', message: 'low on memory', graceSeconds: 20 });
    node.runtime.ignoresTerm.add('web');
    await node.clock.advance(6_000);
    expect(node.runtime.running('web')).toBeDefined();
    expect(node.api.status('web-pod').phase).not.toBe('Failed');
    expect([node.volumes.mounted.size, node.cgroups.pods.size]).toEqual([1, 1]);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Failed', 60_000);
    expect(node.runtime.running('web')).toBeUndefined();
  });

  it('is not begun a second time', async () => {
    await lookDuringStart('Always');
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 30_000);
    lagMs = 0;
    await node.clock.advance(60_000);
    expect(node.runtime.count('createContainer')).toBe(1);
    expect(node.runtime.count('startContainer')).toBe(1);
  });
});

describe('a kill that ends during a look that does not show it', () => {
  it('is not done a second time', async () => {
    node.api.put(makePod('web-pod'));
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running');
    node.runtime.latency.set('stopContainer', 1_000);
    node.runtime.losesEvents = true;
    const { id } = node.runtime.running('web') ?? { id: '' };
    node.probe('liveness', id, 'failure', UID);
    await node.clock.until(() => node.runtime.count('stopContainer') === 1);
    lagMs = 5_000;
    node.agent.wake(UID, 'timer');
    await settle();
    await node.clock.until(() => node.api.status('web-pod').containerStatuses?.[0]?.restartCount === 1, 60_000);
    expect(node.runtime.count('stopContainer')).toBe(1);
    expect(node.recorder.of('Killing')).toHaveLength(1);
  });
});
