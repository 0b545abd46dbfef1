// One real pod: it is made, shown to be real, its container killed from outside, and deleted.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import type { Pod } from '../../client/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { execOk } from '../../lib/exec.ts';
import { poll, retry, steadyPauses } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import type { Checks } from './checks.ts';
import type { DemoLab } from './lab.ts';
import { narrate } from './narrate.ts';
import { LIMIT_MS, serviceAccountIn } from './service-account.ts';
import { followSpans } from './spans.ts';
import { chooseUser, type DemoUser } from './user.ts';
import { INTERFACES, PROCESSES, showsInterfaces, showsProcesses } from './views.ts';
import { PodWatch } from './watch-pod.ts';

const MANIFEST = fileURLToPath(new URL('../../labs/manifests/hello-pod.yaml', import.meta.url));
const NAMESPACE = 'demo';
const POD = 'hello-pod';

export async function showPod(lab: DemoLab, checks: Checks, say: (line: string) => void): Promise<void> {
  const { paths } = lab;
  const client = new ApiClient(await loadKubeconfig(paths.kubeconfig), {
    tracer: new Tracer(),
    clock: systemClock,
    userAgent: 'nodelet-demo',
  });
  const watch = new PodWatch();
  let origin = systemClock.now();
  const spans = await followSpans(join(paths.agentSocketDir, 'trace.sock'), (span) => {
    if (span.pod?.name !== POD || span.pod.namespace !== NAMESPACE) return;
    const line = narrate(span, origin);
    if (line !== undefined) say(line);
  });
  try {
    const user = await chooseUser(paths.kubeconfig, client);
    say(`== applying ${MANIFEST.replace(/^.*\/(labs\/)/, '$1')} with ${user.name}`);
    await user.createNamespace(NAMESPACE);
    await serviceAccountIn(client, NAMESPACE);
    await watch.start(client, NAMESPACE, POD);
    origin = systemClock.now();
    await user.apply(MANIFEST);
    const running = await watch.until('the pod to be ready', isReady, LIMIT_MS);
    say('== the pod is real');
    const ip = running?.status?.podIP ?? '';
    checks.check(ip !== '', `pod ${NAMESPACE}/${POD} is Running and Ready at ${ip}`);
    await provePod(user, ip, checks);
    await proveRestart(watch, lab, checks, say);
    say('== deleting the pod');
    origin = systemClock.now();
    await user.delete(NAMESPACE, POD);
    await watch.until('the pod to be gone', (pod) => pod === undefined, LIMIT_MS);
    checks.check(true, 'the pod is gone from the API server');
  } finally {
    await watch.stop();
    spans.close();
    client.close();
  }
}

function isReady(pod: Pod | undefined): boolean {
  return (
    pod?.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
  );
}

/** Running means that the process has started, not that it listens: without a readiness probe a client has to retry. */
async function firstAnswer(url: string): Promise<Response> {
  return await retry(() => fetch(url), {
    clock: systemClock,
    policy: steadyPauses(10),
    limitMs: LIMIT_MS,
  });
}

async function provePod(user: DemoUser, ip: string, checks: Checks): Promise<void> {
  const marker = `/?from=demo-${process.pid}`;
  const response = await firstAnswer(`http://${ip}${marker}`);
  const body = await response.text();
  checks.check(response.status === 200, `HTTP GET http://${ip}/ answers ${response.status}`, body.slice(0, 300));

  const request = (log: string): string | undefined => log.split('\n').find((line) => line.includes(marker));
  let line: string | undefined;
  const look = async (): Promise<boolean> => {
    line = request(await user.logs(NAMESPACE, POD));
    return line !== undefined;
  };
  // nginx writes its log after it has answered.
  await poll(look, { clock: systemClock, everyMs: 50, limitMs: LIMIT_MS });
  checks.check(line !== undefined, 'the logs show the request', line ?? '');

  const interfaces = await user.exec(NAMESPACE, POD, INTERFACES.command);
  checks.check(showsInterfaces(interfaces, ip), INTERFACES.title, interfaces);
  const processes = await user.exec(NAMESPACE, POD, PROCESSES.command);
  checks.check(showsProcesses(processes), PROCESSES.title, processes);
}

async function proveRestart(
  watch: PodWatch,
  { paths, state }: DemoLab,
  checks: Checks,
  say: (line: string) => void,
): Promise<void> {
  const id = watch.pod?.status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, '') ?? '';
  say(`== killing container ${id.slice(0, 12)} from outside: ctr task kill --signal SIGKILL`);
  // Docker's containers are containerd's as well.
  const namespace = state.runtime === 'docker' ? 'moby' : 'k8s.io';
  await execOk('ctr', ['--address', paths.containerd.socket, '-n', namespace, 'task', 'kill', '-s', 'SIGKILL', id]);
  const again = await watch.until(
    'the container to come back',
    (pod) => pod?.status?.containerStatuses?.[0]?.restartCount === 1 && isReady(pod),
    LIMIT_MS,
  );
  const status = again?.status?.containerStatuses?.[0];
  const last = status?.lastState?.terminated;
  checks.check(
    status?.restartCount === 1,
    `the container came back with restartCount ${status?.restartCount}`,
    `lastState: exit code ${last?.exitCode}, ${last?.reason}`,
  );
}
