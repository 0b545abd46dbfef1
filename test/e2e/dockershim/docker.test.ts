// Docker as the runtime: a lab on a private dockerd behind `nodelet dockershim`. The agent runs pods on it, crictl works on
// it by hand, dockerd and the shim are ended under running pods, and nothing is left on the machine.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CriClient } from '../../../agent/runtime/cri-client.ts';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { type ExecResult, exec } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import type { ContainerEventResponse__Output } from '../../../proto/gen/runtime/v1/ContainerEventResponse.ts';
import {
  apply,
  container,
  deletePods,
  eventually,
  getPod,
  podWhen,
  prints,
  ready,
  shellPod,
} from '../agent/harness.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';
import { pullTests } from './pulls.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
/** For giving up only. */
const LIMIT_MS = 300_000;
const BUSYBOX = 'docker.io/library/busybox:stable';

let lab: PrivateLab;
let cri: CriClient;
let directory: string;
let etcDocker: ExecResult;

/** What other programs may have there is not the lab's business. */
const listEtcDocker = (): Promise<ExecResult> => exec('find', ['/etc/docker', '-printf', '%p %T@\n']);

function crictl(...args: string[]): Promise<ExecResult> {
  return exec(NODELET, ['crictl', '--root', lab.root, '--timeout', '60s', ...args], { timeoutMs: LIMIT_MS });
}

async function output(...args: string[]): Promise<string> {
  const result = await crictl(...args);
  expect(result, `${args.join(' ')}: ${result.stderr}`).toMatchObject({ code: 0 });
  return result.stdout.trim();
}

/** What is served at a path, by way of a command that forwards a port and prints which. */
async function throughPortForward(command: readonly string[], path: string): Promise<string> {
  const script =
    // Emptied first: the port of an earlier one is in it.
    'file=$1 path=$2; shift 2; : >"$file"; "$@" >>"$file" & for i in $(seq 2000); do grep -q "^Forwarding from 127" "$file" && break; sleep 0.1; done; ' +
    'curl -s "http://127.0.0.1:$(sed -n "s/^Forwarding from 127.0.0.1:\\([0-9]*\\).*/\\1/p" "$file" | head -1)/$path"; kill $!';
  const words = ['-c', script, 'sh', join(directory, 'forward'), path, ...command];
  return (await exec('sh', words, { timeoutMs: LIMIT_MS })).stdout;
}

beforeAll(async () => {
  etcDocker = await listEtcDocker();
  // The test ends dockerd and the shim, which are none of containerd's clients that it loses shims by.
  lab = await startLab({ runtime: 'docker', registry: true });
  const endpoint = `unix://${lab.paths.docker.shimSocket}`;
  cri = createCriClient(endpoint, endpoint, new Tracer());
  directory = await mkdtemp(join(tmpdir(), 'nodelet-dockershim-'));
});
afterAll(async () => {
  cri?.close();
  await lab?.stop();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  expect(await listEtcDocker()).toEqual(etcDocker);
});

test('the node shows Docker, and images under their whole names', async () => {
  const node = await lab.kubectl(
    'get',
    'node',
    lab.nodeName,
    '-o',
    'jsonpath={.status.nodeInfo.containerRuntimeVersion}',
  );
  expect(node).toMatch(/^docker:\/\/\d+\./);
  const { images } = await cri.call('ListImages', {});
  expect(images.flatMap(({ repo_tags }) => repo_tags)).toEqual(
    expect.arrayContaining([BUSYBOX, 'docker.io/library/nginx:stable', 'registry.k8s.io/pause:3.9']),
  );
  expect(images.find(({ repo_tags }) => repo_tags.includes('registry.k8s.io/pause:3.9'))?.pinned).toBe(true);
  const { image } = await cri.call('ImageStatus', { image: { image: 'busybox:stable' } });
  expect(image?.id).toBe(images.find(({ repo_tags }) => repo_tags.includes(BUSYBOX))?.id);
  expect((await cri.call('ImageStatus', { image: { image: 'no/such:image' } })).image).toBeNull();
  const filesystem = async () => (await cri.call('ImageFsInfo', {})).image_filesystems[0];
  expect((await filesystem())?.fs_id?.mountpoint).toBe(lab.paths.docker.root);
  // The shim has Docker count from time to time: the figure may be from before the lab's images were there.
  await expect.poll(async () => Number((await filesystem())?.used_bytes?.value)).toBeGreaterThan(1_000_000);
});

test('a pod of the agent: init container, volume, probes, address, logs, exec and port-forward', async () => {
  const mount = [{ name: 'data', mountPath: '/data' }];
  await apply(
    lab,
    shellPod(
      'web',
      'httpd -p 8080 -h /data; echo to-stdout; echo to-stderr >&2; trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done',
      {
        volumes: [{ name: 'data', emptyDir: {} }],
        initContainers: [
          { name: 'init', image: BUSYBOX, command: ['sh', '-c', 'echo from-init > /data/x'], volumeMounts: mount },
        ],
      },
      {
        volumeMounts: mount,
        readinessProbe: { httpGet: { path: '/x', port: 8080 }, periodSeconds: 1, timeoutSeconds: 60 },
        livenessProbe: { exec: { command: ['cat', '/data/x'] }, periodSeconds: 1, timeoutSeconds: 60 },
        resources: { limits: { memory: '64Mi', cpu: '500m' } },
      },
    ),
  );
  const pod = await ready(lab, 'web');
  expect(container(pod).containerID).toMatch(/^docker:\/\/[0-9a-f]{64}$/);
  // The shim copies what Docker has of them, in its own time.
  await expect
    .poll(async () => (await lab.kubectl('logs', 'web')).split('\n').sort())
    .toEqual(['', 'to-stderr', 'to-stdout']);
  expect(await lab.kubectl('exec', 'web', '--', 'sh', '-c', 'cat /data/x; hostname; grep web /etc/hosts')).toBe(
    `from-init\nweb\n${pod.status?.podIP}\tweb\n`,
  );
  const failed = await lab.tryKubectl(['exec', 'web', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3']);
  expect(failed).toMatchObject({ code: 3, stdout: 'out\n' });
  expect(failed.stderr).toContain('err\n');
  const large = 'x'.repeat(300_000);
  expect(await lab.tryKubectl(['exec', '-i', 'web', '--', 'cat'], { stdin: large })).toMatchObject({ stdout: large });
  // What listens on the pod's loopback alone is reached as well.
  const kubectl = ['kubectl', '--kubeconfig', lab.kubeconfig, 'port-forward', 'pod/web', ':8080'];
  expect(await throughPortForward(kubectl, 'x')).toBe('from-init\n');
  // The limits are Docker's.
  const id = container(pod).containerID?.replace('docker://', '') ?? '';
  const { status } = await cri.call('ContainerStatus', { container_id: id });
  expect(status?.resources?.linux).toMatchObject({ memory_limit_in_bytes: String(64 * 2 ** 20), cpu_quota: '50000' });
  await deletePods(lab, ['web']);
});

test('how containers end: exit codes, out of memory, and what cannot be started', async () => {
  const once = { restartPolicy: 'Never' as const };
  await apply(
    lab,
    shellPod('three', 'echo bye; exit 3', once),
    shellPod('hungry', 'exec tail /dev/zero', once, { resources: { limits: { memory: '20Mi' } } }),
    shellPod('nothing', '', once, { command: ['/no/such/program'] }),
  );
  const ended = (name: string) =>
    podWhen(lab, name, `the end of ${name}`, (pod) => container(pod).state?.terminated !== undefined);
  expect(container(await ended('three')).state?.terminated).toMatchObject({ exitCode: 3, reason: 'Error' });
  await prints(lab, 'bye\n', 'logs', 'three');
  expect(container(await ended('hungry')).state?.terminated).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
  expect(container(await ended('nothing')).state?.terminated).toMatchObject({ exitCode: 128, reason: 'StartError' });
  expect(container(await getPod(lab, 'nothing')).state?.terminated?.message).toContain('no such file or directory');
  await deletePods(lab, ['three', 'hungry', 'nothing']);
});

test('a pod by hand: lists, exec, terminal, attach, stats, update, events', async () => {
  const events: ContainerEventResponse__Output[] = [];
  const stream = cri.containerEvents((event) => events.push(event));
  const logs = join(directory, 'logs');
  const podFile = join(directory, 'pod.json');
  const containerFile = join(directory, 'container.json');
  const metadata = { name: 'by-hand', namespace: 'default', uid: 'u1', attempt: 1 };
  const linux = { cgroup_parent: `${lab.paths.cgroupRoot}/crictl` };
  await writeFile(
    podFile,
    JSON.stringify({ metadata, hostname: 'hand', log_directory: logs, labels: { made: '1' }, linux }),
  );
  const command = ['sh', '-c', 'while read line; do echo "got $line"; done; sleep 100000'];
  await writeFile(
    containerFile,
    JSON.stringify({
      metadata: { name: 'shell' },
      image: { image: BUSYBOX },
      command,
      log_path: 'shell/0.log',
      stdin: true,
      annotations: { note: 'n' },
      linux: { resources: { memory_limit_in_bytes: 67_108_864 } },
    }),
  );
  await eventually(
    'the stream of events',
    async () => (await Promise.race([stream.ended, undefined])) === undefined || undefined,
  );
  const pod = await output('runp', podFile);
  // A name is given out once.
  expect((await crictl('runp', podFile)).stderr).toContain('failed to reserve sandbox name');
  const id = await output('create', pod, containerFile, podFile);
  expect(await output('ps', '-aq', '--state', 'created', '--pod', pod)).toBe(id);
  await output('start', id);
  expect((await crictl('start', id)).stderr).toContain('container is in CONTAINER_RUNNING state');
  expect(await output('ps', '-q', '--id', id.slice(0, 13))).toBe(id);
  expect(await output('exec', '-s', id, 'hostname')).toBe('hand');
  expect((await crictl('exec', '-s', id, 'nonexistent')).stderr).toContain('executable file not found');
  expect((await crictl('exec', id, 'nonexistent')).stderr).toContain('executable file not found');
  expect((await crictl('exec', '-s', '--timeout', '1', id, 'sleep', '4242')).stderr).toContain('DeadlineExceeded');
  // Docker has no limit of time for a command: the shim ends its process.
  await expect.poll(() => output('exec', '-s', id, 'sh', '-c', 'ps | grep -c "[s]leep 4242" || true')).toBe('0');
  // Over a WebSocket as well: input to its end, and the port-forward of what listens on loopback alone.
  const byWebSocket = ['--transport', 'websocket'];
  const large = 'x'.repeat(300_000);
  const words = ['crictl', '--root', lab.root, '--timeout', '60s', 'exec', '-i', ...byWebSocket, id, 'cat'];
  expect(await exec(NODELET, words, { stdin: large, timeoutMs: LIMIT_MS })).toMatchObject({ code: 0, stdout: large });
  expect((await crictl('exec', ...byWebSocket, id, 'nonexistent')).stderr).toContain('executable file not found');
  await output('exec', '-s', id, 'httpd', '-p', '127.0.0.1:8080', '-h', '/etc');
  expect(
    await throughPortForward([NODELET, ...words.slice(0, 5), 'port-forward', ...byWebSocket, pod, ':8080'], 'hostname'),
  ).toBe('hand\n');
  // The size comes on a stream of its own.
  const sized = 'until [ "$(stty size)" = "33 77" ]; do sleep 0.1; done; stty size; tty';
  const terminal = `stty rows 33 cols 77; ${NODELET} crictl --root ${lab.root} --timeout 60s exec -it ${id} sh -c '${sized}'`;
  expect((await exec('script', ['-qec', terminal, '/dev/null'], { timeoutMs: LIMIT_MS })).stdout).toMatch(
    /33 77\s+\/dev\/pts\//,
  );
  const attached = exec(
    'sh',
    ['-c', '(echo one; sleep 2) | timeout 250 "$@"', 'sh', NODELET, 'crictl', '--root', lab.root, 'attach', '-i', id],
    { timeoutMs: LIMIT_MS },
  );
  await eventually('the line in the log', async () =>
    (await output('logs', id)).includes('got one') ? true : undefined,
  );
  const { stats } = await cri.call('ContainerStats', { container_id: id });
  expect(Number(stats?.memory?.working_set_bytes?.value)).toBeGreaterThan(0);
  expect(Number(stats?.cpu?.usage_core_nano_seconds?.value)).toBeGreaterThan(0);
  const podStats = await cri.call('PodSandboxStats', { pod_sandbox_id: pod });
  expect(Number(podStats.stats?.linux?.process?.process_count?.value)).toBeGreaterThanOrEqual(2);
  expect(podStats.stats?.linux?.network?.default_interface?.name).toBe('eth0');
  await output('update', '--memory', '134217728', id);
  const { status } = await cri.call('ContainerStatus', { container_id: id });
  expect(status).toMatchObject({
    annotations: { note: 'n' },
    log_path: join(logs, 'shell/0.log'),
    resources: { linux: { memory_limit_in_bytes: '134217728' } },
  });
  // The kubelet's rotation: moved away, and opened again.
  await exec('mv', [join(logs, 'shell/0.log'), join(logs, 'shell/0.log.20260101-000000')]);
  await cri.call('ReopenContainerLog', { container_id: id });
  expect(await readFile(join(logs, 'shell/0.log'), 'utf8')).toBe('');
  await output('stop', '-t', '1', id);
  await attached;
  await output('rmp', '-f', pod);
  expect(await output('pods', '-q', '--name', '^by-hand$')).toBe('');
  const types = (): string[] =>
    events.filter((event) => event.container_id === id).map((event) => event.container_event_type);
  await eventually(`the last event after ${types()}`, () => (types().length >= 4 ? true : undefined));
  expect(types()).toEqual([
    'CONTAINER_CREATED_EVENT',
    'CONTAINER_STARTED_EVENT',
    'CONTAINER_STOPPED_EVENT',
    'CONTAINER_DELETED_EVENT',
  ]);
  stream.cancel();
});

pullTests(() => ({ lab, cri, crictl: output }));

test('what Docker cannot do is refused by the name of its field', async () => {
  const config = { metadata: { name: 'refused', namespace: 'default', uid: 'u2', attempt: 0 } };
  const userns = { namespace_options: { userns_options: { mode: 'POD' as const } } };
  await expect(
    cri.call('RunPodSandbox', { config: { ...config, linux: { security_context: userns } } }),
  ).rejects.toMatchObject({ code: 'UNIMPLEMENTED', message: expect.stringContaining('userns_options') });
  await expect(cri.call('RunPodSandbox', { config, runtime_handler: 'kata' })).rejects.toThrow('"kata"');
  await expect(cri.call('CheckpointContainer', {})).rejects.toMatchObject({ code: 'UNIMPLEMENTED' });
  await expect(cri.call('ContainerStatus', { container_id: 'nix' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await output('pods', '-q', '--name', '^refused$')).toBe('');
});

/** The numbers of the whole lines that the log has: of the last one a part may be written. */
async function counted(path: string): Promise<readonly number[]> {
  return (await readFile(path, 'utf8'))
    .split('\n')
    .slice(0, -1)
    .map((line) => Number(/ F line (\d+)$/.exec(line)?.[1]));
}

async function end(name: 'dockerd' | 'dockershim', signal: NodeJS.Signals): Promise<void> {
  const pid = lab.lab.pid(name);
  if (pid === undefined) throw new Error(`${name} does not run`);
  process.kill(pid, signal);
  await eventually(`another ${name}`, () => {
    const now = lab.lab.pid(name);
    return now !== undefined && now !== pid ? true : undefined;
  });
}

test('dockerd and the shim end under a running pod, which goes on; its log loses and doubles no line', async () => {
  await apply(lab, shellPod('counter', 'i=0; while :; do echo "line $i"; i=$((i+1)); sleep 0.02; done'));
  const pod = await ready(lab, 'counter');
  const before = container(pod);
  const log = join(lab.paths.podLogsDir, `default_counter_${pod.metadata.uid}`, 'main/0.log');
  const grows = async (what: string): Promise<void> => {
    const { length } = await counted(log);
    await eventually(`new lines after ${what}`, async () =>
      (await counted(log)).length > length + 20 ? true : undefined,
    );
  };
  await grows('the start');
  await end('dockershim', 'SIGKILL');
  await grows('the end of the shim');
  await end('dockerd', 'SIGTERM');
  await grows('the end of dockerd');
  const numbers = await counted(log);
  expect(numbers).toEqual(numbers.map((_, index) => index));
  const after = container(await getPod(lab, 'counter'));
  expect([after.containerID, after.restartCount]).toEqual([before.containerID, 0]);
  await prints(lab, 'hi\n', 'exec', 'counter', '--', 'echo', 'hi');
  await deletePods(lab, ['counter']);
});
