// Network policies with a real API server, the real kernel and real packets: a node and its pods are network namespaces of the test's own, on
// one bridge, with a machine outside. The enforcer has the rights that a lab gives it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { netpolObjects } from '../../../cli/lab/netpol.ts';
import { makeObjects } from '../../../cli/lab/system-objects.ts';
import { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import { systemClock } from '../../../lib/clock.ts';
import { type Exec, exec, execOk } from '../../../lib/exec.ts';
import { removeTable } from '../../../lib/nft-writer.ts';
import { Tracer } from '../../../lib/trace.ts';
import { runNetpol } from '../../../netpol/main.ts';
import { type Credentials, TestApiServer } from '../../support/api-server.ts';
import { eventually } from '../controlplane/cluster.ts';
import { freePort } from '../support/ports.ts';

const TABLE = 'nodelet-netpol';
const PREFIX = `nlnp${process.pid}`;
const NODE = 'node';
const SERVICE = '10.96.0.77';
/** The machines: pods of the node, one outside, whose packets the node routes, and the node's own address. */
const ADDRESS = { web: '10.9.0.10', client: '10.9.0.11', other: '10.9.0.12', outside: '192.0.2.2', node: '10.9.0.1' };
type Machine = keyof typeof ADDRESS;
const PODS = ['web', 'client', 'other'] as const;
const NAMESPACE_OF = { web: 'x', client: 'x', other: 'y' };

let api: TestApiServer;
let admin: ApiClient;
const stop = new AbortController();
let running: Promise<void> = Promise.resolve();
const servers: ChildProcess[] = [];
/** Of the enforcer: what nft was given, when it has ended. */
const written: string[] = [];
const log: string[] = [];
let metricsPort = 0;

const netns = (machine: Machine): string => `${PREFIX}-${machine}`;
const on = (machine: Machine, ...command: string[]) => exec('ip', ['netns', 'exec', netns(machine), ...command]);
const runOn = async (machine: Machine, command: string): Promise<void> => {
  const [file = '', ...args] = command.split(' ');
  await execOk('ip', ['netns', 'exec', netns(machine), file, ...args]);
};
const start = (machine: Machine, ...command: string[]): ChildProcess => {
  const child = spawn('ip', ['netns', 'exec', netns(machine), ...command], { stdio: ['pipe', 'pipe', 'ignore'] });
  servers.push(child);
  return child;
};
/** Of the enforcer. */
const insideNode: Exec = async (file, args, options) => {
  const result = await exec('ip', ['netns', 'exec', netns('node'), file, ...args], options);
  const { stdin } = options ?? {};
  // Not `nft -c`, which only checks; and what nothing leads to any longer is removed later, with a check of the table.
  const isChange = file === 'nft' && !args.includes('-c') && typeof stdin === 'string';
  if (isChange && !/^delete (chain|set) /m.test(stdin)) written.push(stdin);
  return result;
};

function access({ cert = '', key = '' }: Credentials) {
  return { server: api.server.url, ca: api.server.pki.ca.cert, clientCert: cert, clientKey: key };
}

async function connect(machine: Machine, port: string, link: string, address: string): Promise<void> {
  await execOk('ip', ['netns', 'add', netns(machine)]);
  await execOk('ip', [
    'link',
    'add',
    'eth0',
    'netns',
    netns(machine),
    'type',
    'veth',
    'peer',
    port,
    'netns',
    netns('node'),
  ]);
  await runOn(machine, `ip address add ${ADDRESS[machine]}/24 dev eth0`);
  await runOn(machine, 'ip link set lo up');
  await runOn(machine, 'ip link set eth0 up');
  await runOn(machine, `ip route add default via ${address}`);
  await runOn('node', link);
  await runOn('node', `ip link set ${port} up`);
}

async function makeMachines(): Promise<void> {
  await execOk('ip', ['netns', 'add', netns('node')]);
  for (const command of [
    'ip link set lo up',
    'ip link add br0 type bridge',
    `ip address add ${ADDRESS.node}/24 dev br0`,
    'ip link set br0 up',
    'sysctl -qw net.ipv4.ip_forward=1',
  ]) {
    await runOn('node', command);
  }
  for (const pod of PODS) await connect(pod, pod, `ip link set ${pod} master br0`, ADDRESS.node);
  await connect('outside', 'out', 'ip address add 192.0.2.1/24 dev out', '192.0.2.1');
  // As a proxy does it: the Service's address becomes the pod's before policies decide.
  const service = `table ip service {
    chain prerouting { type nat hook prerouting priority -100; ip daddr ${SERVICE} tcp dport 8000 dnat to ${ADDRESS.web}:80; }
  }`;
  await execOk('ip', ['netns', 'exec', netns('node'), 'nft', '-f', '-'], { stdin: service });
  for (const port of ['80', '81']) start('web', 'busybox', 'nc', '-ll', '-p', port, '-e', 'cat');
  start('outside', 'busybox', 'nc', '-ll', '-p', '80', '-e', 'cat');
}

/** Whether a connection opens within these seconds. */
const opens = async (from: Machine, address: string, port: number, seconds = 1): Promise<boolean> =>
  (await on(from, 'timeout', String(seconds), 'bash', '-c', `: </dev/tcp/${address}/${port}`)).code === 0;

/** What is refused is dropped without an answer: nothing comes for a second. */
async function expectRefused(...ways: readonly [Machine, string, number][]): Promise<void> {
  expect(
    await Promise.all(ways.map(async ([from, to, port]) => [from, to, port, await opens(from, to, port)])),
  ).toEqual(ways.map((way) => [...way, false]));
}
async function expectOpen(...ways: readonly [Machine, string, number][]): Promise<void> {
  expect(
    await Promise.all(ways.map(async ([from, to, port]) => [from, to, port, await opens(from, to, port, 120)])),
  ).toEqual(ways.map((way) => [...way, true]));
}

const policies = resourcePath('networking.k8s.io/v1', 'networkpolicies', { namespace: 'x' });
async function apply(name: string, spec: object): Promise<void> {
  const before = written.length;
  await admin.create(policies, { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name }, spec });
  await writtenSince(before);
}
/** What nft was given from there on, once it was given something. */
async function writtenSince(before: number): Promise<readonly string[]> {
  return eventually('a write', async () => (written.length > before ? written.slice(before) : undefined));
}

beforeAll(async () => {
  [api] = await Promise.all([TestApiServer.start(), makeMachines()]);
  admin = new ApiClient(access(api.admin), { tracer: new Tracer(), clock: systemClock, userAgent: 'test' });
  await makeObjects(admin, netpolObjects());
  for (const name of ['x', 'y']) {
    await admin.create(resourcePath('v1', 'namespaces'), { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await admin.create(resourcePath('v1', 'serviceaccounts', { namespace: name }), account);
  }
  for (const name of PODS) {
    const path = resourcePath('v1', 'pods', { namespace: NAMESPACE_OF[name] });
    const ports = [{ name: 'first', containerPort: 80 }];
    const spec = { nodeName: NODE, containers: [{ name: 'c', image: 'none', ports }] };
    await admin.create(path, { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: name } }, spec });
    const status = { phase: 'Running', podIP: ADDRESS[name], podIPs: [{ ip: ADDRESS[name] }] };
    await admin.patch(`${path}/${name}/status`, { status }, 'merge');
  }
  const ready = Promise.withResolvers<void>();
  metricsPort = await freePort();
  running = runNetpol({
    access: access(api.server.pki.clients.netpol),
    nodeName: NODE,
    table: TABLE,
    syncPeriodMs: 500,
    metricsAddress: `127.0.0.1:${metricsPort}`,
    tracer: new Tracer(),
    clock: systemClock,
    log: (line) => log.push(line),
    signal: stop.signal,
    onReady: ready.resolve,
    run: insideNode,
  });
  await Promise.race([ready.promise, running]);
  // The servers may not listen yet.
  for (const port of [80, 81]) {
    await eventually('the servers', async () => ((await opens('client', ADDRESS.web, port, 30)) ? true : undefined));
  }
  await eventually('the one outside', async () => ((await opens('web', ADDRESS.outside, 80, 30)) ? true : undefined));
  await expectOpen(['client', ADDRESS.web, 80], ['client', ADDRESS.web, 81], ['web', ADDRESS.outside, 80]);
});

afterAll(async () => {
  stop.abort();
  await running;
  admin?.close();
  await api?.stop();
  await Promise.all(
    servers.map(async (child) => {
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGKILL');
      await ended;
    }),
  );
  const { stdout } = await exec('ip', ['netns', 'list']);
  for (const line of stdout.split('\n')) {
    const [name = ''] = line.split(' ');
    if (name.startsWith(`${PREFIX}-`)) await execOk('ip', ['netns', 'delete', name]);
  }
});

test('default deny, then allow: connections that are open go on, and the node always reaches its pods', async () => {
  const client = start('client', 'busybox', 'nc', ADDRESS.web, '80');
  const echoes = createInterface({ input: client.stdout ?? process.stdin })[Symbol.asyncIterator]();
  client.stdin?.write('before\n');
  expect((await echoes.next()).value).toBe('before');

  await apply('deny', { podSelector: {}, policyTypes: ['Ingress'] });
  await Promise.all([
    expectRefused(
      ['client', ADDRESS.web, 80],
      ['other', ADDRESS.web, 80],
      ['outside', ADDRESS.web, 80],
      ['client', SERVICE, 8000],
    ),
    expectOpen(['node', ADDRESS.web, 80], ['web', ADDRESS.outside, 80], ['web', ADDRESS.web, 80]),
  ]);
  client.stdin?.write('after\n');
  expect((await echoes.next()).value).toBe('after');

  const from = [{ podSelector: { matchLabels: { app: 'client' } } }, { ipBlock: { cidr: '192.0.2.0/24' } }];
  await apply('allow', {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [{ from, ports: [{ port: 'first' }] }],
  });
  await Promise.all([
    expectOpen(['client', ADDRESS.web, 80], ['client', SERVICE, 8000], ['outside', ADDRESS.web, 80]),
    expectRefused(['client', ADDRESS.web, 81], ['other', ADDRESS.web, 80], ['other', SERVICE, 8000]),
  ]);
});

test('does not start where bridged packets pass no rules', async () => {
  const unfiltered: Exec = async (file, args, options) => ({ ...(await exec(file, args, options)), stdout: '0\n' });
  const options = { access: access(api.server.pki.clients.netpol), nodeName: NODE, table: TABLE, syncPeriodMs: 500 };
  const parts = { tracer: new Tracer(), clock: systemClock, log: () => undefined, signal: stop.signal };
  await expect(runNetpol({ ...options, ...parts, run: unfiltered })).rejects.toThrow('bridge-nf-call-iptables=1');
});

test('a label is one element in one transaction', async () => {
  await apply('label', {
    podSelector: {},
    ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: 'a' } } }] }],
  });
  const before = written.length;
  await admin.patch(resourcePath('v1', 'namespaces', { name: 'y' }), { metadata: { labels: { team: 'a' } } }, 'merge');
  const [change = '', ...more] = await writtenSince(before);
  expect(change).toMatch(
    new RegExp(
      `^add set inet ${TABLE} pods-[A-Z2-7]{13} \\{ type ipv4_addr; elements = \\{ ${ADDRESS.other} \\}; \\}\\n$`,
    ),
  );
  expect(more).toEqual([]);
  await expectOpen(['other', ADDRESS.web, 81]);
});

test('egress: a block with a hole, over the router', async () => {
  await apply('egress', {
    podSelector: { matchLabels: { app: 'web' } },
    policyTypes: ['Egress'],
    egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['192.0.2.0/24'] } }] }],
  });
  await expectRefused(['web', ADDRESS.outside, 80]);
  await apply('more', {
    podSelector: { matchLabels: { app: 'web' } },
    policyTypes: ['Egress'],
    egress: [{ to: [{ ipBlock: { cidr: '192.0.2.2/32' } }], ports: [{ port: 79, endPort: 81 }] }],
  });
  await expectOpen(['web', ADDRESS.outside, 80]);
});

test('what is taken away by hand is written again; policies that go leave nothing', async () => {
  for (const args of [
    ['flush', 'chain', 'inet', TABLE, 'ingress'],
    ['delete', 'table', 'inet', TABLE],
  ]) {
    const repairs = (): number => log.filter((line) => line.includes('written again')).length;
    const before = repairs();
    await runOn('node', `nft ${args.join(' ')}`);
    await eventually('repair', async () => (repairs() > before ? true : undefined));
    await eventually('the rules', async () =>
      (await on('node', 'nft', 'list', 'chain', 'inet', TABLE, 'ingress')).stdout.includes('vmap') ? true : undefined,
    );
  }
  expect(log.filter((line) => line.includes('written again'))).toEqual([
    'chain ingress has other rules: all rules are written again',
    `table inet ${TABLE} is gone: all rules are written again`,
  ]);
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  for (const line of [
    'nodelet_netpol_policies 5',
    'nodelet_netpol_repairs_total 2',
    'nodelet_netpol_sync_failures_total 0',
    'nodelet_netpol_isolated_pods{direction="ingress"} 2',
    'nodelet_netpol_isolated_pods{direction="egress"} 1',
  ]) {
    expect(metrics.split('\n')).toContain(line);
  }
  expect(metrics).toMatch(/^rest_client_requests_total\{code="200",host="[^"]+",method="GET"\} \d+$/m);
  for (const name of ['deny', 'allow', 'label', 'egress', 'more']) await admin.delete(`${policies}/${name}`);
  const left = async (): Promise<string[]> => {
    const { stdout } = await on('node', 'nft', '-j', 'list', 'table', 'inet', TABLE);
    return [...stdout.matchAll(/"chain": \{"family": "inet", "table": "[^"]*", "name": "([^"]*)"/g)].map(
      ([, name = '']) => name,
    );
  };
  await eventually('no chains of policies', async () => ((await left()).length === 2 ? true : undefined));
  expect(await left()).toEqual(['egress', 'ingress']);
  await expectOpen(['other', ADDRESS.web, 80]);
  await removeTable(`inet ${TABLE}`, insideNode);
});
