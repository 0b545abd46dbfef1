// What happens to a pod while it runs: verdicts of its probes, changes of its definition, containers that are added, and
// the init containers before. On a simulated node and a virtual clock.

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

describe('probes', () => {
  const probed = (probe: object) => ({ containers: [{ name: 'web', image: 'nginx:stable', ...probe }] });
  const readinessProbe = { tcpSocket: { port: 80 } };

  it('hold back readiness until the first success', async () => {
    await running('web-pod', probed({ readinessProbe }));
    expect(webStatus()).toMatchObject({ started: true, ready: false });
    const id = node.agent.containerIdFor('demo', 'web-pod', 'web');
    node.probe('readiness', id ?? '', 'success', 'uid-web-pod');
    await settle();
    expect(webStatus()?.ready).toBe(true);
    expect(node.api.condition('web-pod', 'Ready')?.status).toBe('True');
  });

  it('have a container that fails liveness killed and restarted', async () => {
    await running('web-pod', probed({ livenessProbe: readinessProbe }));
    const id = node.agent.containerIdFor('demo', 'web-pod', 'web');
    node.probe('liveness', id ?? '', 'failure', 'uid-web-pod');
    await node.clock.until(() => webStatus()?.restartCount === 1 && webStatus()?.ready === true, 5_000);
    expect(node.recorder.of('Killing')).toEqual(['Container web failed liveness probe, will be restarted']);
  });

  it('have a container that fails liveness started again under OnFailure, although it then ends well', async () => {
    node.runtime.endsOnTerm.set('web', 0);
    await running('web-pod', { restartPolicy: 'OnFailure', ...probed({ livenessProbe: readinessProbe }) });
    const id = node.agent.containerIdFor('demo', 'web-pod', 'web');
    node.probe('liveness', id ?? '', 'failure', 'uid-web-pod');
    await node.clock.until(() => webStatus()?.restartCount === 1 && webStatus()?.ready === true, 5_000);
    expect(webStatus()?.lastState?.terminated?.exitCode).toBe(0);
    expect(node.api.status('web-pod').phase).toBe('Running');
  });
});

describe('a container whose postStart hook takes its time', () => {
  it('runs when the hook has ended, the first time and every time, whatever else happens meanwhile', async () => {
    const lifecycle = { postStart: { exec: { command: ['warm-up'] } } };
    node.runtime.execs.set('warm-up', { exitCode: 0, takesMs: 90_000 });
    const containers = [
      { name: 'other', image: 'nginx:stable' },
      { name: 'web', image: 'nginx:stable', lifecycle },
    ];
    node.api.put(makePod('web-pod', { containers }));
    const web = () => node.api.status('web-pod').containerStatuses?.find(({ name }) => name === 'web');
    await node.clock.advance(30_000);
    node.runtime.exit('other', 1);
    await node.clock.advance(50_000);
    expect(web()).toMatchObject({ ready: false, state: { waiting: { reason: 'ContainerCreating' } } });
    await node.clock.until(() => web()?.ready === true, 20_000);
    expect(web()?.state?.running).toBeDefined();

    node.runtime.exit('web', 3);
    await node.clock.advance(80_000);
    expect(node.runtime.running('web')).toBeDefined();
    expect(web()).toMatchObject({ ready: false, restartCount: 0, state: { terminated: { exitCode: 3 } } });
    expect(node.api.status('web-pod').phase).toBe('Running');
    await node.clock.until(() => web()?.restartCount === 1 && web()?.ready === true, 20_000);
  });
});

describe('the definition of a running pod', () => {
  it('changed in one image restarts that container alone', async () => {
    const containers = [
      { name: 'web', image: 'nginx:stable' },
      { name: 'side', image: 'nginx:stable' },
    ];
    await running('web-pod', { containers });
    const side = node.runtime.running('side')?.id;
    const pod = node.api.named('web-pod');
    const changed = containers.map((c) => (c.name === 'web' ? { ...c, image: 'busybox:stable' } : c));
    node.api.put({ ...pod, spec: { ...pod.spec, containers: changed } });
    await node.clock.until(() => node.runtime.running('web')?.image === 'busybox:stable', 60_000);
    expect(node.recorder.of('Killing')).toEqual(['Container web definition changed, will be restarted']);
    expect(node.runtime.running('side')?.id).toBe(side);
  });

  it.each(['Never', 'OnFailure'])('changed in its image restarts the container under %s as well', async (policy) => {
    node.runtime.endsOnTerm.set('web', 0);
    await running('web-pod', { restartPolicy: policy });
    const pod = node.api.named('web-pod');
    node.api.put({ ...pod, spec: { ...pod.spec, containers: [{ name: 'web', image: 'busybox:stable' }] } });
    // A slow registry: the status until then must not be a final phase.
    node.runtime.latency.set('imageStatus', 5_000);
    await node.clock.until(() => webStatus()?.state?.waiting !== undefined, 60_000);
    expect(webStatus()).toMatchObject({ restartCount: 0, lastState: { terminated: { exitCode: 0 } } });
    await node.clock.until(() => node.runtime.running('web')?.image === 'busybox:stable', 60_000);
    await settle();
    expect(node.api.status('web-pod').phase).toBe('Running');
    expect(webStatus()).toMatchObject({ restartCount: 1, ready: true });
    expect(webStatus()?.lastState?.terminated?.exitCode).toBe(0);
  });

  it('given a deadline that passes makes the pod Failed with DeadlineExceeded', async () => {
    await running('web-pod', { activeDeadlineSeconds: 60 });
    await node.clock.advance(59_000);
    expect(node.api.status('web-pod').phase).toBe('Running');
    await node.clock.advance(2_000);
    expect(node.api.status('web-pod')).toMatchObject({ phase: 'Failed', reason: 'DeadlineExceeded' });
    expect(node.recorder.of('DeadlineExceeded')).toEqual([
      'Pod was active on the node longer than the specified deadline',
    ]);
    expect(node.runtime.running('web')).toBeUndefined();
  });

  it('given an ephemeral container starts that one and leaves the others', async () => {
    await running();
    const pod = node.api.named('web-pod');
    const ephemeralContainers = [{ name: 'debugger', image: 'busybox:stable', targetContainerName: 'web' }];
    node.api.put({ ...pod, spec: { ...pod.spec, ephemeralContainers } });
    await node.clock.until(() => node.runtime.running('debugger') !== undefined, 5_000);
    expect(node.runtime.running('debugger')?.spec.targetContainerId).toBe(node.runtime.running('web')?.id);
    expect(node.api.status('web-pod').ephemeralContainerStatuses?.[0]?.state?.running).toBeDefined();
  });
});

describe('an ephemeral container', () => {
  it('whose target has not begun waits for it, and says so', async () => {
    const pod = makePod('web-pod', { initContainers: [{ name: 'first', image: 'busybox:stable' }] });
    node.api.put(pod);
    await node.clock.until(() => node.runtime.running('first') !== undefined);
    const ephemeralContainers = [{ name: 'debugger', image: 'busybox:stable', targetContainerName: 'web' }];
    node.api.put({ ...node.api.named('web-pod'), spec: { ...pod.spec, ephemeralContainers } });
    const debuggers = () => node.api.status('web-pod').ephemeralContainerStatuses?.[0];
    await node.clock.until(() => debuggers()?.state?.waiting?.reason === 'CreateContainerConfigError', 5_000);
    expect(debuggers()?.state?.waiting?.message).toBe('unable to find target container web');
    expect(node.recorder.of('Failed')[0]).toBe('Error: unable to find target container web');
    node.runtime.exit('first', 0);
    await node.clock.until(() => node.runtime.running('debugger') !== undefined, 30_000);
    expect(node.runtime.running('debugger')?.spec.targetContainerId).toBe(node.runtime.running('web')?.id);
  });
});

describe('init containers', () => {
  it('run one after the other, and the rest only after them', async () => {
    node.api.put(
      makePod('web-pod', {
        initContainers: [
          { name: 'first', image: 'busybox:stable' },
          { name: 'second', image: 'busybox:stable' },
        ],
      }),
    );
    await node.clock.until(() => node.runtime.running('first') !== undefined);
    expect(node.runtime.running('second')).toBeUndefined();
    expect(webStatus()?.state?.waiting?.reason).toBe('PodInitializing');
    node.runtime.exit('first', 0);
    await node.clock.until(() => node.runtime.running('second') !== undefined);
    expect(node.runtime.running('web')).toBeUndefined();
    node.runtime.exit('second', 0);
    await node.clock.until(() => node.runtime.running('web') !== undefined);
    await settle();
    expect(node.api.condition('web-pod', 'Initialized')?.status).toBe('True');
  });
});
