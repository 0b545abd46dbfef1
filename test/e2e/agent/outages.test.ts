// What goes on while a part of the node is away: containerd killed, the API server stopped or killed. Pods keep
// running, nothing is started twice, nothing is restarted without need, and everything mends itself.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LabProcess } from '../../../cli/lab/paths.ts';
import type { Pod } from '../../../client/types.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import {
  agentLog,
  apply,
  commandLine,
  container,
  eventually,
  FOREVER,
  getPod,
  httpGet,
  mainProcess,
  nodeWhen,
  pidsOf,
  podWhen,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;
let steady: Pod;

const STEADY = shellPod('steady', 'exec httpd -f -p 8080 -h /etc');

beforeAll(async () => {
  lab = await startLab();
  await apply(lab, STEADY);
  steady = await ready(lab, 'steady');
});
afterAll(() => lab?.stop());

function pid(name: LabProcess): number {
  const found = lab.lab.pid(name);
  if (found === undefined) throw new Error(`${name} does not run`);
  return found;
}

/** SIGKILL, and waits until the supervisor has another one running. */
async function killed(name: LabProcess): Promise<void> {
  const old = pid(name);
  process.kill(old, 'SIGKILL');
  await eventually(`another ${name}`, () => {
    const next = lab.lab.pid(name);
    return next !== undefined && next !== old ? true : undefined;
  });
}

/** The steady pod is the very one that was started in the beginning, and answers. */
async function steadyStill(): Promise<void> {
  const answer = await httpGet(`http://${steady.status?.podIP}:8080/hostname`);
  expect(answer).toEqual({ status: 200, body: 'steady\n' });
  const now = await getPod(lab, 'steady');
  expect(container(now)).toMatchObject({ restartCount: 0, containerID: container(steady).containerID });
  expect(now.status?.podIP).toBe(steady.status?.podIP);
}

async function logSays(pattern: RegExp): Promise<void> {
  await eventually(`the agent's log to say ${pattern}`, async () =>
    pattern.test(await agentLog(lab)) ? true : undefined,
  );
}

beforeEach(async () => {
  await nodeWhen(lab, 'Ready', (shown) => shown.status === 'True');
});

test('containerd killed: pods keep running with restartCount 0, and the agent goes on without being started anew', async () => {
  const agent = pid('agent');
  await killed('containerd');
  await steadyStill();
  await apply(lab, shellPod('after-containerd', FOREVER));
  await ready(lab, 'after-containerd');
  await steadyStill();
  expect(pid('agent')).toBe(agent);
  await logSays(/"level":(40|"warn").*(containerd|runtime)/);
  await lab.kubectl('delete', 'pod', 'after-containerd');
});

test('containerd that does not answer makes the node NotReady with the reason, and Ready again when it does', async () => {
  const frozen = pid('containerd');
  process.kill(frozen, 'SIGSTOP');
  try {
    const shown = await nodeWhen(lab, 'NotReady', (each) => each.status === 'False', 120_000);
    expect(shown.reason).toBe('KubeletNotReady');
    expect(shown.message).toMatch(/runtime/i);
  } finally {
    process.kill(frozen, 'SIGCONT');
  }
  await nodeWhen(lab, 'Ready', (each) => each.status === 'True');
  await steadyStill();
});

test('a container that ends while containerd is away is restarted when it is back', async () => {
  await apply(lab, shellPod('unlucky', FOREVER));
  const first = await ready(lab, 'unlucky');
  const victim = await mainProcess(lab, first);
  const old = pid('containerd');
  process.kill(old, 'SIGKILL');
  process.kill(victim, 'SIGKILL');
  const second = await podWhen(
    lab,
    'unlucky',
    'restarted',
    (pod) => container(pod).restartCount === 1 && container(pod).ready,
  );
  // containerd 1.7 and later no longer know the code of an end that they missed, and say 255.
  expect(container(second).lastState?.terminated?.exitCode).toBeOneOf([137, 255]);
  await lab.kubectl('delete', 'pod', 'unlucky');
  await steadyStill();
});

test('API server stopped: pods keep running, a container that ends is restarted meanwhile, and the status comes after', async () => {
  await apply(lab, shellPod('offline', FOREVER));
  const first = await ready(lab, 'offline');
  const server = pid('apiserver');
  process.kill(server, 'SIGSTOP');
  let restarted: number;
  try {
    const victim = await mainProcess(lab, first);
    const command = await commandLine(victim);
    process.kill(victim, 'SIGKILL');
    restarted = await eventually('another process of the pod', async () => {
      // By its command line: runc's own processes are in the cgroup too while they make the container.
      const pids = await pidsOf(lab, first.metadata.uid);
      const commands = await Promise.all(pids.map(commandLine));
      return pids.find((each, index) => each !== victim && commands[index] === command);
    });
    const answer = await httpGet(`http://${steady.status?.podIP}:8080/hostname`);
    expect(answer.status).toBe(200);
  } finally {
    process.kill(server, 'SIGCONT');
  }
  const second = await podWhen(
    lab,
    'offline',
    'reported',
    (pod) => container(pod).restartCount === 1 && container(pod).ready,
  );
  expect(await pidsOf(lab, second.metadata.uid, container(second).containerID)).toContain(restarted);
  await lab.kubectl('delete', 'pod', 'offline');
  await steadyStill();
});

test('API server killed: everything goes on with the one that is started in its place', async () => {
  const agent = pid('agent');
  await killed('apiserver');
  await apply(lab, shellPod('after-apiserver', FOREVER)).catch(async () => {
    await eventually('the API server', async () =>
      (await lab.tryKubectl(['get', 'ns'])).code === 0 ? true : undefined,
    );
    await apply(lab, shellPod('after-apiserver', FOREVER));
  });
  await ready(lab, 'after-apiserver');
  expect(pid('agent')).toBe(agent);
  await logSays(/keep running/);
  await lab.kubectl('delete', 'pod', 'after-apiserver');
  await steadyStill();
});
