// One pod's life on a real node, from both sides: what kubectl shows, and what is really on the machine.

import { lstat, readFile, readlink } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import {
  apply,
  bridgePorts,
  cgroupsOf,
  condition,
  container,
  eventsOf,
  eventually,
  eventWhen,
  filesIn,
  gone,
  httpGet,
  leases,
  mainProcess,
  nothingLeft,
  pidsOf,
  podResources,
  ready,
  spans,
} from './harness.ts';

let lab: TestLab;
let before: readonly string[];
/** Epoch ms: before the pod was made. */
let from: number;
let web: Pod;
let uid: string;

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'back-end' },
  spec: { selector: { app: 'none' }, ports: [{ name: 'http', port: 8080 }] },
};

const WEB = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', labels: { app: 'web' } },
  spec: {
    hostname: 'shown',
    subdomain: 'sub',
    terminationGracePeriodSeconds: 2,
    dnsConfig: { options: [{ name: 'ndots', value: '3' }] },
    hostAliases: [{ ip: '10.9.8.7', hostnames: ['alias.example'] }],
    containers: [
      {
        name: 'web',
        image: 'nginx:stable',
        ports: [{ containerPort: 80 }],
        env: [
          { name: 'FIRST', value: 'one' },
          { name: 'SECOND', value: '$(FIRST)-$(BACK_END_SERVICE_PORT)-$(NOWHERE)-$$(FIRST)' },
          { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
        ],
        resources: { requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } },
      },
    ],
  },
};

beforeAll(async () => {
  lab = await shareLab();
  before = await podResources(lab);
  await apply(lab, SERVICE);
  from = Date.now();
  await apply(lab, WEB);
  web = await ready(lab, 'web');
  uid = web.metadata.uid;
});
afterAll(() => lab?.stop());

const inside = (...command: string[]): Promise<string> => lab.kubectl('exec', 'web', '--', ...command);

test('every condition is True once the container runs, and kubectl shows the pod as 1/1 Running', async () => {
  for (const type of ['PodScheduled', 'PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready']) {
    expect(condition(web, type), type).toMatchObject({ status: 'True' });
  }
  expect(web.status?.phase).toBe('Running');
  expect(await lab.kubectl('get', 'pod', 'web', '--no-headers')).toMatch(/^web\s+1\/1\s+Running\s+0\s/);
});

test('the status has the pod’s addresses, its start time, and its images', () => {
  const status = web.status;
  expect(status?.podIP).toMatch(/^10\.244\.\d+\.\d+$/);
  expect(status?.podIPs).toEqual([{ ip: status?.podIP }]);
  expect(status?.hostIP).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  expect(status?.hostIPs?.[0]).toEqual({ ip: status?.hostIP });
  expect(status?.qosClass).toBe('Burstable');
  // In whole seconds.
  expect(Date.parse(status?.startTime ?? '')).toBeGreaterThan(from - 1_000);
  expect(Date.parse(status?.startTime ?? '')).toBeLessThanOrEqual(Date.now());
  const shown = container(web, 'web');
  expect(shown).toMatchObject({ ready: true, started: true, restartCount: 0 });
  // containerd reports one of the names that an image has, not the one that was used.
  expect(shown.image).toMatch(/^docker\.io\/library\/nginx:(stable|latest)$/);
  expect(shown.containerID).toMatch(/^containerd:\/\/[0-9a-f]{64}$/);
  expect(shown.imageID).toMatch(/sha256:[0-9a-f]{64}$/);
  expect(shown.state?.running?.startedAt).toBeDefined();
});

test('the events record the start in order', async () => {
  // The scheduler has bound the pod before it notes so: its event may be of a later moment than the agent's first.
  const reasons = await eventually('the events Scheduled and Started', async () => {
    const events = await eventsOf(lab, 'web');
    const from = (scheduler: boolean): (string | undefined)[] =>
      events
        .filter(({ source }) => (source?.component === 'default-scheduler') === scheduler)
        .map(({ reason }) => reason);
    return from(true).length > 0 && from(false).includes('Started')
      ? { scheduler: from(true), agent: from(false) }
      : undefined;
  });
  expect(reasons).toEqual({ scheduler: ['Scheduled'], agent: ['Pulled', 'Created', 'Started'] });
});

test('an HTTP GET to the pod IP is answered by the container', async () => {
  expect((await httpGet(`http://${web.status?.podIP}/`)).status).toBe(200);
});

test('the pod has one veth on the bridge of the lab, and its address is lent by host-local', async () => {
  expect(await bridgePorts(lab)).toHaveLength(1);
  expect([...(await leases(lab)).values()]).toEqual([web.status?.podIP]);
  expect(await inside('ip', '-o', '-4', 'addr', 'show', 'eth0')).toContain(`inet ${web.status?.podIP}/24`);
  expect(await inside('ip', 'route')).toContain('default via');
});

test('shares, quota and memory limit are in the cgroup of the pod and of the container', async () => {
  const directories = await cgroupsOf(lab, uid);
  const at = (controller: string): string => {
    const found = directories.find((each) => new RegExp(`/(${controller})(,|/)|,${controller}/`).test(each));
    return found ?? directories[0] ?? '';
  };
  const id = container(web, 'web').containerID?.replace('containerd://', '') ?? '';
  const read = async (...parts: string[]): Promise<string> => (await readFile(join(...parts), 'utf8')).trim();
  const unified = (await filesIn(directories[0] ?? '')).includes('cgroup.subtree_control') && directories.length === 1;
  for (const below of ['', id]) {
    if (unified) {
      expect(await read(at('cpu'), below, 'cpu.max')).toBe('50000 100000');
      expect(await read(at('cpu'), below, 'memory.max')).toBe(String(64 * 1024 * 1024));
      expect(await read(at('cpu'), below, 'cpu.weight')).toBe(String(1 + Math.floor(((102 - 2) * 9999) / 262142)));
    } else {
      expect(await read(at('cpu'), below, 'cpu.shares')).toBe('102');
      expect(await read(at('cpu'), below, 'cpu.cfs_quota_us')).toBe('50000');
      expect(await read(at('memory'), below, 'memory.limit_in_bytes')).toBe(String(64 * 1024 * 1024));
    }
  }
});

test('the out-of-memory score follows from the memory request, and every process has it', async () => {
  const computed = 1000 - Math.floor((1000 * 32 * 1024 * 1024) / totalmem());
  const expected = Math.min(Math.max(computed, 3), 999);
  const pids = await pidsOf(lab, uid, container(web, 'web').containerID);
  expect(pids.length).toBeGreaterThan(0);
  for (const pid of pids) {
    const { code, stdout } = await exec('cat', [`/proc/${pid}/oom_score_adj`]);
    // What has ended meanwhile has none: a command that was run in the container.
    if (code === 0) expect(stdout.trim()).toBe(String(expected));
  }
  const first = await mainProcess(lab, web, 'web');
  expect((await readFile(`/proc/${first}/oom_score_adj`, 'utf8')).trim()).toBe(String(expected));
});

test('hostname, hosts file and resolver are those of the pod', async () => {
  expect((await inside('hostname')).trim()).toBe('shown');
  const hosts = await inside('cat', '/etc/hosts');
  expect(hosts).toMatch(
    new RegExp(`^${web.status?.podIP}\\tshown.sub.${lab.namespace}.svc.cluster.local\\tshown$`, 'm'),
  );
  expect(hosts).toMatch(/^10\.9\.8\.7\talias\.example$/m);
  expect(await inside('cat', '/etc/resolv.conf')).toMatch(/^options .*ndots:3/m);
});

test('the environment has service variables, the downward API and expanded $(VAR) references', async () => {
  const env = new Map((await inside('env')).split('\n').map((line) => [line.split('=')[0], line.split('=')[1]]));
  expect(env.get('SECOND')).toBe('one-8080-$(NOWHERE)-$(FIRST)');
  expect(env.get('NODE')).toBe(lab.nodeName);
  expect(env.get('IP')).toBe(web.status?.podIP);
  expect(env.get('LIMIT')).toBe('64');
  expect(env.get('BACK_END_SERVICE_HOST')).toMatch(/^10\./);
  expect(env.get('KUBERNETES_SERVICE_PORT')).toBe('443');
  expect(env.get('HOSTNAME')).toBe('shown');
});

test('the service account is mounted, with a token that the API server takes for this pod', async () => {
  const directory = '/var/run/secrets/kubernetes.io/serviceaccount';
  expect((await inside('cat', `${directory}/namespace`)).trim()).toBe(lab.namespace);
  expect(await inside('cat', `${directory}/ca.crt`)).toContain('BEGIN CERTIFICATE');
  const token = await inside('cat', `${directory}/token`);
  const anonymous = ['--kubeconfig', '/dev/null', '--certificate-authority', join(lab.paths.pkiDir, 'ca.crt')];
  const server = `https://127.0.0.1:${lab.lab.state.apiserverPort}`;
  const output = await execOk('kubectl', [
    ...anonymous,
    '-s',
    server,
    '--token',
    token,
    'auth',
    'whoami',
    '-o',
    'json',
  ]);
  expect(JSON.parse(output).status.userInfo.username).toBe(`system:serviceaccount:${lab.namespace}:default`);
});

test('the log is where log shippers read it, and the link to it is named as they expect', async () => {
  const file = join(lab.paths.podLogsDir, `${lab.namespace}_web_${uid}`, 'web', '0.log');
  expect((await lstat(file)).isFile()).toBe(true);
  const id = container(web, 'web').containerID?.replace('containerd://', '');
  const link = join(lab.paths.containerLogsDir, `web_${lab.namespace}_web-${id}.log`);
  expect(await readlink(link)).toBe(file);
  await expect.poll(() => readFile(file, 'utf8')).toMatch(/^\d{4}-\d\d-\d\dT\S+ std(out|err) [FP] /m);
});

test('sandbox and container carry the labels by which crictl and others recognise a pod', async () => {
  const ctr = (...args: string[]): Promise<string> =>
    execOk('ctr', ['--address', lab.paths.containerd.socket, '--namespace', 'k8s.io', ...args]);
  const labels = {
    'io.kubernetes.pod.name': 'web',
    'io.kubernetes.pod.namespace': lab.namespace,
    'io.kubernetes.pod.uid': uid,
  };
  const id = container(web, 'web').containerID?.replace('containerd://', '') ?? '';
  const shown = JSON.parse(await ctr('containers', 'info', id));
  expect(shown.Labels).toMatchObject({ ...labels, 'io.kubernetes.container.name': 'web' });
  // What pods before this one had in the runtime may be on its way out.
  const own = `labels."io.kubernetes.pod.uid"==${uid}`;
  const ids = (await ctr('containers', 'list', '-q', own)).split('\n').filter((line) => line !== '' && line !== id);
  expect(ids).toHaveLength(1);
  expect(JSON.parse(await ctr('containers', 'info', ids[0] ?? '')).Labels).toMatchObject({ ...labels, app: 'web' });
});

test('the status was written a few times only, and never twice the same', async () => {
  const written = (await spans(lab)).filter(
    (span) => span.kind === 'api' && span.name === 'PATCH pods/status' && span.pod?.uid === uid,
  );
  expect(written.map((span) => span.outcome)).not.toContain('error');
  expect(written.length).toBeGreaterThanOrEqual(1);
  expect(written.length).toBeLessThanOrEqual(4);
});

test('deleting the pod ends it and leaves nothing of it on the machine', async () => {
  await lab.kubectl('delete', 'pod', 'web');
  await gone(lab, 'web');
  await nothingLeft(lab, before);
  await eventWhen(lab, 'web', 'Killing');
});
