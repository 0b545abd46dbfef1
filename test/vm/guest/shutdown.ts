// A shutdown of the machine as systemd-logind announces it: the node ends its pods in order before it releases the lock. The target
// that would power the machine off is one that fails, so that logind calls the shutdown off when it comes to it; that shows
// what follows a cancellation, too.

import { existsSync } from 'node:fs';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DROP_IN } from '../../../agent/shutdown/logind.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { execOk } from '../../../lib/exec.ts';
import type { Cluster } from './cluster.ts';
import { eventually } from './machine-state.ts';
import { check } from './report.ts';

export const SHUTDOWN_PERIODS = { shutdownGracePeriod: '60s', shutdownGracePeriodCriticalPods: '30s' };
const LOGIND = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager'];
/** In the place of the target that powers the machine off: it is there, and always fails to start. */
const TARGET = '/run/systemd/system.control/poweroff.target';
const NO_POWEROFF =
  '[Unit]\nDescription=No power-off, for a check\nDefaultDependencies=no\nAssertPathExists=/nonexistent\n';
const UNMASKED = '/run/systemd/system.control/systemd-logind.service';
/** Takes its time to end. */
const SLOW = 'trap "sleep 3; exit 0" TERM; while :; do sleep 1000 & wait $!; done';

/** The machine boots without it: the emulator pays dearly for units that most checks do not need. */
export async function startLogind(): Promise<void> {
  // The kernel's command line masks it anew at every reload; what lies here goes before that.
  await mkdir(dirname(UNMASKED), { recursive: true });
  await copyFile('/lib/systemd/system/systemd-logind.service', UNMASKED);
  await execOk('systemctl', ['daemon-reload']);
  await execOk('systemctl', ['start', 'systemd-logind.service']);
}

export async function stopLogind(): Promise<void> {
  await execOk('systemctl', ['stop', 'systemd-logind.service']);
  await rm(UNMASKED, { force: true });
  await execOk('systemctl', ['daemon-reload']);
}

const inhibitors = (): Promise<string> => execOk('systemd-inhibit', ['--list', '--no-legend', '--no-pager']);

export async function checkShutdown(cluster: Cluster): Promise<void> {
  const { client, nodeName } = { client: cluster.lab.client, nodeName: cluster.lab.state.nodeName };
  await check('shutdown: the agent holds a delay lock, and logind allows what the configuration asks for', async () => {
    const list = await eventually('a lock', async () => {
      const text = await inhibitors();
      return text.includes('kubelet') ? text : undefined;
    });
    const delay = await execOk('busctl', ['get-property', ...LOGIND, 'InhibitDelayMaxUSec']);
    return {
      held: /kubelet.*shutdown.*delay/.test(list) && delay.trim() === 't 60000000',
      saw: `${list.trim()}; InhibitDelayMaxUSec ${delay.trim()}`,
    };
  });
  await cluster.create('going', SLOW, undefined, { terminationGracePeriodSeconds: 10 });
  await cluster.create('critical', SLOW, undefined, {
    terminationGracePeriodSeconds: 10,
    priorityClassName: 'system-node-critical',
  });
  await cluster.running('going');
  await cluster.running('critical');
  await writeFile(TARGET, NO_POWEROFF);
  await execOk('systemctl', ['daemon-reload']);
  const unready: string[] = [];
  let refused: Pod | undefined;
  try {
    await execOk('busctl', ['call', ...LOGIND, 'PowerOff', 'b', 'false']);
    await check('shutdown: the node is not Ready and refuses pods while it waits', async () => {
      await eventually('NotReady', async () => {
        const node = await client.get<Node>(`/api/v1/nodes/${nodeName}`);
        const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
        if (ready?.status === 'True') return undefined;
        unready.push(`${ready?.reason}: ${ready?.message}`);
        return true;
      });
      await cluster.create('late', SLOW, undefined, { nodeName });
      refused = await cluster.whenPod('late', 'refused', (pod) => pod.status?.phase === 'Failed');
      return {
        held: unready[0] === 'KubeletNotReady: node is shutting down' && refused.status?.reason === 'NodeShutdown',
        saw: `${unready[0]}; late: ${refused.status?.reason}: ${refused.status?.message}`,
      };
    });
    await check('shutdown: pods are ended in order of priority with the reason of the kubelet', async () => {
      const ended = (pod: Pod): boolean => pod.status?.phase === 'Failed';
      const [going, critical] = [
        await cluster.whenPod('going', 'ended', ended),
        await cluster.whenPod('critical', 'ended', ended),
      ];
      const end = (pod: Pod) => pod.status?.containerStatuses?.[0]?.state?.terminated;
      const disrupted = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
      const message = 'Pod was terminated in response to imminent node shutdown.';
      const saw = [going, critical].map(
        (pod) =>
          `${pod.metadata.name}: ${pod.status?.reason}: ${pod.status?.message} (${disrupted(pod)?.reason}), ` +
          `exit ${end(pod)?.exitCode} at ${end(pod)?.finishedAt}`,
      );
      return {
        held:
          [going, critical].every(
            (pod) =>
              pod.status?.reason === 'Terminated' &&
              pod.status.message === message &&
              disrupted(pod)?.reason === 'TerminationByKubelet' &&
              end(pod)?.exitCode === 0,
          ) && String(end(going)?.finishedAt) < String(end(critical)?.finishedAt),
        saw: saw.join('; '),
      };
    });
    await check(
      'shutdown: one that is called off leaves a node that is Ready and holds the next one back',
      async () => {
        await eventually('Ready', async () => {
          const node = await client.get<Node>(`/api/v1/nodes/${nodeName}`);
          const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
          return ready?.status === 'True' ? true : undefined;
        });
        const list = await eventually('a lock', async () => {
          const text = await inhibitors();
          return text.includes('kubelet') ? text : undefined;
        });
        return { held: list.includes('delay'), saw: list.trim() };
      },
    );
  } finally {
    await rm(TARGET, { force: true });
    await execOk('systemctl', ['daemon-reload']);
  }
  for (const name of ['going', 'critical', 'late']) await cluster.delete(name);
  await check('shutdown: an agent that is killed leaves no lock and no monitor', async () => {
    const pid = cluster.lab.pid('agent');
    if (pid === undefined) throw new Error('no agent runs');
    process.kill(pid, 'SIGKILL');
    await eventually('the next agent to hold its lock', async () => {
      const text = await inhibitors();
      const next = cluster.lab.pid('agent');
      return next !== undefined && next !== pid && text.includes('kubelet') ? true : undefined;
    });
    await systemClock.sleep(1_000);
    const locks = (await inhibitors()).split('\n').filter((line) => line.includes('kubelet'));
    const monitors = (await execOk('pgrep', ['-fc', 'busctl.*[P]repareForShutdown'])).trim();
    return {
      held: locks.length === 1 && monitors === '3' && existsSync(DROP_IN),
      saw: `${locks.length} locks; ${monitors} processes of a monitor (a shell, what ties it to the agent, and busctl)`,
    };
  });
}
