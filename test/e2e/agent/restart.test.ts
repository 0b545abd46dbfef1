// Containers that end: restarted or not, by the pod's restartPolicy.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { goDuration } from '../../../lib/go-duration.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import {
  apply,
  condition,
  container,
  eventsOf,
  eventually,
  eventWhen,
  FOREVER,
  mainProcess,
  pidsOf,
  podSeen,
  podWhen,
  prints,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;

beforeAll(async () => {
  lab = await shareLab();
});
afterAll(() => lab?.stop());

test('a container that is killed from outside comes back at once, in the same sandbox', async () => {
  await apply(lab, shellPod('victim', FOREVER));
  const first = await ready(lab, 'victim');
  const id = container(first).containerID;
  process.kill(await mainProcess(lab, first), 'SIGKILL');
  const second = await podWhen(
    lab,
    'victim',
    'running again',
    (pod) => container(pod).restartCount === 1 && container(pod).ready,
  );
  expect(container(second).containerID).not.toBe(id);
  expect(container(second).lastState?.terminated).toMatchObject({ exitCode: 137, reason: 'Error', containerID: id });
  expect(second.status?.podIP).toBe(first.status?.podIP);
  expect(condition(second, 'Ready')?.status).toBe('True');
});

test('a container that fails again and again waits in CrashLoopBackOff, and reports for how long', async () => {
  const waits = ({ status }: Pod): boolean =>
    status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff';
  // The first time is over after ten seconds. A start that takes as long has no wait after it, but a longer one after the next.
  const crashing = await podSeen(lab, 'crasher', 'in CrashLoopBackOff', waits);
  await apply(lab, shellPod('crasher', 'echo bad; exit 5'));
  const pod = await crashing.seen;
  const status = container(pod);
  const { restartCount } = status;
  expect(restartCount).toBeGreaterThanOrEqual(1);
  const seconds = 10 * 2 ** (restartCount - 1);
  expect(status.state?.waiting?.message).toBe(
    `back-off ${goDuration(seconds * 1_000)} restarting failed container=main pod=crasher_${lab.namespace}(${pod.metadata.uid})`,
  );
  expect(status.lastState?.terminated).toMatchObject({ exitCode: 5, reason: 'Error' });
  expect(pod.status?.phase).toBe('Running');
  expect(condition(pod, 'Ready')).toMatchObject({ status: 'False', reason: 'ContainersNotReady' });
  await eventWhen(
    lab,
    'crasher',
    'BackOff',
    new RegExp(`^Back-off restarting failed container main in pod crasher_${lab.namespace}\\(`),
  );
  const ended = status.lastState?.terminated;
  // While the next one runs, the last state is still that of the one before.
  const later = await podWhen(lab, 'crasher', 'tried again and ended', (each) => {
    const now = container(each);
    return now.restartCount > restartCount && now.lastState?.terminated?.containerID !== ended?.containerID;
  });
  const began = Date.parse(container(later).lastState?.terminated?.startedAt ?? '');
  // Both times are in whole seconds.
  expect(began - Date.parse(ended?.finishedAt ?? '')).toBeGreaterThanOrEqual((seconds - 1) * 1_000);
});

test('with restartPolicy Never a pod ends Succeeded or Failed, by its container’s exit code, and its address is released', async () => {
  await apply(
    lab,
    shellPod('fine', 'echo -n bye > /dev/termination-log', { restartPolicy: 'Never' }),
    shellPod(
      'bad',
      'echo -n why; exit 2',
      { restartPolicy: 'Never' },
      { terminationMessagePolicy: 'FallbackToLogsOnError' },
    ),
  );
  const fine = await podWhen(lab, 'fine', 'over', (pod) => pod.status?.phase === 'Succeeded');
  expect(container(fine).state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed', message: 'bye' });
  expect(condition(fine, 'Ready')).toMatchObject({ status: 'False', reason: 'PodCompleted' });
  const bad = await podWhen(lab, 'bad', 'over', (pod) => pod.status?.phase === 'Failed');
  expect(container(bad).state?.terminated).toMatchObject({ exitCode: 2, reason: 'Error', message: 'why' });
  expect(container(bad).restartCount).toBe(0);
  // The phase is reported as soon as the containers have exited; the sandbox is stopped right after.
  await eventually('nothing of the pod to run', async () =>
    (await pidsOf(lab, fine.metadata.uid)).length === 0 ? true : undefined,
  );
});

test('with restartPolicy OnFailure a container is tried again until it succeeds', async () => {
  const script = 'if [ -e /work/again ]; then exit 0; fi; touch /work/again; exit 1';
  const spec = { restartPolicy: 'OnFailure', volumes: [{ name: 'work', emptyDir: {} }] };
  await apply(lab, shellPod('stubborn', script, spec, { volumeMounts: [{ name: 'work', mountPath: '/work' }] }));
  const pod = await podWhen(lab, 'stubborn', 'Succeeded', (each) => each.status?.phase === 'Succeeded');
  expect(container(pod).restartCount).toBe(1);
});

test('init containers run one after the other, before any container, and all containers see what they made', async () => {
  const mounted = { image: 'busybox:stable', volumeMounts: [{ name: 'work', mountPath: '/work' }] };
  const write = (name: string) => ({
    ...mounted,
    name,
    command: ['sh', '-c', `echo ${name} begins >> /work/log; sleep 0.3; echo ${name} ends >> /work/log`],
  });
  await apply(lab, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'several' },
    spec: {
      terminationGracePeriodSeconds: 1,
      volumes: [{ name: 'work', emptyDir: {} }],
      initContainers: [write('one'), write('two')],
      containers: [
        { ...mounted, name: 'main', command: ['sh', '-c', `echo main >> /work/log; ${FOREVER}`] },
        { ...mounted, name: 'web', command: ['sh', '-c', 'exec httpd -f -p 8080 -h /work'] },
      ],
    },
  });
  const pod = await ready(lab, 'several');
  await prints(
    lab,
    'one begins\none ends\ntwo begins\ntwo ends\nmain\n',
    ...['exec', 'several', '-c', 'web', '--', 'wget', '-qO-', 'http://127.0.0.1:8080/log'],
  );
  for (const name of ['one', 'two']) {
    expect(container(pod, name)).toMatchObject({ ready: true, state: { terminated: { reason: 'Completed' } } });
  }
  expect(await lab.kubectl('get', 'pod', 'several', '--no-headers')).toMatch(/^several\s+2\/2\s+Running/);
});

test('an init container that fails keeps the containers from starting, and the pod shows Init:', async () => {
  const init = { name: 'first', image: 'busybox:stable', command: ['sh', '-c', 'exit 9'] };
  await apply(lab, shellPod('stuck', FOREVER, { initContainers: [init] }));
  const pod = await podWhen(
    lab,
    'stuck',
    'waiting for its init container',
    (each) => container(each, 'first').state?.waiting?.reason === 'CrashLoopBackOff',
  );
  expect(pod.status?.phase).toBe('Pending');
  expect(container(pod).state?.waiting?.reason).toBe('PodInitializing');
  expect(condition(pod, 'Initialized')).toMatchObject({ status: 'False', reason: 'ContainersNotInitialized' });
  await prints(lab, /Init:CrashLoopBackOff/, 'get', 'pod', 'stuck', '--no-headers');
  expect((await eventsOf(lab, 'stuck')).map((event) => event.message)).not.toContain('Started container main');
});
