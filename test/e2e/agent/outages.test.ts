// What goes on while a part of the node is away or beset: containerd killed, the API server stopped or killed, more
// connections than descriptors. Pods keep running, nothing is started twice, nothing is restarted without need, and
// everything mends itself.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { containerdVersion } from '../../../cli/lab/containerd.ts';
import type { LabProcess } from '../../../cli/lab/paths.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { execOk } from '../../../lib/exec.ts';
import { readProcess } from '../../../lib/processes.ts';
import { listenForNotifications, type NotifySocket } from '../../support/notify-socket.ts';
import { type Client, dial, dialPlain, openConnections } from '../../support/tls-clients.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import {
  agentLog,
  apply,
  commandLine,
  condition,
  container,
  deletePods,
  eventually,
  FOREVER,
  getPod,
  httpGet,
  mainProcess,
  nodeWhen,
  pidsOf,
  podWhen,
  prints,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;
let steady: Pod;

const STEADY = shellPod('steady', 'exec httpd -f -p 8080 -h /etc');

/** The directory of the notify socket of the lab's processes. */
let directory: string;
let notify: NotifySocket;
const WATCHDOG_MS = 1000;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-notify-'));
  process.env['NOTIFY_SOCKET'] = join(directory, 'notify');
  process.env['WATCHDOG_USEC'] = String(WATCHDOG_MS * 1000);
  notify = await listenForNotifications(join(directory, 'notify'));
  lab = await startLab({ kills: true });
  await apply(lab, STEADY);
  steady = await ready(lab, 'steady');
});
afterAll(async () => {
  await lab?.stop();
  await notify?.close();
  delete process.env['NOTIFY_SOCKET'];
  delete process.env['WATCHDOG_USEC'];
  await rm(directory, { recursive: true, force: true });
});

const heard = (message: string): number =>
  notify.notifications.filter((each) => each.pid === pid('agent') && each.message === message).length;

/** Sends a message of the test's own, and waits until it has come: all that was sent before has, too. */
async function markNotifications(mark: string): Promise<void> {
  const message = `STATUS=${mark}`;
  const env = { ...process.env, NOTIFY_SOCKET: join(directory, 'notify') };
  // The socket keeps the descriptor by whose end systemd-notify would see that its message was read.
  await execOk('systemd-notify', ['--no-block', message], { env });
  await eventually(`the message ${mark}`, () =>
    notify.notifications.some((each) => each.message === message) ? true : undefined,
  );
}

/** Waits for at least `times` more watchdog messages of the agent. */
async function fed(times: number): Promise<void> {
  const before = heard('WATCHDOG=1');
  await eventually('the watchdog to be fed', () => (heard('WATCHDOG=1') >= before + times ? true : undefined));
}

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

test('the agent sends READY=1 and, while it is healthy, WATCHDOG=1 to systemd; an agent that hangs sends nothing', async () => {
  // A program sends it for the agent: it may come after the first pod.
  await eventually('the message READY=1', () => (heard('READY=1') > 0 ? true : undefined));
  expect(heard('READY=1')).toBe(1);
  await fed(2);
  const agent = pid('agent');
  process.kill(agent, 'SIGSTOP');
  try {
    // What it sent before is read before this.
    await markNotifications('stopped');
    const before = heard('WATCHDOG=1');
    await new Promise((resolve) => setTimeout(resolve, 3 * WATCHDOG_MS));
    await markNotifications('three periods later');
    // A program of the agent's may have had one to send.
    expect(heard('WATCHDOG=1')).toBeLessThanOrEqual(before + 1);
  } finally {
    process.kill(agent, 'SIGCONT');
  }
  await fed(2);
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
  await deletePods(lab, ['after-containerd']);
});

test('containerd that does not answer makes the node NotReady with the reason, and Ready again when it does', async () => {
  const frozen = pid('containerd');
  process.kill(frozen, 'SIGSTOP');
  try {
    const down = /^\[?container runtime is down: /;
    const isDown = (each: { status: string; message?: string }): boolean =>
      each.status === 'False' && down.test(each.message ?? '');
    const shown = await nodeWhen(lab, 'NotReady for its runtime', isDown, 300_000);
    expect(shown.reason).toBe('KubeletNotReady');
    // A restart of the agent would not help: systemd must not kill this one.
    await fed(2);
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
  // Held still, it does not see the end; nor does the next one, which comes after it.
  process.kill(old, 'SIGSTOP');
  process.kill(victim, 'SIGKILL');
  await eventually('the end of the process', async () =>
    (await readProcess(victim)) === undefined ? true : undefined,
  );
  process.kill(old, 'SIGKILL');
  const second = await podWhen(
    lab,
    'unlucky',
    'restarted',
    (pod) => container(pod).restartCount === 1 && container(pod).ready,
  );
  // containerd 1.7 and later no longer know the code of an end that they missed, and say 255.
  const { major, minor } = await containerdVersion();
  const known = major === 1 && minor < 7;
  expect(container(second).lastState?.terminated?.exitCode).toBe(known ? 137 : 255);
  await deletePods(lab, ['unlucky']);
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
  await deletePods(lab, ['offline']);
  await steadyStill();
});

test('API server killed: everything goes on with the one that is started in its place', async () => {
  const agent = pid('agent');
  await killed('apiserver');
  await eventually('the API server to take a pod', async () => {
    await apply(lab, shellPod('after-apiserver', FOREVER));
    return true;
  });
  await ready(lab, 'after-apiserver');
  expect(pid('agent')).toBe(agent);
  await logSays(/keep running/);
  await deletePods(lab, ['after-apiserver']);
  await steadyStill();
});

/** RLIMIT_NOFILE of a process that runs. The hard limit cannot be raised again: the process is to be killed. */
async function limitDescriptors(name: LabProcess, soft: number, hard: number): Promise<void> {
  await execOk('prlimit', ['--pid', String(pid(name)), `--nofile=${soft}:${hard}`]);
}

/** A hundred connections of each kind that a hostile client holds: no handshake, no request, a refused upgrade. */
async function beset(port: number): Promise<readonly { close(): void }[]> {
  const attempts: Promise<Client<Socket>>[] = [];
  for (let i = 0; i < 100; i++) attempts.push(dialPlain(port), dial(port), dial(port));
  const opened = (await Promise.allSettled(attempts)).flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const upgrade =
    'POST /exec/default/steady/main HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
  for (const client of opened.slice(0, 200)) client.send(upgrade);
  return opened.map(({ socket }) => ({ close: () => void socket.destroy() }));
}

test('more hostile connections than descriptors, on the agent and the API server: pods start, mount and are reached', async () => {
  const { apiserverPort, kubeletPort } = lab.lab.state;
  // The API server has one connection for each watch of the lab.
  await limitDescriptors('apiserver', 512, 512);
  await limitDescriptors('agent', 256, 256);
  const agent = pid('agent');
  const hostile = [...(await beset(kubeletPort)), ...(await beset(apiserverPort))];
  expect(hostile.length).toBeGreaterThan(100);
  const volumes = [{ name: 'memory', emptyDir: { medium: 'Memory' } }];
  const mounted = { volumeMounts: [{ name: 'memory', mountPath: '/memory' }] };
  await apply(lab, shellPod('beset', `echo mounted > /memory/file; ${FOREVER}`, { volumes }, mounted));
  await ready(lab, 'beset');
  await prints(lab, 'mounted\n', 'exec', 'beset', '--', 'cat', '/memory/file');
  await eventually('connections to be within the limits', async () => {
    const [ofAgent, ofServer] = [await openConnections(kubeletPort), await openConnections(apiserverPort)];
    if (ofAgent > 32 || ofServer > 192) throw new Error(`${ofAgent} on the agent, ${ofServer} on the API server`);
    return true;
  });
  for (const each of hostile) each.close();
  await deletePods(lab, ['beset']);
  await steadyStill();
  expect(pid('agent')).toBe(agent);
  // With limits of their own again.
  await killed('agent');
  await killed('apiserver');
  await eventually('the API server', async () => ((await lab.tryKubectl(['get', 'ns'])).code === 0 ? true : undefined));
});

test('an agent without free descriptors reports it in its Ready condition, and clears it later', async () => {
  const hard = 4096;
  // Node raises its soft limit while it starts: the agent of the test before this one has to be past that.
  await eventually('the agent to serve', async () =>
    (await lab.tryKubectl(['exec', 'steady', '--', 'true'])).code === 0 ? true : undefined,
  );
  const path = resourcePath('v1', 'nodes', { name: lab.nodeName });
  const short = await eventually('the node to be not Ready for want of descriptors', async () => {
    // Each time: how many are open goes up and down, with programs that it runs and connections that end.
    await limitDescriptors('agent', (await readdir(`/proc/${pid('agent')}/fd`)).length + 12, hard);
    const { status, reason, message } = condition(await lab.client.get<Node>(path), 'Ready') ?? {};
    const words = /^kubelet has insufficient file descriptors available: \d+ of \d+ are open/;
    return status === 'False' && words.test(message ?? '') ? { reason } : undefined;
  });
  expect(short).toEqual({ reason: 'KubeletNotReady' });
  await limitDescriptors('agent', hard, hard);
  await nodeWhen(lab, 'Ready again', ({ status }) => status === 'True');
  await steadyStill();
});
