// The agent without any API server: static pods alone, from a directory and from a URL, on a containerd of the test's own.
// What it does is seen at its own HTTPS API. Its root directory and that of its pods' logs are reached through links.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { exec } from '../../../lib/exec.ts';
import { unmountBelow } from '../../../lib/mounts.ts';
import { container, eventually, FOREVER, isReady, shellPod } from '../agent/harness.ts';
import { type RunningContainerd, startContainerd } from '../support/containerd.ts';
import { importLabImages } from '../support/images.ts';
import { freePort } from '../support/ports.ts';

const NODELET = join(import.meta.dirname, '../../../bin/nodelet');
const CGROUP_ROOT = '/nodelet-standalone';

let root: string;
let manifests: string;
let containerd: RunningContainerd;
let port: number;
let agent: ChildProcess | undefined;
let log = '';
let web: Server;
/** The response of the URL. */
let served = { status: 200, body: '' };

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-e2e-'));
  manifests = join(root, 'manifests');
  await mkdir(manifests);
  await mkdir(join(root, 'kubelet'));
  await symlink('kubelet', join(root, 'link'));
  await mkdir(join(root, 'log', 'real'), { recursive: true });
  await symlink('real', join(root, 'log', 'pods'));
  containerd = await startContainerd({ root });
  await importLabImages(containerd);
  web = createServer((incoming, response) => {
    const allowed = incoming.headers['x-manifest-key'] === 'letmein';
    response.writeHead(allowed ? served.status : 403).end(allowed ? served.body : '');
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  served = { status: 200, body: JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [] }) };
  port = await freePort();
  await startAgent();
});

afterAll(async () => {
  // Pods outlive their agent: they are taken away as an operator would.
  await rm(manifests, { recursive: true, force: true });
  served = { status: 200, body: JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [] }) };
  await eventually('all pods to end', async () => ((await pods()).length === 0 ? true : undefined)).catch(
    () => undefined,
  );
  await stopAgent();
  await new Promise((resolve) => web?.close(resolve));
  await containerd?.stop();
  await exec('find', [
    '/sys/fs/cgroup',
    '-depth',
    '-type',
    'd',
    '-path',
    `*${CGROUP_ROOT}*`,
    '-exec',
    'rmdir',
    '{}',
    ';',
  ]);
  // Where the machine's root is not shared the agent has bound its own onto itself.
  await unmountBelow([root]);
  await rm(root, { recursive: true, force: true });
});

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen');
  return address.port;
}

async function configuration(settings: object = {}): Promise<string> {
  const path = join(root, 'kubelet.yaml');
  const fields = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '127.0.0.1',
    port,
    cgroupRoot: CGROUP_ROOT,
    podLogsDir: join(root, 'log', 'pods'),
    containerRuntimeEndpoint: `unix://${containerd.socket}`,
    staticPodPath: manifests,
    fileCheckFrequency: '1h',
    staticPodURL: `http://127.0.0.1:${portOf(web)}/pods`,
    staticPodURLHeader: { 'x-manifest-key': ['letmein'] },
    httpCheckFrequency: '300ms',
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    failSwapOn: false,
    ...settings,
  };
  await writeFile(path, JSON.stringify(fields));
  return path;
}

const flags = (config: string): readonly string[] => [
  ...['agent', '--config', config, '--root-dir', join(root, 'link'), '--hostname-override', 'alone'],
  ...['--network', 'runtime'],
];

async function startAgent(): Promise<void> {
  const child = spawn(NODELET, flags(await configuration()), { stdio: ['ignore', 'ignore', 'pipe'] });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  agent = child;
  await eventually('the agent to serve', async () => {
    if (child.exitCode !== null) throw new Error(log);
    return (await get('/healthz')) === 'ok' ? true : undefined;
  });
}

async function stopAgent(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  const child = agent;
  agent = undefined;
  if (child === undefined || child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

/** The body of a GET at the kubelet API, which shows a certificate of its own making. */
function get(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, rejectUnauthorized: false, timeout: 60_000 };
    const sent = request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks).toString()));
    });
    sent.on('timeout', () => sent.destroy(new Error(`no answer to ${path}`)));
    sent.on('error', reject).end();
  });
}

async function pods(): Promise<readonly Pod[]> {
  const list: { items: Pod[] } = JSON.parse(await get('/pods'));
  return list.items;
}

function podWhen(name: string, what: string, accept: (pod: Pod) => boolean): Promise<Pod> {
  return eventually(`pod ${name} to be ${what}`, async () =>
    (await pods()).find((pod) => pod.metadata.name === name && accept(pod)),
  );
}

function gone(name: string): Promise<boolean> {
  return eventually(`pod ${name} to be gone`, async () =>
    (await pods()).some((pod) => pod.metadata.name === name) ? undefined : true,
  );
}

/** Without CNI on this containerd a pod lives on the node's network. */
const own = (name: string, script = FOREVER): object => shellPod(name, script, { hostNetwork: true });
const write = (name: string, pod: object): Promise<void> =>
  writeFile(join(manifests, `${name}.yaml`), JSON.stringify(pod));

test('a static pod runs, is served with its status and its log, and its events are in the log', async () => {
  await write('web', own('web', `echo no cluster at all; ${FOREVER}`));
  const pod = await podWhen('web-alone', 'Ready', isReady);
  expect(pod.status?.phase).toBe('Running');
  await eventually('its log', async () =>
    (await get('/containerLogs/default/web-alone/main')) === 'no cluster at all\n' ? true : undefined,
  );
  await eventually('its events', () => (/Started/.test(log) ? true : undefined));
  expect(log).toContain('no API server: only static pods run here');
});

test('a static pod is changed and removed with its file', async () => {
  const before = container(await podWhen('web-alone', 'Ready', isReady)).containerID;
  await write('web', own('web', `echo again; ${FOREVER}`));
  await podWhen('web-alone', 'its next version', (pod) => isReady(pod) && container(pod).containerID !== before);
  await rm(join(manifests, 'web.yaml'));
  await gone('web-alone');
});

test('a pod that goes leaves the files of the machine that it had mounted, and its memory volume is no hindrance', async () => {
  const data = join(root, 'data');
  await mkdir(join(data, 'part'), { recursive: true });
  await writeFile(join(data, 'part', 'file'), 'kept');
  const script = `until [ -f /part/file ]; do sleep 0.1; done; echo x > /part/new; ${FOREVER}`;
  const volumes = [
    { name: 'data', hostPath: { path: data } },
    { name: 'memory', emptyDir: { medium: 'Memory' } },
  ];
  const volumeMounts = [
    { name: 'data', mountPath: '/part', subPath: 'part' },
    { name: 'memory', mountPath: '/memory' },
  ];
  const spec = { hostNetwork: true, automountServiceAccountToken: false, volumes };
  await write('keeper', shellPod('keeper', script, spec, { volumeMounts }));
  await podWhen('keeper-alone', 'Ready', isReady);
  await eventually('its own file', async () =>
    (await readdir(join(data, 'part'))).includes('new') ? true : undefined,
  );
  // The mount table has them by the path that no link is in.
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  expect(mounts).toContain(` ${join(root, 'kubelet', 'pods')}/`);
  await rm(join(manifests, 'keeper.yaml'));
  await gone('keeper-alone');
  await eventually('its directory to be gone', async () =>
    (await readdir(join(root, 'kubelet', 'pods'))).length === 0 ? true : undefined,
  );
  expect((await readdir(join(data, 'part'))).toSorted()).toEqual(['file', 'new']);
  expect(await readFile(join(data, 'part', 'file'), 'utf8')).toBe('kept');
});

test('pods of a URL run too, and stay when the URL does not answer any more', async () => {
  const list = (...items: object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items });
  served = { status: 200, body: list(own('fetched')) };
  const pod = await podWhen('fetched-alone', 'Ready', isReady);
  expect(pod.metadata.annotations?.['kubernetes.io/config.source']).toBe('http');
  served = { status: 500, body: '' };
  await eventually('the error in the log', () => (log.includes('500 Internal Server Error') ? true : undefined));
  served = { status: 200, body: '{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "UPPER"}}' };
  await eventually('the validation error in the log', () =>
    log.includes('metadata.name: Invalid value') ? true : undefined,
  );
  expect(container(await podWhen('fetched-alone', 'Ready', isReady)).containerID).toBe(container(pod).containerID);
  served = { status: 200, body: list() };
  await gone('fetched-alone');
});

test('a pod runs on through the death of its agent, and is known again by the next', async () => {
  await write('lasting', own('lasting'));
  const before = await podWhen('lasting-alone', 'Ready', isReady);
  await stopAgent('SIGKILL');
  await startAgent();
  const after = await podWhen('lasting-alone', 'Ready', isReady);
  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(container(after)).toMatchObject({ containerID: container(before).containerID, restartCount: 0 });
  await rm(join(manifests, 'lasting.yaml'));
  await gone('lasting-alone');
});

test('what only an API server can give is refused in one line, as by the kubelet', async () => {
  const run = async (settings: object): Promise<string> => {
    const result = await exec(NODELET, flags(await configuration(settings)), { timeoutMs: 300_000 });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr.trimEnd().split('\n')).toHaveLength(1);
    return result.stderr;
  };
  const authentication = { anonymous: { enabled: true }, webhook: { enabled: true } };
  expect(await run({ authentication })).toContain('--authentication-token-webhook=false');
  expect(await run({ authorization: { mode: 'Webhook' } })).toContain('--authorization-mode=AlwaysAllow');
  expect(await run({ staticPodPath: '', staticPodURL: '' })).toContain('nothing to run');
  expect(await run({ staticPodURL: 'ftp://host/pods' })).toContain('staticPodURL must be an http or https URL');
});

test('nothing of any pod is left in the runtime, on disk and among the cgroups', async () => {
  await eventually('everything to be gone', async () => {
    const dirs = await exec('find', [join(root, 'kubelet', 'pods'), '-mindepth', '1']);
    const groups = await exec('find', [
      '/sys/fs/cgroup',
      '-type',
      'd',
      '-path',
      `*${CGROUP_ROOT}/*pod*`,
      '-name',
      'pod*',
    ]);
    return dirs.stdout + groups.stdout === '' ? true : undefined;
  });
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  expect(mounts.split('\n').filter((line) => line.includes(join(root, 'kubelet', 'pods')))).toEqual([]);
  await eventually('the runtime to have none', async () =>
    (await get('/runningpods/')).includes('"items":[]') ? true : undefined,
  );
});
