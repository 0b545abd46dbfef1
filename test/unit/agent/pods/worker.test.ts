// The worker, the status manager and the pod manager together, on a simulated node and a virtual clock.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { podUID } from '../../../../agent/model/pod-uid.ts';
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

describe('a new pod', () => {
  it('is brought up with one call of each kind and reported Running with its address', async () => {
    await running();
    expect(
      node.runtime.order('runPodSandbox', 'imageStatus', 'createContainer', 'startContainer', 'pullImage'),
    ).toEqual(['runPodSandbox web-pod', 'imageStatus nginx:stable', 'createContainer web', 'startContainer web']);
    const status = node.api.status('web-pod');
    expect(status.podIP).toBe('10.0.0.1');
    expect(status.podIPs).toEqual([{ ip: '10.0.0.1' }]);
    expect(status.hostIP).toBe('192.0.2.1');
    expect(status.observedGeneration).toBe(1);
    expect(status.startTime).toBe('2026-01-01T00:00:00Z');
    expect(webStatus()).toMatchObject({
      ready: true,
      started: true,
      restartCount: 0,
      containerID: 'fake://web-2',
    });
    for (const type of ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']) {
      expect(node.api.condition('web-pod', type)?.status).toBe('True');
    }
    expect(node.recorder.reasons()).toEqual(['Pulled', 'Created', 'Started']);
  });

  it('is observed at most twice during its start: after its sandbox, and after its container', async () => {
    await running();
    await settle();
    expect(node.runtime.count('observePod')).toBe(2);
  });

  it('shows ContainerCreating while its sandbox is being made, when that takes longer than most do', async () => {
    node.runtime.latency.set('runPodSandbox', 5_000);
    node.api.put(makePod('web-pod'));
    await node.clock.advance(1_000);
    expect(node.api.status('web-pod').phase).toBe('Pending');
    expect(webStatus()?.state).toEqual({ waiting: { reason: 'ContainerCreating' } });
    expect(node.api.condition('web-pod', 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [web]',
    });
  });

  it('starts nothing when its volumes cannot be mounted, says why, and goes on when they can', async () => {
    node.volumes.failure = 'MountVolume.SetUp failed for volume "data" : configmap "x" not found';
    node.api.put(makePod('web-pod'));
    await node.clock.advance(3_000);
    expect(node.recorder.of('FailedMount')[0]).toContain('configmap "x" not found');
    expect(node.runtime.count('runPodSandbox')).toBe(0);
    node.volumes.failure = undefined;
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 15_000);
  });

  it('is tried again with growing pauses when its sandbox fails, and leaks none', async () => {
    for (let i = 0; i < 3; i++) node.runtime.failNext('runPodSandbox', 'plugin type="bridge" failed (add): no');
    node.api.put(makePod('web-pod'));
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 30_000);
    expect(node.recorder.of('FailedCreatePodSandBox')[0]).toBe(
      'Failed to create pod sandbox: rpc error: code = Unknown desc = plugin type="bridge" failed (add): no',
    );
    const times = node.runtime.calls.filter(({ call }) => call === 'runPodSandbox').map(({ at }) => at);
    expect(times.map((at) => at - (times[0] ?? 0))).toEqual([0, 1_000, 3_000, 7_000]);
    expect(node.runtime.sandboxes.size).toBe(1);
  });

  it('that the node refuses is Failed with the reason, and nothing of it is started', async () => {
    node.agent.stop();
    node = new FakeNode({ config: { admit: [() => ({ reason: 'OutOfcpu', message: 'Node did not have enough' })] } });
    node.api.put(makePod('web-pod'));
    await settle();
    expect(node.api.status('web-pod')).toMatchObject({ phase: 'Failed', reason: 'OutOfcpu' });
    expect(node.runtime.count('runPodSandbox')).toBe(0);
    node.api.delete('web-pod');
    await node.clock.until(() => !node.api.has('web-pod'));
  });
});

describe('a container that ends', () => {
  it('is reported at once and restarted at once the first time', async () => {
    await running();
    node.runtime.exit('web', 1);
    await settle();
    await node.clock.until(() => webStatus()?.state?.running !== undefined && webStatus()?.restartCount === 1, 1_000);
    expect(webStatus()?.lastState?.terminated).toMatchObject({ exitCode: 1, reason: 'Error' });
    expect(node.api.status('web-pod').phase).toBe('Running');
  });

  it('waits in CrashLoopBackOff from the second time on, twice as long each time, up to five minutes', async () => {
    await running();
    const waits: number[] = [];
    for (let round = 0; round < 8; round++) {
      node.runtime.exit('web', 1);
      const ended = node.clock.now();
      await node.clock.until(() => node.runtime.running('web') !== undefined);
      waits.push(node.clock.now() - ended);
      await settle();
    }
    expect(waits).toEqual([0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
    expect(webStatus()?.restartCount).toBe(8);
  });

  it('says which back-off holds it up', async () => {
    await running();
    node.runtime.exit('web', 1);
    await node.clock.until(() => node.runtime.running('web') !== undefined);
    node.runtime.exit('web', 1);
    await settle();
    expect(webStatus()?.state?.waiting).toEqual({
      reason: 'CrashLoopBackOff',
      message: 'back-off 10s restarting failed container=web pod=web-pod_demo(uid-web-pod)',
    });
    expect(webStatus()?.lastState?.terminated?.exitCode).toBe(1);
    expect(node.recorder.of('BackOff')).toEqual([
      'Back-off restarting failed container web in pod web-pod_demo(uid-web-pod)',
    ]);
    expect(node.api.condition('web-pod', 'Ready')?.status).toBe('False');
  });

  it('starts afresh after ten minutes of running', async () => {
    await running();
    for (let i = 0; i < 3; i++) {
      node.runtime.exit('web', 1);
      await node.clock.until(() => node.runtime.running('web') !== undefined);
    }
    await node.clock.advance(601_000);
    node.runtime.exit('web', 1);
    const ended = node.clock.now();
    await node.clock.until(() => node.runtime.running('web') !== undefined);
    expect(node.clock.now() - ended).toBe(0);
  });

  it('keeps one dead instance for logs -p, and its count when even that is removed', async () => {
    await running();
    for (let i = 0; i < 4; i++) {
      node.runtime.exit('web', 1);
      await node.clock.until(() => node.runtime.running('web') !== undefined);
      await settle();
    }
    expect(node.runtime.containers.size).toBe(2);
    const dead = [...node.runtime.containers.values()].find(({ state }) => state === 'exited');
    expect(node.agent.containerIdFor('demo', 'web-pod', 'web', { previous: true })).toBe(dead?.id);
    expect(webStatus()?.restartCount).toBe(4);
  });

  it('is noticed by the slow relist when its event was lost', async () => {
    await running();
    node.runtime.losesEvents = true;
    node.runtime.exit('web', 1);
    await node.clock.until(() => webStatus()?.restartCount === 1, 61_000);
  });

  it.each([
    ['Never', 0, 'Succeeded'],
    ['Never', 3, 'Failed'],
    ['OnFailure', 0, 'Succeeded'],
  ])(
    'with restartPolicy %s and exit code %i makes the pod %s, and its resources are released',
    async (restartPolicy, code, phase) => {
      await running('job', { restartPolicy });
      node.runtime.exit('web', code);
      await node.clock.until(() => node.api.status('job').phase === phase, 1_000);
      await node.clock.advance(5_000);
      expect(node.runtime.count('startContainer')).toBe(1);
      expect([...node.runtime.sandboxes.values()].map(({ state }) => state)).toEqual(['notReady']);
      expect(node.volumes.mounted.size + node.cgroups.pods.size).toBe(0);
      // Its logs stay readable until it is deleted.
      expect(node.runtime.containers.size).toBe(1);
      node.api.delete('job');
      await node.clock.until(() => !node.api.has('job'), 5_000);
      expect(node.leftovers()).toEqual([]);
    },
  );
});

describe('a deletion', () => {
  it('stops, unmounts and gives back everything before the object goes, and removes the rest after that', async () => {
    await running();
    node.runtime.latency.set('removeContainer', 5_000);
    node.api.delete('web-pod', 30);
    await node.clock.until(() => !node.api.has('web-pod'), 1_000);
    expect(node.runtime.running('web')).toBeUndefined();
    expect([...node.runtime.sandboxes.values()].map(({ state }) => state)).toEqual(['notReady']);
    expect(node.volumes.mounted.size + node.cgroups.pods.size).toBe(0);
    // The agent does not take the pod for gone before the runtime has forgotten it.
    expect(node.agent.listPods()).toHaveLength(1);
    await node.clock.until(() => node.leftovers().length === 0, 10_000);
    await settle();
    expect(node.recorder.of('Killing')).toEqual(['Stopping container web']);
    expect(node.runtime.order('stopContainer', 'stopPodSandbox', 'removeContainer', 'removePodSandbox')).toEqual([
      'stopContainer web',
      'stopPodSandbox sandbox-1',
      'removeContainer web',
      'removePodSandbox sandbox-1',
    ]);
    expect(node.agent.listPods()).toEqual([]);
  });

  it('gives a container that ignores TERM its grace period, which can be shortened', async () => {
    await running();
    node.runtime.ignoresTerm.add('web');
    node.api.delete('web-pod', 30);
    await node.clock.advance(5_000);
    expect(node.runtime.running('web')).toBeDefined();
    node.api.delete('web-pod', 3);
    await node.clock.advance(3_500);
    expect(node.api.has('web-pod')).toBe(false);
    expect(node.runtime.calls.filter(({ call }) => call === 'stopContainer').map(({ detail }) => detail)).toEqual([
      30, 3,
    ]);
  });

  it('never waits less than two seconds between TERM and KILL', async () => {
    await running();
    node.runtime.ignoresTerm.add('web');
    node.api.delete('web-pod', 0);
    await node.clock.until(() => !node.api.has('web-pod'), 5_000);
    expect(node.runtime.calls.find(({ call }) => call === 'stopContainer')?.detail).toBe(2);
  });

  it('during a long image pull does not wait for the pull', async () => {
    node.runtime.latency.set('pullImage', 600_000);
    node.runtime.registry.add('big:1');
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'big:1' }] }));
    await node.clock.advance(1_000);
    expect(node.runtime.count('pullImage')).toBe(1);
    node.api.delete('web-pod', 30);
    await node.clock.advance(1_000);
    expect(node.api.has('web-pod')).toBe(false);
    expect(node.leftovers()).toEqual([]);
  });

  it('during a wait for volumes does not wait for them', async () => {
    node.volumes.hangs = true;
    node.api.put(makePod('web-pod'));
    await node.clock.advance(1_000);
    node.api.delete('web-pod', 30);
    await node.clock.advance(1_000);
    expect(node.api.has('web-pod')).toBe(false);
    expect(node.leftovers()).toEqual([]);
  });

  it('during the making of the sandbox leaks none', async () => {
    node.runtime.latency.set('runPodSandbox', 2_000);
    node.api.put(makePod('web-pod'));
    await node.clock.advance(500);
    node.api.delete('web-pod', 30);
    await node.clock.until(() => !node.api.has('web-pod'), 10_000);
    expect(node.leftovers()).toEqual([]);
    expect(node.runtime.count('createContainer')).toBe(0);
  });

  it('by force leaves its place to another pod at once, though it still terminates', async () => {
    node.agent.stop();
    const admit = (_pod: unknown, others: readonly unknown[]) =>
      others.length === 0 ? undefined : { reason: 'OutOfcpu', message: 'one pod at a time' };
    node = new FakeNode({ config: { admit: [admit] } });
    await running();
    node.api.put(makePod('second'));
    await node.clock.until(() => node.api.status('second').reason === 'OutOfcpu');
    node.runtime.latency.set('stopContainer', 60_000);
    node.api.forceDelete('web-pod');
    node.api.put(makePod('third'));
    await node.clock.until(() => node.api.status('third').phase === 'Running', 30_000);
    expect(node.agent.listPods().map(({ metadata }) => metadata.name)).toContain('web-pod');
  });

  it('by force does not leave the container running', async () => {
    await running();
    node.api.forceDelete('web-pod');
    await node.clock.until(() => node.leftovers().length === 0, 5_000);
    expect(node.agent.listPods()).toEqual([]);
  });

  it('is retried when the runtime will not stop the container', async () => {
    await running();
    node.runtime.failNext('stopContainer', 'shim is stuck', 'DEADLINE_EXCEEDED');
    node.api.delete('web-pod');
    await node.clock.until(() => !node.api.has('web-pod'), 5_000);
    expect(node.recorder.of('FailedKillPod')[0]).toBe(
      'error killing pod: failed to "KillContainer" for "web" with KillContainerError: ' +
        '"rpc error: code = DeadlineExceeded desc = shim is stuck"',
    );
    expect(node.leftovers()).toEqual([]);
  });

  it('runs the preStop hook first and takes its time out of the grace period', async () => {
    const lifecycle = { preStop: { exec: { command: ['drain'] } } };
    await running('web-pod', { containers: [{ name: 'web', image: 'nginx:stable', lifecycle }] });
    node.runtime.execs.set('drain', { exitCode: 0, takesMs: 10_000 });
    node.api.delete('web-pod', 30);
    await node.clock.until(() => !node.api.has('web-pod'), 60_000);
    expect(node.runtime.calls.find(({ call }) => call === 'stopContainer')?.detail).toBe(20);
  });

  it('stops sidecars after the main containers, in reverse order', async () => {
    await running('web-pod', {
      initContainers: [
        { name: 'one', image: 'busybox:stable', restartPolicy: 'Always' },
        { name: 'two', image: 'busybox:stable', restartPolicy: 'Always' },
      ],
    });
    node.runtime.ignoresTerm.add('web');
    node.api.delete('web-pod', 10);
    await node.clock.until(() => !node.api.has('web-pod'), 60_000);
    expect(node.runtime.order('stopContainer')).toEqual([
      'stopContainer web',
      'stopContainer two',
      'stopContainer one',
    ]);
  });

  it('of a recreated pod of the same name does not touch the new one', async () => {
    await running();
    node.api.forceDelete('web-pod');
    node.api.put(makePod('web-pod', {}, { uid: 'uid-second' }));
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 5_000);
    await node.clock.advance(5_000);
    expect([...node.runtime.containers.values()].map(({ pod }) => pod.uid)).toEqual(['uid-second']);
  });
});

describe('a sandbox that dies', () => {
  it('is replaced with its containers, and the event says so', async () => {
    await running();
    const [first] = node.runtime.sandboxes.keys();
    if (first === undefined) throw new Error('no sandbox');
    node.runtime.killSandbox(first);
    await node.clock.until(() => webStatus()?.restartCount === 1 && webStatus()?.ready === true, 60_000);
    expect(node.recorder.of('SandboxChanged')).toEqual(['Pod sandbox changed, it will be killed and re-created.']);
    const ready = [...node.runtime.sandboxes.values()].filter(({ state }) => state === 'ready');
    expect(ready.map(({ attempt }) => attempt)).toEqual([1]);
    expect(node.api.status('web-pod').podIP).toBe(ready[0]?.ips[0]);
  });
});

describe('an API server that cannot be reached', () => {
  it('does not disturb pods, and gets the newest status once it is back', async () => {
    await running();
    node.api.unreachable = true;
    node.runtime.exit('web', 1);
    await node.clock.advance(5_000);
    expect(node.runtime.running('web')).toBeDefined();
    expect(webStatus()?.restartCount).toBe(0);
    node.api.unreachable = false;
    await node.clock.until(() => webStatus()?.restartCount === 1, 15_000);
  });

  it('holds back only the end of a deletion', async () => {
    await running();
    node.api.delete('web-pod', 5);
    node.api.unreachable = true;
    await node.clock.advance(5_000);
    expect(node.leftovers()).toEqual([]);
    node.api.unreachable = false;
    await node.clock.until(() => !node.api.has('web-pod'), 15_000);
  });

  it('learns nothing twice: a quiet pod costs no writes', async () => {
    await running();
    await node.clock.advance(1_000);
    const before = node.api.patches.length;
    await node.clock.advance(600_000);
    expect(node.api.patches.length).toBe(before);
  });
});

describe('a clock that is set back by an hour', () => {
  it('does not make anything wait an hour', async () => {
    node.runtime.failNext('runPodSandbox', 'no');
    node.api.put(makePod('web-pod'));
    await node.clock.advance(100);
    node.clock.jump(-3_600_000);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 90_000);
    node.runtime.exit('web', 1);
    await node.clock.until(() => node.runtime.running('web') !== undefined, 90_000);
    node.runtime.exit('web', 1);
    node.clock.jump(-3_600_000);
    await node.clock.until(() => node.runtime.running('web') !== undefined, 90_000);
  });
});

describe('the sync loop', () => {
  it('moves while a pull or a grace period takes long, and counts as stuck when a look at a pod does not end', async () => {
    await running();
    await node.clock.advance(3_600_000);
    expect(node.agent.syncLoopProblem()).toBeUndefined();
    node.runtime.latency.set('observePod', 3_600_000);
    node.agent.wake(podUID('uid-web-pod'), 'timer');
    await node.clock.advance(480_000);
    expect(node.agent.syncLoopProblem()).toBeUndefined();
    await node.clock.advance(60_000);
    expect(node.agent.syncLoopProblem()).toMatch(
      /^sync Loop took longer than expected: syncPod demo\/web-pod for (8|9)m[\d.]+s$/,
    );
    node.runtime.latency.clear();
    await node.clock.advance(3_600_000);
    expect(node.agent.syncLoopProblem()).toBeUndefined();
  });
});
