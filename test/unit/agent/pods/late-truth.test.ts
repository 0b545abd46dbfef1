// Facts that reach a pod worker late, or from an earlier agent: a pod refused after it ran, an end that comes after the end, a
// container that the runtime lost sight of, a sandbox that came up after all. Each was found by the simulator.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepPhase } from '../../../../agent/pods/phase.ts';
import { keepRestartCounts } from '../../../../agent/pods/restart-count.ts';
import type { PodUID, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { ContainerStatus } from '../../../../client/types.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

let node: FakeNode;
let full: boolean;

beforeEach(() => {
  full = false;
  const refusal = { reason: 'OutOfcpu', message: 'no room' };
  node = new FakeNode({ config: { admit: [() => (full ? refusal : undefined)] } });
});

afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

const phase = () => node.api.status('web-pod').phase;

async function running(spec: Parameters<typeof makePod>[1] = {}): Promise<void> {
  node.api.put(makePod('web-pod', spec));
  await node.clock.until(() => phase() === 'Running');
}

describe('a phase that was written before', () => {
  it.each([
    ['Pending', 'Running', 'Running'],
    ['Pending', 'Pending', 'Pending'],
    ['Pending', undefined, 'Pending'],
    // A manifest that came back begins anew.
    ['Pending', 'Succeeded', 'Pending'],
    ['Failed', 'Running', 'Failed'],
  ])('makes of %s, where %s was written, %s', (computed, written, expected) => {
    expect(keepPhase({ phase: computed }, written === undefined ? undefined : { phase: written }).phase).toBe(expected);
  });
});

describe('a pod that is refused by an agent started after it', () => {
  it('is Failed only when nothing of it runs any more', async () => {
    await running({ terminationGracePeriodSeconds: 20 });
    node.runtime.ignoresTerm.add('web');
    full = true;
    await node.restartAgent();
    await node.clock.advance(10_000);
    expect(node.runtime.running('web')).toBeDefined();
    expect(phase()).toBe('Running');
    await node.clock.until(() => phase() === 'Failed', 30_000);
    expect(node.runtime.running('web')).toBeUndefined();
    expect(node.api.status('web-pod')).toMatchObject({ reason: 'OutOfcpu', message: 'Pod was rejected: no room' });
  });
});

describe('a pod that has succeeded', () => {
  beforeEach(async () => {
    await running({ restartPolicy: 'Never' });
    node.runtime.exit('web', 0);
    await node.clock.until(() => phase() === 'Succeeded');
  });

  it.each([false, true])('stays so when its deadline passes, agent restarted meanwhile: %s', async (restarted) => {
    const pod = node.api.named('web-pod');
    node.api.put({ ...pod, spec: { ...pod.spec, activeDeadlineSeconds: 1 } });
    if (restarted) await node.restartAgent();
    await node.clock.advance(120_000);
    expect(phase()).toBe('Succeeded');
    expect(node.api.status('web-pod').reason).toBeUndefined();
  });

  it('stays so when the node would end it', async () => {
    void node.agent.endPod(node.api.named('web-pod').metadata.uid, { reason: 'Evicted', message: 'no memory' });
    await node.clock.advance(120_000);
    expect(phase()).toBe('Succeeded');
  });
});

describe('a container that the runtime has lost sight of', () => {
  it('keeps its pod from being reported as ended until it is known to be dead', async () => {
    await running({ restartPolicy: 'Never', activeDeadlineSeconds: 60 });
    node.runtime.ignoresTerm.add('web');
    for (const container of node.runtime.containers.values()) container.state = 'unknown';
    node.runtime.emit({ podUID: node.api.named('web-pod').metadata.uid as PodUID, type: 'podSync', at: epochMs(0) });
    node.runtime.failNext('stopContainer', 'no task');
    await node.clock.advance(500);
    expect(phase()).toBe('Running');
  });
});

describe('a sandbox that comes up after its pod has ended', () => {
  it('is found and stopped', async () => {
    await running();
    const [sandbox] = [...node.runtime.sandboxes.values()];
    const uid = node.api.named('web-pod').metadata.uid;
    await Promise.all([
      node.agent.endPod(uid, { reason: 'Evicted', message: 'no memory' }),
      node.clock.until(() => phase() === 'Failed'),
    ]);
    await node.clock.advance(1_000);
    if (sandbox === undefined) throw new Error('there was no sandbox');
    const id = 'sandbox-late' as SandboxId;
    node.runtime.sandboxes.set(id, { ...sandbox, id, attempt: 1, state: 'ready' });
    await node.clock.until(() => node.runtime.sandboxes.get(id)?.state === 'notReady', 120_000);
    expect(phase()).toBe('Failed');
  });
});

describe('restart counts that were written before', () => {
  const status = (name: string, restartCount: number): ContainerStatus => ({
    name,
    restartCount,
    image: 'i',
    imageID: '',
    ready: false,
  });

  it.each<[string, number, number, number]>([
    ['higher ones are kept', 1, 7, 7],
    ['lower ones are forgotten', 7, 1, 7],
    ['equal ones stay', 3, 3, 3],
  ])('%s', (_what, computed, written, expected) => {
    const kept = keepRestartCounts(
      { containerStatuses: [status('web', computed)], initContainerStatuses: [status('setup', computed)] },
      { containerStatuses: [status('web', written)], initContainerStatuses: [status('setup', written)] },
    );
    expect(kept.containerStatuses?.[0]?.restartCount).toBe(expected);
    expect(kept.initContainerStatuses?.[0]?.restartCount).toBe(expected);
  });

  it('change nothing where nothing was written', () => {
    const computed = { containerStatuses: [status('web', 2)] };
    expect(keepRestartCounts(computed, undefined)).toBe(computed);
  });
});

describe('a pod that is refused by an agent started after its volumes were mounted', () => {
  it('gives them back, although nothing of it ever ran', async () => {
    node.runtime.latency.set('runPodSandbox', 60_000);
    node.api.put(makePod('web-pod'));
    await node.clock.advance(1_000);
    expect([...node.volumes.mounted, ...node.cgroups.pods]).toHaveLength(2);
    expect(node.runtime.sandboxes.size).toBe(0);
    full = true;
    await node.restartAgent();
    await node.clock.until(() => phase() === 'Failed');
    await node.clock.advance(1_000);
    expect([...node.volumes.mounted, ...node.cgroups.pods]).toEqual([]);
  });
});

describe('a container whose postStart hook failed', () => {
  it('is stopped in the end, also where the runtime could not be asked at first', async () => {
    node.runtime.execs.set('hook', { exitCode: 1, takesMs: 1_000 });
    const lifecycle = { postStart: { exec: { command: ['hook'] } } };
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'nginx:stable', lifecycle }] }));
    await node.clock.until(() => node.runtime.count('execSync') === 1);
    for (let count = 0; count < 3; count++) node.runtime.failNext('observePod', 'injected');
    const first = node.runtime.running('web');
    expect(first).toBeDefined();
    await node.clock.until(() => first?.state === 'exited', 60_000);
    expect(node.recorder.of('FailedPostStartHook')).not.toEqual([]);
  });
});

describe('a pod that the server no longer has while the watch still shows it', () => {
  it('is taken down and not begun anew', async () => {
    await running({ restartPolicy: 'Always' });
    node.api.watching = false;
    node.api.forceDelete('web-pod');
    node.runtime.exit('web', 1);
    await node.clock.until(() => node.leftovers().length === 0, 60_000);
    await node.clock.advance(120_000);
    expect(node.runtime.count('runPodSandbox')).toBe(1);
    node.api.watching = true;
    node.api.put(makePod('web-pod', {}, { uid: 'uid-second' }));
    await node.clock.until(() => phase() === 'Running');
    expect(node.runtime.count('runPodSandbox')).toBe(2);
  });
});
