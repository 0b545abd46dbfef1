// One pod through the ContainerRuntime port on a real containerd: what is made, what is seen, what is left.

import { access, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PodLifecycleEvent } from '../../../agent/ports/runtime.ts';
import { untilTouched } from '../support/until-touched.ts';
import {
  BUSYBOX,
  cgroupsNamed,
  containerSpec,
  eventually,
  filesIn,
  killProcesses,
  type RuntimeLab,
  refOf,
  removePod,
  startPod,
  startRuntimeLab,
  testPod,
} from './harness.ts';

let lab: RuntimeLab;
const events: (PodLifecycleEvent & { readonly receivedAt: number })[] = [];

beforeAll(async () => {
  // No list but the first: changes come from the event stream.
  lab = await startRuntimeLab('nlrt0', '10.213.77.0/24', { relistPeriodMs: 3_600_000 });
  lab.runtime.watch((event) => events.push({ ...event, receivedAt: Date.now() }));
  await lab.runtime.capabilities();
});
afterAll(async () => {
  await lab?.close();
  expect(await cgroupsNamed('nlrt0-test')).toEqual([]);
});

describe('a pod on containerd', () => {
  test('the runtime names itself, is ready, and its events come from a stream', async () => {
    expect((await lab.runtime.version()).name).toBe('containerd');
    const status = await lab.runtime.status();
    expect(status.runtimeReady.ok).toBe(true);
    expect(status.networkReady.ok).toBe(true);
    expect((await lab.runtime.capabilities())?.events).not.toBe('poll');
  });

  test('runs with the identity, address, files, environment and limits of its spec', async () => {
    const pod = testPod('echo "hello $(WHO)"; cat /etc/hosts; sleep 300', {
      container: {
        env: [{ name: 'WHO', value: 'world' }],
        resources: { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } },
      },
      spec: { hostname: 'webby', hostAliases: [{ ip: '10.1.2.3', hostnames: ['alias.example'] }] },
    });
    const from = Date.now();
    const started = await startPod(lab, pod);
    const until = Date.now();
    const snapshot = await lab.runtime.observePod(started.ref);
    const [sandbox] = snapshot.sandboxes;
    const [container] = snapshot.containers;
    expect(sandbox).toMatchObject({ id: started.sandboxId, state: 'ready', attempt: 0, hostNetwork: false });
    expect(sandbox?.ips[0]).toMatch(/^10\.213\.77\.\d+$/);
    // containerd names an image by the first of its tags, whichever of them the pod used.
    const [firstTag] = (await lab.runtime.imageStatus(BUSYBOX))?.repoTags ?? [];
    expect(firstTag).toMatch(/^docker\.io\/library\/busybox:/);
    expect(container).toMatchObject({
      id: started.containerId,
      sandboxId: started.sandboxId,
      name: 'main',
      type: 'container',
      state: 'running',
      restartCount: 0,
      hash: 'abc123',
      image: firstTag,
    });
    expect(container?.startedAt).toBeGreaterThanOrEqual(from);
    expect(container?.startedAt).toBeLessThanOrEqual(until);

    const output = async (...command: string[]): Promise<string> => {
      const result = await lab.runtime.execSync(started.containerId, command, 60_000);
      expect(result.exitCode, result.stderr.toString()).toBe(0);
      return result.stdout.toString();
    };
    expect(await output('hostname')).toBe('webby\n');
    expect(await output('cat', '/etc/hosts')).toContain(`${started.ips[0]}\twebby\n`);
    expect(await output('cat', '/etc/hosts')).toContain('10.1.2.3\talias.example\n');
    expect(await output('cat', '/etc/resolv.conf')).toContain('search test.svc.cluster.local svc.cluster.local');
    expect(await output('ip', 'addr')).toContain(`inet ${started.ips[0]}/24`);

    const log = lab.runtime.containerLogPath(started.ref, 'main', 0);
    await eventually('the log line', async () =>
      (await readFile(log, 'utf8')).includes('stdout F hello world') ? true : undefined,
    );
    const link = join(lab.node.containerLogsDir, `${pod.metadata.name}_test_main-${started.containerId}.log`);
    expect(await readlink(link)).toBe(log);

    if (lab.cgroups.version === 1) {
      const path = `nlrt0-test/kubepods/burstable/pod${pod.metadata.uid}`;
      const read = async (file: string): Promise<string> => (await readFile(file, 'utf8')).trim();
      expect(await read(`/sys/fs/cgroup/cpu/${path}/cpu.shares`)).toBe('256');
      expect(await read(`/sys/fs/cgroup/cpu/${path}/cpu.cfs_quota_us`)).toBe('50000');
      expect(await read(`/sys/fs/cgroup/memory/${path}/memory.limit_in_bytes`)).toBe(String(64 * 2 ** 20));
      expect(await read(`/sys/fs/cgroup/cpu/${path}/${started.containerId}/cpu.shares`)).toBe('256');
      expect(await read(`/sys/fs/cgroup/memory/${path}/${started.containerId}/memory.limit_in_bytes`)).toBe(
        String(64 * 2 ** 20),
      );
      expect(await read('/sys/fs/cgroup/cpu/nlrt0-test/kubepods/burstable/cpu.shares')).toBe('256');
    }
    await removePod(lab, started);
    const after = await lab.runtime.observePod(started.ref);
    expect(after.sandboxes).toEqual([]);
    expect(after.containers).toEqual([]);
    await expect(access(join(lab.node.rootDir, 'pods', pod.metadata.uid))).rejects.toThrow('ENOENT');
    expect(await filesIn(lab.node.podLogsDir)).toEqual([]);
    expect(await filesIn(lab.node.containerLogsDir)).toEqual([]);
    expect(await lab.cgroups.listPods()).not.toContain(started.ref.uid);
  });

  test('the exit of a container is reported without a list, and the next observation shows it in full', async () => {
    const script = `echo last words > /dev/termination-log; ${untilTouched('/go')}; exit 3`;
    // It exits after its start is known: an exit beside StartContainer has its status read once more.
    const started = await startPod(lab, testPod(script));
    const running = lab.spans.length;
    expect((await lab.runtime.execSync(started.containerId, ['touch', '/go'], 60_000)).exitCode).toBe(0);
    const died = await eventually('the event', () =>
      events.find((event) => event.type === 'containerDied' && event.containerId === started.containerId),
    );
    // No list before the report: it came by the stream, not by a poll.
    expect(lab.spans.slice(running).filter(({ name }) => name.startsWith('List'))).toEqual([]);
    expect(died.podUID).toBe(started.ref.uid);
    const before = lab.spans.length;
    const observe = () => lab.runtime.observePod(started.ref);
    const [container] = (await lab.tracer.within({ cause: 'the test' }, observe)).containers;
    expect(container).toMatchObject({ state: 'exited', exitCode: 3, reason: 'Error', message: 'last words\n' });
    // All of it came with the event. A list that shows the end already has CRI's own words of it read, too.
    const own = lab.spans.slice(before).filter((span) => span.cause === 'the test');
    const lists = own.filter(({ name }) => name !== 'ContainerStatus');
    expect(lists.map((span) => span.name).sort()).toEqual(['ListContainers', 'ListPodSandbox']);
    expect(own.length - lists.length).toBeLessThanOrEqual(1);
    expect(died.receivedAt).toBeGreaterThanOrEqual(container?.finishedAt ?? Number.POSITIVE_INFINITY);
    await removePod(lab, started);
  });

  test('a container killed from outside is restarted beside its predecessor, whose log stays', async () => {
    const pod = testPod('echo run; sleep 300');
    const started = await startPod(lab, pod);
    await killProcesses(lab, pod, started.containerId);
    await eventually('the event', () =>
      events.find((event) => event.type === 'containerDied' && event.containerId === started.containerId),
    );
    expect((await lab.runtime.observePod(started.ref)).containers[0]).toMatchObject({ state: 'exited', exitCode: 137 });
    const again = await lab.runtime.createContainer(containerSpec(lab, pod, started.sandboxId, started.ips, 1));
    await lab.runtime.startContainer(again);
    const { containers } = await lab.runtime.observePod(started.ref);
    expect(containers.map(({ restartCount, state }) => [restartCount, state])).toEqual([
      [1, 'running'],
      [0, 'exited'],
    ]);
    const logs = join(lab.runtime.containerLogPath(started.ref, 'main', 0), '..');
    expect(await filesIn(logs)).toEqual(['0.log', '1.log']);
    await lab.runtime.removeContainer(started.containerId);
    expect(await filesIn(logs)).toEqual(['1.log']);
    await removePod(lab, { ...started, containerId: again });
  });

  test('a stop uses the requested grace period, and stopping or removing twice is no error', async () => {
    const patient = await startPod(lab, testPod("trap 'sleep 0.3; exit 7' TERM; sleep 300 & wait"));
    const stubborn = await startPod(lab, testPod("trap '' TERM; while :; do sleep 1; done"));
    for (const [{ containerId }, command] of [
      [patient, 'sleep 300'],
      [stubborn, 'sleep 1'],
    ] as const) {
      await eventually('the trap', async () => {
        const lines = (await lab.runtime.execSync(containerId, ['ps'], 60_000)).stdout.toString().split('\n');
        return lines.some((line) => line.trim().endsWith(` ${command}`)) ? true : undefined;
      });
    }
    await lab.runtime.stopContainer(patient.containerId, 60);
    expect((await lab.runtime.observePod(patient.ref)).containers[0]).toMatchObject({ exitCode: 7 });
    const from = performance.now();
    await lab.runtime.stopContainer(stubborn.containerId, 1);
    expect(performance.now() - from).toBeGreaterThan(900);
    expect((await lab.runtime.observePod(stubborn.ref)).containers[0]).toMatchObject({ exitCode: 137 });
    for (const started of [patient, stubborn]) {
      await removePod(lab, started);
      await removePod(lab, started);
    }
  });

  test('an exec that overstays its time is reported as timed out and its process is killed', async () => {
    const started = await startPod(lab, testPod('sleep 300'));
    const result = await lab.runtime.execSync(started.containerId, ['sleep', '77'], 1000);
    expect(result.timedOut).toBe(true);
    await eventually('the end of the process', async () => {
      const ps = await lab.runtime.execSync(started.containerId, ['ps'], 60_000);
      return ps.stdout.toString().includes('sleep 77') ? undefined : true;
    });
    const failing = await lab.runtime.execSync(started.containerId, ['sh', '-c', 'echo oops >&2; exit 9'], 60_000);
    expect(failing).toMatchObject({ exitCode: 9, timedOut: false });
    expect(failing.stderr.toString()).toBe('oops\n');
    expect(
      await lab.runtime.execUrl(started.containerId, {
        command: ['sh'],
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
      }),
    ).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/exec\//);
    await removePod(lab, started);
  });

  test('what the runtime refuses is reported in its own words with the code', async () => {
    const pod = testPod('true');
    await expect(lab.runtime.pullImage('127.0.0.1:1/no/such:image', undefined, pod)).rejects.toMatchObject({
      name: 'RuntimeError',
      call: 'PullImage',
      message: expect.stringMatching(/^failed to pull and unpack image "127\.0\.0\.1:1/),
    });
    expect(await lab.runtime.imageStatus('docker.io/library/nothing:here')).toBeUndefined();
    const started = await startPod(lab, testPod('sleep 300'));
    const bad = testPod('true', { container: { command: ['/no/such/program'] } });
    const spec = { ...containerSpec(lab, started.pod, started.sandboxId, started.ips, 1) };
    const id = await lab.runtime.createContainer({
      ...spec,
      container: { ...spec.container, command: bad.spec.containers[0]?.command ?? [] },
    });
    await expect(lab.runtime.startContainer(id)).rejects.toThrow(/^failed to (create|start) .*no such file/);
    const container = (await lab.runtime.observePod(started.ref)).containers.find((known) => known.id === id);
    expect(container).toMatchObject({ state: 'exited', exitCode: 128, reason: 'StartError' });
    await removePod(lab, started);
  });

  test('a container that must not run as root is refused before anything is made', async () => {
    const pod = testPod('true', { spec: { securityContext: { runAsNonRoot: true } } });
    const sandboxId = await lab.runtime.runPodSandbox({ pod, attempt: 0, runtimeHandler: '' });
    await expect(lab.runtime.createContainer(containerSpec(lab, pod, sandboxId, []))).rejects.toMatchObject({
      call: 'GenerateContainerConfig',
      message: expect.stringContaining('container has runAsNonRoot and image will run as root'),
    });
    await lab.runtime.stopPodSandbox(sandboxId);
    await lab.runtime.removePodSandbox(sandboxId);
    await lab.cgroups.removePod(refOf(pod).uid);
  });
});
