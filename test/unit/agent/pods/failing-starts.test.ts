// Containers that cannot be started: no image, no configuration, a hook that fails. On a simulated node and a virtual clock.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

let node: FakeNode;

beforeEach(() => {
  node = new FakeNode();
});

afterEach(() => {
  node.agent.stop();
  expect(node.violations).toEqual([]);
});

const webStatus = (name = 'web-pod') => node.api.status(name).containerStatuses?.[0];

describe('an image that cannot be had', () => {
  it('is ErrImagePull, then ImagePullBackOff with the words of the runtime, and is tried again', async () => {
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'nope:1' }] }));
    await node.clock.advance(500);
    expect(webStatus()?.state?.waiting).toEqual({
      reason: 'ErrImagePull',
      message: 'rpc error: code = NotFound desc = failed to resolve reference "nope:1": not found',
    });
    await node.clock.advance(2_000);
    expect(webStatus()?.state?.waiting?.reason).toBe('ImagePullBackOff');
    expect(webStatus()?.state?.waiting?.message).toContain('Back-off pulling image "nope:1": ErrImagePull: rpc error');
    node.runtime.registry.add('nope:1');
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 30_000);
    expect(node.recorder.reasons()).toEqual(
      expect.arrayContaining(['Pulling', 'Failed', 'BackOff', 'Pulled', 'Created', 'Started']),
    );
  });

  it('under a name that is none is InvalidImageName and never asked for', async () => {
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'Not A Name' }] }));
    await node.clock.advance(500);
    expect(webStatus()?.state?.waiting?.reason).toBe('InvalidImageName');
    expect(node.runtime.count('pullImage') + node.runtime.count('imageStatus')).toBe(0);
  });

  it('does not hold up the other containers of the pod', async () => {
    node.api.put(
      makePod('web-pod', {
        containers: [
          { name: 'bad', image: 'nope:1' },
          { name: 'web', image: 'nginx:stable' },
        ],
      }),
    );
    await node.clock.advance(1_000);
    expect(node.runtime.running('web')).toBeDefined();
  });
});

describe('a start that failed for the agent, and that the runtime executes later', () => {
  const withImage = (image: string) => makePod('web-pod', { containers: [{ name: 'web', image }] });
  const startFailed = async () => {
    node.runtime.addImage('nginx:2');
    node.runtime.failNext('startContainer', 'deadline exceeded', 'DEADLINE_EXCEEDED');
    node.api.put(withImage('nginx:stable'));
    await node.clock.until(() => node.runtime.count('startContainer') === 1);
    const [id] = node.runtime.containers.keys();
    if (id === undefined) throw new Error('no container was created');
    node.api.put(withImage('nginx:2'));
    return id;
  };

  it('finds its container gone once one of another image runs', async () => {
    const id = await startFailed();
    await node.clock.until(() => node.runtime.running('web') !== undefined, 15_000);
    await expect(node.runtime.startContainer(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(node.runtime.running('web')?.spec.container.image).toBe('nginx:2');
    expect(webStatus()?.restartCount).toBe(1);
  });

  it('keeps another from being created while its container cannot be removed', async () => {
    node.runtime.failNext('removeContainer', "container is in starting state, can't be removed");
    await startFailed();
    await node.clock.until(() => node.runtime.count('removeContainer') === 1, 15_000);
    await node.clock.advance(10);
    expect(node.runtime.count('createContainer')).toBe(1);
    expect(webStatus()?.state?.waiting?.message).toBe("container is in starting state, can't be removed");
    await node.clock.until(() => node.runtime.running('web') !== undefined, 30_000);
    expect(node.runtime.count('removeContainer')).toBe(2);
  });
});

describe('a container that cannot be made', () => {
  it.each([
    ['createContainer', 'CreateContainerError'],
    ['startContainer', 'RunContainerError'],
  ] as const)('because %s fails is waiting with %s, and tried again', async (call, reason) => {
    node.runtime.failNext(call, 'no such executable');
    node.api.put(makePod('web-pod'));
    await node.clock.advance(500);
    expect(webStatus()?.state?.waiting).toEqual({ reason, message: 'no such executable' });
    expect(node.recorder.of('Failed')).toEqual(['Error: no such executable']);
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 15_000);
  });

  it('because a ConfigMap is missing is waiting with CreateContainerConfigError', async () => {
    const envFrom = [{ configMapRef: { name: 'settings' } }];
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'nginx:stable', envFrom }] }));
    await node.clock.advance(500);
    expect(webStatus()?.state?.waiting).toEqual({
      reason: 'CreateContainerConfigError',
      message: 'configmap "settings" not found',
    });
    node.objects.configMaps.set('demo/settings', {
      metadata: { name: 'settings', uid: 'u', resourceVersion: '1' },
      data: { COLOUR: 'blue' },
    });
    await node.clock.until(() => node.api.status('web-pod').phase === 'Running', 15_000);
    expect(node.runtime.running('web')?.spec.env).toEqual([{ name: 'COLOUR', value: 'blue' }]);
  });

  it('because its postStart hook fails is stopped again', async () => {
    const lifecycle = { postStart: { exec: { command: ['warm-up'] } } };
    node.runtime.execs.set('warm-up', { exitCode: 1 });
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'nginx:stable', lifecycle }] }));
    await node.clock.advance(500);
    expect(node.recorder.of('FailedPostStartHook')).toHaveLength(1);
    expect(node.runtime.running('web')).toBeUndefined();
    node.runtime.execs.set('warm-up', { exitCode: 0 });
    await node.clock.until(() => webStatus()?.ready === true, 60_000);
  });

  it('because its postStart hook never ends is not ready, and can be deleted at any time', async () => {
    const lifecycle = { postStart: { exec: { command: ['hang'] } } };
    node.runtime.execs.set('hang', { exitCode: 0, takesMs: 86_400_000 });
    node.api.put(makePod('web-pod', { containers: [{ name: 'web', image: 'nginx:stable', lifecycle }] }));
    await node.clock.advance(60_000);
    expect(node.api.status('web-pod').phase).toBe('Pending');
    expect(webStatus()).toMatchObject({ started: false, ready: false });
    expect(webStatus()?.state).toEqual({ waiting: { reason: 'ContainerCreating' } });
    expect(node.runtime.running('web')).toBeDefined();
    node.api.delete('web-pod');
    await node.clock.until(() => !node.api.has('web-pod'), 60_000);
    expect(node.leftovers()).toEqual([]);
  });
});
