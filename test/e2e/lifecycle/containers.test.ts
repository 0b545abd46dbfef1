// Containers beyond a plain one, on a real node: sidecars, debug containers, a changed image, a lost sandbox, shared
// namespaces, hooks, last words, restart rules.

import { readlinkSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { execOk } from '../../../lib/exec.ts';
import {
  agentLog,
  apply,
  container,
  deletePods,
  eventsOf,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  gone,
  handlesTerm,
  podSeen,
  podWhen,
  prints,
  ready,
  shellPod,
} from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';

let lab: TestLab;

beforeAll(async () => {
  lab = await shareLab();
  // Its deadline comes while other tests run, and leaves a slow machine the time to start it.
  await apply(lab, shellPod('late', FOREVER, { activeDeadlineSeconds: 60 }));
});
/** What the tests put beside the lab's own files. */
const made: string[] = [];
afterAll(async () => {
  for (const path of made) await rm(path, { recursive: true, force: true });
  await lab?.stop();
});

async function remove(...names: string[]): Promise<void> {
  await deletePods(lab, [...names], { wait: false });
  await Promise.all(names.map((name) => gone(lab, name)));
}

const inside = (pod: string, command: string, name = 'main'): Promise<string> =>
  lab.kubectl('exec', pod, '-c', name, '--', 'sh', '-c', command);
const shell = (name: string, script: string, more: object = {}) => ({
  name,
  image: 'busybox:stable',
  command: ['sh', '-c', script],
  ...more,
});
const ctr = (...args: string[]): Promise<string> =>
  execOk('ctr', ['--address', lab.paths.containerd.socket, '--namespace', 'k8s.io', ...args]);

/** A directory of the machine that pods of a test write to. */
async function sharedDirectory(name: string) {
  const path = join(lab.root, name);
  made.push(path);
  await mkdir(path, { mode: 0o777 });
  const volumes = [{ name: 'shared', hostPath: { path } }];
  const volumeMounts = [{ name: 'shared', mountPath: '/shared' }];
  const lines = async (): Promise<string[]> =>
    (await readFile(join(path, 'said'), 'utf8').catch(() => '')).split('\n').filter(Boolean);
  return { path, volumes, volumeMounts, lines };
}

describe('native sidecars', () => {
  test('start in order, each before the next; are kept alive; and are stopped last, in reverse order', async () => {
    const { volumes, volumeMounts, lines } = await sharedDirectory('order');
    const says = (word: string): string =>
      `trap "sleep 0.3; echo ${word} ends >>/shared/said; exit 0" TERM; echo ${word} begins >>/shared/said; ` +
      'while :; do sleep 1000 & wait $!; done';
    const sidecar = (name: string): object =>
      shell(name, says(name), {
        restartPolicy: 'Always',
        volumeMounts,
        // A probe that took too long would have it killed, and begin twice.
        startupProbe: {
          exec: { command: ['grep', `${name} begins`, '/shared/said'] },
          periodSeconds: 1,
          timeoutSeconds: 30,
          failureThreshold: 60,
        },
      });
    const init = [sidecar('one'), shell('between', 'echo between >>/shared/said', { volumeMounts }), sidecar('two')];
    const pod = shellPod('sidecars', says('main'), { volumes, terminationGracePeriodSeconds: 600 }, { volumeMounts });
    await apply(lab, { ...pod, spec: { ...Object(pod).spec, initContainers: init } });
    const runs = await ready(lab, 'sidecars');
    await eventually('main to begin', async () => ((await lines()).includes('main begins') ? true : undefined));
    expect(await lines()).toEqual(['one begins', 'between', 'two begins', 'main begins']);
    expect(runs.status?.initContainerStatuses?.map(({ name, ready: is, started }) => [name, is, started])).toEqual([
      ['one', true, true],
      ['between', true, false],
      ['two', true, true],
    ]);
    expect(await lab.kubectl('get', 'pod', 'sidecars')).toMatch(/sidecars\s+3\/3\s+Running/);
    // One that dies comes back while the pod runs on.
    const dead = (container(runs, 'two').containerID ?? '').replace('containerd://', '');
    await ctr('tasks', 'kill', '--signal', 'SIGKILL', dead);
    const again = await podWhen(
      lab,
      'sidecars',
      'whole again',
      (each) => container(each, 'two').restartCount === 1 && container(each, 'two').ready,
    );
    expect(container(again).restartCount).toBe(0);
    expect(container(again, 'one').restartCount).toBe(0);
    await eventually('the second life of two', async () =>
      (await lines()).filter((line) => line === 'two begins').length === 2 ? true : undefined,
    );
    await remove('sidecars');
    expect((await lines()).slice(-3)).toEqual(['main ends', 'two ends', 'one ends']);
  });

  test('do not keep a pod that has done its work from ending', async () => {
    const init = [shell('side', FOREVER, { restartPolicy: 'Always' })];
    const pod = shellPod('job', 'sleep 1', { restartPolicy: 'Never' });
    await apply(lab, { ...pod, spec: { ...Object(pod).spec, initContainers: init } });
    const done = await podWhen(lab, 'job', 'Succeeded', ({ status }) => status?.phase === 'Succeeded');
    expect(container(done, 'side').state?.terminated).toBeDefined();
    await remove('job');
  });
});

test('kubectl debug puts a container into a running pod, which sees the processes of its target', async () => {
  await apply(lab, shellPod('debugged', 'trap "exit 0" TERM; while :; do sleep 987654 & wait $!; done'));
  const before = await ready(lab, 'debugged');
  await lab.kubectl(
    ...['debug', 'debugged', '--image=busybox:stable', '--target=main', '--container=dbg', '--quiet'],
    ...['--', 'sh', '-c', FOREVER],
  );
  const with_ = await podWhen(
    lab,
    'debugged',
    'debugged',
    ({ status }) => status?.ephemeralContainerStatuses?.[0]?.state?.running !== undefined,
  );
  await prints(lab, /sleep 987654/, 'exec', 'debugged', '-c', 'dbg', '--', 'ps');
  expect(container(with_)).toMatchObject({ restartCount: 0, containerID: container(before).containerID });
  await remove('debugged');
});

test('a changed image restarts that container alone', async () => {
  const pod = shellPod('changes', FOREVER);
  const spec = Object(pod).spec;
  await apply(lab, { ...pod, spec: { ...spec, containers: [...spec.containers, shell('other', FOREVER)] } });
  const before = await ready(lab, 'changes');
  await lab.kubectl('set', 'image', 'pod/changes', 'main=busybox:latest');
  const after = await podWhen(
    lab,
    'changes',
    'changed',
    (each) => container(each).restartCount === 1 && container(each).ready,
  );
  expect(container(after).image).toBe('docker.io/library/busybox:latest');
  expect(container(after, 'other')).toMatchObject({
    restartCount: 0,
    containerID: container(before, 'other').containerID,
  });
  await eventWhen(lab, 'changes', 'Killing', /^Container main definition changed, will be restarted$/);
  await remove('changes');
});

test('a sandbox that dies is made anew with its containers, with the event SandboxChanged', async () => {
  await apply(lab, shellPod('loses', FOREVER));
  const before = await ready(lab, 'loses');
  const filter = `labels."io.kubernetes.pod.uid"==${before.metadata.uid},labels."io.cri-containerd.kind"==sandbox`;
  const sandbox = (await ctr('containers', 'list', '--quiet', filter)).trim();
  await ctr('tasks', 'kill', '--signal', 'SIGKILL', sandbox);
  const after = await podWhen(
    lab,
    'loses',
    'whole again',
    (each) => container(each).restartCount === 1 && container(each).ready,
  );
  expect(after.status?.podIP).toMatch(/^10\./);
  await eventWhen(lab, 'loses', 'SandboxChanged', /^Pod sandbox changed, it will be killed and re-created\.$/);
  expect(await inside('loses', 'ip -4 addr show eth0')).toContain(after.status?.podIP ?? '?');
  await remove('loses');
});

describe('namespaces', () => {
  test('processes are shared within the pod with shareProcessNamespace', async () => {
    const pod = shellPod('shares', FOREVER, { shareProcessNamespace: true });
    const spec = Object(pod).spec;
    await apply(lab, {
      ...pod,
      spec: { ...spec, containers: [...spec.containers, shell('other', 'exec sleep 4242')] },
    });
    await ready(lab, 'shares');
    const seen = await prints(lab, /sleep 4242/, 'exec', 'shares', '-c', 'main', '--', 'ps');
    expect(seen).toMatch(/^\s*1 .*(pause|catatonit)/m);
    await remove('shares');
  });

  test('those of the machine are used where the pod requests them, and only then', async () => {
    await apply(
      lab,
      shellPod('own', FOREVER),
      shellPod('hosts', FOREVER, { hostPID: true, hostIPC: true, hostNetwork: true }),
    );
    await Promise.all([ready(lab, 'own'), ready(lab, 'hosts')]);
    for (const kind of ['pid', 'ipc', 'net']) {
      const ours = readlinkSync(`/proc/self/ns/${kind}`);
      expect((await inside('hosts', `readlink /proc/self/ns/${kind}`)).trim()).toBe(ours);
      expect((await inside('own', `readlink /proc/self/ns/${kind}`)).trim()).not.toBe(ours);
    }
    await remove('own', 'hosts');
  });
});

describe('hooks', () => {
  test('postStart runs before the container counts as started, preStop before TERM', async () => {
    const { volumes, volumeMounts, lines } = await sharedDirectory('hooks');
    const say = (word: string) => ({ exec: { command: ['sh', '-c', `echo ${word} >>/shared/said`] } });
    const script = 'trap "echo TERM >>/shared/said; exit 0" TERM; while :; do sleep 1000 & wait $!; done';
    await apply(
      lab,
      shellPod(
        'hooked',
        script,
        { volumes, terminationGracePeriodSeconds: 600 },
        { volumeMounts, lifecycle: { postStart: say('postStart'), preStop: say('preStop') } },
      ),
    );
    await ready(lab, 'hooked');
    expect(await lines()).toEqual(['postStart']);
    await handlesTerm(lab, 'hooked');
    await remove('hooked');
    expect(await lines()).toEqual(['postStart', 'preStop', 'TERM']);
  });

  test('preStop sleep delays TERM for its seconds', async () => {
    const lifecycle = { preStop: { sleep: { seconds: 2 } } };
    await apply(lab, shellPod('sleeps', FOREVER, { terminationGracePeriodSeconds: 10 }, { lifecycle }));
    await ready(lab, 'sleeps');
    const began = performance.now();
    await remove('sleeps');
    expect(performance.now() - began).toBeGreaterThan(2_000);
  });

  test('a preStop that never ends takes the grace period and no more', async () => {
    const lifecycle = { preStop: { exec: { command: ['sleep', '3600'] } } };
    await apply(lab, shellPod('hangs', FOREVER, { terminationGracePeriodSeconds: 3 }, { lifecycle }));
    await ready(lab, 'hangs');
    const began = performance.now();
    // Gives up long before the hook would have ended.
    await remove('hangs');
    expect(performance.now() - began).toBeGreaterThan(2_500);
  });

  test('a postStart that fails has the container stopped and started again, and both hooks record an event when they fail', async () => {
    const lifecycle = {
      postStart: { exec: { command: ['sh', '-c', 'echo no luck >&2; exit 3'] } },
      preStop: { exec: { command: ['false'] } },
    };
    // As long as the hook may take: one that is given up records no event.
    await apply(lab, shellPod('unlucky', FOREVER, { terminationGracePeriodSeconds: 30 }, { lifecycle }));
    await eventWhen(lab, 'unlucky', 'FailedPostStartHook');
    await eventWhen(lab, 'unlucky', 'Killing', /FailedPostStartHook/);
    await podWhen(lab, 'unlucky', 'tried again', (each) => container(each).restartCount > 0);
    await eventWhen(lab, 'unlucky', 'FailedPreStopHook');
    await remove('unlucky');
  });

  test('a postStart that prints 6 MB and fails is reported with the beginning of it, and fills no log', async () => {
    const before = (await agentLog(lab)).length;
    const noise = 'head -c 6000000 /dev/zero | tr "\\\\0" x >&2; exit 3';
    const lifecycle = { postStart: { exec: { command: ['sh', '-c', noise] } } };
    // Until the back-off of the next start is reported in its place.
    const { seen } = await podSeen(
      lab,
      'noisy',
      'reported',
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'PostStartHookError',
    );
    await apply(lab, shellPod('noisy', FOREVER, {}, { lifecycle }));
    const pod = await seen;
    const message = container(pod).state?.waiting?.message ?? '';
    expect(message).toMatch(/^Exec lifecycle hook .* exited with 3: x{10240}, message: "x+$/);
    expect(message).toHaveLength(12 * 1024);
    await podWhen(lab, 'noisy', 'tried again', (each) => container(each).restartCount > 1);
    await remove('noisy');
    const lines = (await agentLog(lab)).slice(before).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(16 * 1024);
    const failed = lines.filter((line) => line.includes('Failed to update status for pod') && line.includes('/noisy'));
    expect(failed).toEqual([]);
  });
});

describe('last words', () => {
  const ended = (name: string): Promise<Pod> =>
    podWhen(lab, name, 'ended', (each) => container(each).state?.terminated !== undefined);
  const once = { restartPolicy: 'Never' } as const;

  test('are what the container wrote to its termination log', async () => {
    await apply(lab, shellPod('says', 'printf "all is lost" >/dev/termination-log; exit 7', once));
    expect(container(await ended('says')).state?.terminated).toMatchObject({
      exitCode: 7,
      reason: 'Error',
      message: 'all is lost',
    });
    await remove('says');
  });

  test('are the end of its log with FallbackToLogsOnError when it failed without writing any', async () => {
    const policy = { terminationMessagePolicy: 'FallbackToLogsOnError' };
    await apply(lab, shellPod('logs', 'seq 1 200; exit 1', once, policy));
    const message = container(await ended('logs')).state?.terminated?.message ?? '';
    expect(message.split('\n').filter(Boolean)).toEqual(Array.from({ length: 80 }, (_, index) => String(index + 121)));
    await remove('logs');
  });

  test('are cut after 4096 bytes, and nothing of the machine is shown through a link', async () => {
    const secret = join(lab.root, 'secret-of-the-machine');
    made.push(secret);
    await writeFile(secret, 'do not tell');
    await apply(
      lab,
      shellPod('long', 'head -c 10000 /dev/zero | tr "\\0" x >/dev/termination-log; exit 1', once),
      shellPod('links', `rm -f /tmp/last; ln -s ${secret} /tmp/last; exit 1`, once, {
        terminationMessagePath: '/tmp/last',
      }),
    );
    expect(container(await ended('long')).state?.terminated?.message).toHaveLength(4096);
    expect(container(await ended('links')).state?.terminated?.message ?? '').not.toContain('do not tell');
    await remove('long', 'links');
  });
});

test('a container restarts by its own rules in a pod that never restarts', async () => {
  const { volumes, volumeMounts } = await sharedDirectory('rules');
  const script = 'echo x >>/shared/said; [ $(wc -l </shared/said) -lt 3 ] && exit 42; exit 1';
  const rules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }];
  const more = { volumeMounts, restartPolicy: 'Never', restartPolicyRules: rules };
  await apply(lab, shellPod('ruled', script, { restartPolicy: 'Never', volumes }, more));
  const done = await podWhen(lab, 'ruled', 'Failed', ({ status }) => status?.phase === 'Failed');
  expect(container(done)).toMatchObject({ restartCount: 2, state: { terminated: { exitCode: 1 } } });
  await remove('ruled');
});

test('activeDeadlineSeconds ends a pod with DeadlineExceeded, also when it is set while the pod runs', async () => {
  await apply(lab, shellPod('later', FOREVER));
  await ready(lab, 'later');
  await lab.kubectl('patch', 'pod', 'later', '--patch', '{"spec":{"activeDeadlineSeconds":1}}');
  for (const name of ['late', 'later']) {
    const done = await podWhen(lab, name, 'Failed', ({ status }) => status?.phase === 'Failed');
    expect(done.status).toMatchObject({
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    });
    await eventWhen(lab, name, 'Killing', /^Stopping container main$/);
  }
  await remove('late', 'later');
});

test('a RuntimeClass names the handler; one that the runtime does not have is reported with its message', async () => {
  const runtimeClass = (name: string, handler: string): object => ({
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name },
    handler,
  });
  await apply(lab, runtimeClass('plain', 'runc'), runtimeClass('fancy', 'kata'));
  await apply(
    lab,
    shellPod('with-runc', FOREVER, { runtimeClassName: 'plain' }),
    shellPod('with-kata', FOREVER, { runtimeClassName: 'fancy' }),
  );
  await ready(lab, 'with-runc');
  await eventWhen(lab, 'with-kata', 'FailedCreatePodSandBox', /no runtime for "kata" is configured/);
  const refused = await lab.tryKubectl(['apply', '-f', '-'], {
    stdin: JSON.stringify(shellPod('with-none', FOREVER, { runtimeClassName: 'none' })),
  });
  expect(refused.stderr).toMatch(/RuntimeClass "none" not found/);
  await remove('with-runc', 'with-kata');
  await lab.kubectl('delete', 'runtimeclass', 'plain', 'fancy');
});

test('hostUsers false is refused in clear words where the runtime cannot, and real where it can', async () => {
  await apply(lab, shellPod('mapped', FOREVER, { hostUsers: false }));
  const outcome = await eventually('the pod to run or to be refused', async () => {
    const pod = await getPod(lab, 'mapped');
    if (pod.status?.phase === 'Running') return 'runs';
    return (await eventsOf(lab, 'mapped')).find(({ reason }) => reason === 'FailedCreatePodSandBox')?.message;
  });
  // The Node's status reports whether the runtime can.
  const node: { status?: { runtimeHandlers?: { name: string; features: { userNamespaces: boolean } }[] } } =
    await lab.client.get(`/api/v1/nodes/${lab.nodeName}`);
  const able = node.status?.runtimeHandlers?.some(({ name, features }) => name === '' && features.userNamespaces);
  if (able === true) {
    expect(outcome).toBe('runs');
    expect(await inside('mapped', 'cat /proc/self/uid_map')).not.toMatch(/^\s*0\s+0\s/);
  } else expect(outcome).toMatch(/user namespaces/);
  await remove('mapped');
});
