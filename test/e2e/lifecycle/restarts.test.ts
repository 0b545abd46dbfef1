// Starts and restarts that do not follow from exit codes alone, on a real node: after a failed probe, for another image,
// of a container that needs another one, behind a hook that never ends; and input that is given once.

import { spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  apply,
  container,
  deletePods,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  gone,
  handlesTerm,
  nothingLeft,
  podResources,
  podWhen,
  ready,
  shellPod,
} from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { untilTouched } from '../support/until-touched.ts';

let lab: TestLab;
let before: readonly string[];

beforeAll(async () => {
  lab = await shareLab();
  before = await podResources(lab);
});
afterAll(() => lab?.stop());

async function remove(name: string): Promise<void> {
  await deletePods(lab, [name], { wait: false });
  await gone(lab, name);
  await nothingLeft(lab, before);
}

test('a container that fails liveness is started again under OnFailure, although it ends well', async () => {
  const livenessProbe = {
    exec: { command: ['test', '!', '-e', '/dead'] },
    periodSeconds: 1,
    failureThreshold: 1,
    timeoutSeconds: 30,
  };
  // It ends at once on SIGTERM, and has the time for that.
  const spec = { restartPolicy: 'OnFailure', terminationGracePeriodSeconds: 60 } as const;
  await apply(lab, shellPod('sick', FOREVER, spec, { livenessProbe }));
  await ready(lab, 'sick');
  await handlesTerm(lab, 'sick');
  await lab.kubectl('exec', 'sick', '--', 'touch', '/dead');
  const again = await podWhen(
    lab,
    'sick',
    'running again',
    (pod) => container(pod).restartCount === 1 && container(pod).ready,
  );
  expect(again.status?.phase).toBe('Running');
  expect(container(again).lastState?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
  await eventWhen(lab, 'sick', 'Killing', /^Container main failed liveness probe, will be restarted$/);
  await remove('sick');
});

test('another image is started under Never too, and the pod goes on', async () => {
  await apply(lab, shellPod('edited', FOREVER, { restartPolicy: 'Never' }));
  await ready(lab, 'edited');
  await lab.kubectl('set', 'image', 'pod/edited', 'main=busybox:latest');
  const after = await podWhen(
    lab,
    'edited',
    'running again',
    (pod) => container(pod).restartCount === 1 && container(pod).ready,
  );
  expect(container(after).image).toBe('docker.io/library/busybox:latest');
  expect(after.status?.phase).toBe('Running');
  await remove('edited');
});

test('a container for debugging waits for its target, with a reason', async () => {
  const first = {
    name: 'first',
    image: 'busybox:stable',
    command: ['sh', '-c', `trap "exit 1" TERM; ${untilTouched('/go')}`],
  };
  await apply(lab, shellPod('early', FOREVER, { initContainers: [first] }));
  await podWhen(lab, 'early', 'initializing', (pod) => container(pod, 'first').state?.running !== undefined);
  await lab.kubectl(
    ...['debug', 'early', '--image=busybox:stable', '--target=main', '--container=dbg', '--quiet'],
    ...['--', 'sh', '-c', FOREVER],
  );
  const debugging = async () => (await getPod(lab, 'early')).status?.ephemeralContainerStatuses?.[0]?.state;
  const waiting = await eventually('the debugger to wait', async () => (await debugging())?.waiting?.message);
  expect(waiting).toBe('unable to find target container main');
  await eventWhen(lab, 'early', 'Failed', /^Error: unable to find target container main$/);
  await lab.kubectl('exec', 'early', '-c', 'first', '--', 'touch', '/go');
  await eventually('the debugger to run', async () => (await debugging())?.running);
  await remove('early');
});

test('a postStart that never ends keeps its pod from being ready, and does not prevent its deletion', async () => {
  const lifecycle = { postStart: { exec: { command: ['sleep', '86400'] } } };
  await apply(lab, shellPod('hooked', FOREVER, {}, { lifecycle }));
  await eventWhen(lab, 'hooked', 'Started');
  // An event may be there before the first status is.
  const pod = await podWhen(lab, 'hooked', 'reported', ({ status }) => status?.containerStatuses !== undefined);
  expect(container(pod).ready).toBe(false);
  await remove('hooked');
});

test('stdinOnce: what the first to attach sends is all, and the container sees its end', async () => {
  const script = `got=$(cat); echo "got $got"; ${FOREVER}`;
  await apply(lab, shellPod('asks', script, {}, { stdin: true, stdinOnce: true }));
  await ready(lab, 'asks');
  const attach = spawn('kubectl', ['--kubeconfig', lab.kubeconfig, 'attach', '-i', 'asks'], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const ended = new Promise((resolve) => attach.once('close', resolve));
  try {
    attach.stdin.end('a word\n');
    await eventually('the container to see the end', async () =>
      (await lab.kubectl('logs', 'asks')) === 'got a word\n' ? true : undefined,
    );
  } finally {
    attach.kill('SIGKILL');
    await ended;
  }
  await remove('asks');
});
