// The agent is killed and started again while pods start, run and end, on a simulated node and a virtual clock.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settle } from '../../../sim/clock.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

let node: FakeNode;

beforeEach(() => {
  node = new FakeNode();
});

afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

async function running(name = 'web-pod', spec: Parameters<typeof makePod>[1] = {}) {
  node.api.put(makePod(name, spec));
  await node.clock.until(() => node.api.status(name).phase === 'Running');
}

const webStatus = (name = 'web-pod') => node.api.status(name).containerStatuses?.[0];

describe('an agent that is killed and started again', () => {
  it('restarts nothing that runs', async () => {
    await running();
    const calls = node.runtime.count('createContainer') + node.runtime.count('runPodSandbox');
    const patches = node.api.patches.length;
    await node.restartAgent();
    await node.clock.advance(5_000);
    expect(node.runtime.count('createContainer') + node.runtime.count('runPodSandbox')).toBe(calls);
    expect(node.runtime.running('web')).toBeDefined();
    expect(node.api.patches.length).toBe(patches);
  });

  it('takes a container that was created but not started, instead of making another', async () => {
    node.runtime.latency.set('startContainer', 1_000);
    node.api.put(makePod('web-pod'));
    await node.clock.advance(500);
    expect(node.runtime.count('createContainer')).toBe(1);
    node.killAgent();
    await node.clock.advance(1_000);
    for (const container of node.runtime.containers.values()) container.state = 'created';
    node.runtime.latency.clear();
    await node.restartAgent();
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 5_000);
    expect(node.runtime.count('createContainer')).toBe(1);
    expect(webStatus()?.restartCount).toBe(0);
  });

  it('keeps the restart count even when the runtime has forgotten the dead instances', async () => {
    await running();
    for (let i = 0; i < 3; i++) {
      node.runtime.exit('web', 1);
      await node.clock.until(() => node.runtime.running('web') !== undefined);
      await settle();
    }
    node.killAgent();
    node.runtime.sandboxes.clear();
    node.runtime.containers.clear();
    await node.restartAgent();
    await node.clock.until(() => webStatus()?.ready === true && (webStatus()?.restartCount ?? 0) >= 4, 60_000);
    expect(webStatus()?.restartCount).toBe(4);
  });

  it('removes pods that were force-deleted, and only once the API server shows it', async () => {
    await running();
    node.killAgent();
    node.api.watching = false;
    node.api.pods.clear();
    await node.restartAgent();
    await node.clock.advance(10_000);
    expect(node.runtime.running('web')).toBeDefined();
    node.api.watching = true;
    node.api.notify();
    await node.clock.until(() => node.leftovers().length === 0, 70_000);
  });

  it('removes what is left in the runtime of a pod whose object went before', async () => {
    await running();
    node.runtime.latency.set('removeContainer', 5_000);
    node.api.delete('web-pod', 5);
    await node.clock.until(() => !node.api.has('web-pod'), 1_000);
    node.killAgent();
    await node.clock.advance(60_000);
    node.runtime.latency.clear();
    // The calls that were under way died with the agent.
    if (node.leftovers().length === 0) throw new Error('there is nothing left to be removed');
    await node.restartAgent();
    await node.clock.until(() => node.leftovers().length === 0, 10_000);
    expect(node.agent.listPods()).toEqual([]);
  });

  it('finishes a deletion that began before', async () => {
    await running();
    node.killAgent();
    node.api.delete('web-pod', 5);
    await node.restartAgent();
    await node.clock.until(() => !node.api.has('web-pod'), 10_000);
    expect(node.leftovers()).toEqual([]);
  });
});
