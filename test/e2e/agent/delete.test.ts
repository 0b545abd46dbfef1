// The end of a pod: TERM, the grace period, KILL, and nothing left on the machine.

import { spawn } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { isAlive, type ProcessId, readProcess } from '../../../lib/processes.ts';
import type { TestLab } from '../support/lab.ts';
import { freePort } from '../support/ports.ts';
import { shareLab } from '../support/shared-lab.ts';
import { untilTouched } from '../support/until-touched.ts';
import {
  apply,
  eventually,
  getPod,
  gone,
  httpGet,
  nothingLeft,
  pidsOf,
  podResources,
  podSeen,
  podWhen,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;
let before: readonly string[];

beforeAll(async () => {
  lab = await shareLab();
});
afterAll(() => lab?.stop());
beforeEach(async () => {
  before = await podResources(lab);
});

async function processesOf(uid: string): Promise<readonly ProcessId[]> {
  const entries = await Promise.all((await pidsOf(lab, uid)).map(readProcess));
  return entries.filter((entry) => entry !== undefined);
}

async function anyAlive(ids: readonly ProcessId[]): Promise<boolean> {
  return (await Promise.all(ids.map(isAlive))).includes(true);
}

/** After TERM it exits once it may, and logs that. */
const GRACEFUL =
  `trap "echo asked; ${untilTouched('/may-end')}; echo done; exit 0" TERM; echo here; ` +
  'while :; do sleep 1000 & wait $!; done';
const DEAF = 'trap "" TERM; while :; do sleep 1; done';

test('a container receives TERM, and its pod goes as soon as it has exited', async () => {
  // Longer than anything here waits: what is gone has not waited for the end of its grace.
  await apply(lab, shellPod('polite', GRACEFUL, { terminationGracePeriodSeconds: 3_600 }));
  const pod = await ready(lab, 'polite');
  const follower = spawn('kubectl', ['--kubeconfig', lab.kubeconfig, 'logs', '-f', 'polite']);
  let followed = '';
  follower.stdout.on('data', (chunk: Buffer) => {
    followed += String(chunk);
  });
  const followedToTheEnd = new Promise((resolve) => follower.once('close', resolve));
  await eventually('the follower to follow', () => (followed === 'here\n' ? true : undefined));
  const processes = await processesOf(pod.metadata.uid);
  await lab.kubectl('delete', 'pod', 'polite', '--wait=false');
  await eventually('the container to receive TERM', () => (followed === 'here\nasked\n' ? true : undefined));
  const leaving = await getPod(lab, 'polite');
  expect(Date.parse(leaving.metadata.deletionTimestamp ?? '')).toBeGreaterThan(Date.now());
  expect(leaving.metadata.deletionGracePeriodSeconds).toBe(3_600);
  expect(await anyAlive(processes)).toBe(true);
  await lab.kubectl('exec', 'polite', '--', 'touch', '/may-end');
  await gone(lab, 'polite');
  expect(await anyAlive(processes)).toBe(false);
  await followedToTheEnd;
  expect(followed).toBe('here\nasked\ndone\n');
  await nothingLeft(lab, before);
});

test('a container that does not listen is killed when the grace period is over', async () => {
  await apply(lab, shellPod('deaf', DEAF, { terminationGracePeriodSeconds: 3 }));
  const pod = await ready(lab, 'deaf');
  const processes = await processesOf(pod.metadata.uid);
  const started = performance.now();
  // It is so for three seconds only.
  const isTerminating = (each: Pod): boolean => each.metadata.deletionTimestamp !== undefined;
  const { seen } = await podSeen(lab, 'deaf', 'Terminating', isTerminating);
  await lab.kubectl('delete', 'pod', 'deaf', '--wait=false');
  await seen;
  await gone(lab, 'deaf');
  expect(performance.now() - started).toBeGreaterThan(2_900);
  expect(await anyAlive(processes)).toBe(false);
  await nothingLeft(lab, before);
});

test('a second deletion with a shorter grace period makes the end come sooner', async () => {
  await apply(lab, shellPod('hurried', DEAF, { terminationGracePeriodSeconds: 3_600 }));
  await ready(lab, 'hurried');
  await lab.kubectl('delete', 'pod', 'hurried', '--wait=false');
  await lab.kubectl('delete', 'pod', 'hurried', '--wait=false', '--grace-period=2');
  await gone(lab, 'hurried');
  await nothingLeft(lab, before);
});

test('--force --grace-period=0 takes the object away at once, and the container is not left running', async () => {
  await apply(lab, shellPod('forced', DEAF));
  const pod = await ready(lab, 'forced');
  const processes = await processesOf(pod.metadata.uid);
  expect(await anyAlive(processes)).toBe(true);
  await lab.kubectl('delete', 'pod', 'forced', '--force', '--grace-period=0');
  await gone(lab, 'forced');
  await eventually('the processes to end', async () => ((await anyAlive(processes)) ? undefined : true));
  await nothingLeft(lab, before);
});

test('a pod of the same name may come right after, and is a new one', async () => {
  await apply(lab, shellPod('again', DEAF));
  const first = await ready(lab, 'again');
  await lab.kubectl('delete', 'pod', 'again', '--force', '--grace-period=0');
  await apply(lab, shellPod('again', DEAF));
  const second = await ready(lab, 'again');
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
  expect(second.status?.containerStatuses?.[0]?.restartCount).toBe(0);
  await eventually('the first one to end', async () =>
    (await pidsOf(lab, first.metadata.uid)).length > 0 ? undefined : true,
  );
  expect((await pidsOf(lab, second.metadata.uid)).length).toBeGreaterThan(0);
  await lab.kubectl('delete', 'pod', 'again');
  await nothingLeft(lab, before);
});

test('pods with host ports, several containers and ended ones leave nothing either', async () => {
  const hostPort = await freePort();
  const port = { ports: [{ containerPort: 8080, hostPort, protocol: 'TCP' }] };
  await apply(
    lab,
    shellPod('with-port', 'exec httpd -f -p 8080 -h /etc', {}, port),
    shellPod('ended', 'echo over', { restartPolicy: 'Never' }),
  );
  const { status } = await ready(lab, 'with-port');
  const answer = await httpGet(`http://${status?.hostIP}:${hostPort}/hostname`);
  expect(answer).toEqual({ status: 200, body: 'with-port\n' });
  await podWhen(lab, 'ended', 'over', (pod) => pod.status?.phase === 'Succeeded');
  expect((await podResources(lab)).some((thing) => thing.includes('--to-destination'))).toBe(true);
  await lab.kubectl('delete', 'pod', 'with-port', 'ended');
  await nothingLeft(lab, before);
});
