// Services with real traffic, in both modes of the proxy: from a pod and from the node, to cluster addresses and node ports, with
// stock kubectl. The time between two looks at the kernel's tables is an hour: what follows a change does not come from a look.

import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { ServicePort } from 'kubernetes-types/core/v1';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proxyProgram } from '../../../cli/lab/programs.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import type { EndpointSlice, Pod, Service } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { type ExecResult, exec, execOk } from '../../../lib/exec.ts';
import { poll } from '../../../lib/retry.ts';
import { readTables, removeProxyRules } from '../../../proxy/iptables/iptables.ts';
import { ownerOf } from '../../../proxy/iptables/script.ts';
import { tableOwner } from '../../../proxy/nftables/nftables.ts';
import { apply, eventually, FOREVER, isReady, podPath, shellPod } from '../agent/harness.ts';
import { describeDnsFromPods } from '../dns/from-pods.ts';
import { describePoliciesFromPods } from '../netpol/from-pods.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';
import { describePorts } from './ports.ts';

/** For giving up only. */
const TURN_MS = 900_000;
const NAMESPACE = 'proxied';
const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
/** Answers with the name of its pod, at two ports. */
const SERVER = 'mkdir /tmp/w; cd /tmp/w; echo $HOSTNAME > index.html; httpd -p 8081; exec httpd -f -p 8080';

let lab: PrivateLab;
let child: ChildProcess | undefined;

const at = (name: string) => ({ namespace: NAMESPACE, name });
const kubectl = (...args: string[]): Promise<string> => lab.kubectl('-n', NAMESPACE, ...args);
const service = (name: string): Promise<Service> => lab.client.get(resourcePath('v1', 'services', at(name)));
const slicesOf = async (name: string): Promise<readonly EndpointSlice[]> => {
  const query = { labelSelector: `kubernetes.io/service-name=${name}` };
  const path = resourcePath('discovery.k8s.io/v1', 'endpointslices', { namespace: NAMESPACE });
  return (await lab.client.list<EndpointSlice>(path, query)).items;
};
const server = (name: string, app = 'web'): object => {
  // As a StatefulSet's pods: the Service `headless` has a name for each.
  const pod = shellPod(name, SERVER, { hostname: name, subdomain: 'headless' }) as { metadata: object };
  return { ...pod, metadata: { ...pod.metadata, namespace: NAMESPACE, labels: { app } } };
};
const portOf = async (name: string): Promise<ServicePort> => {
  const [port] = (await service(name)).spec?.ports ?? [];
  if (port === undefined) throw new Error(`${name} has no port`);
  return port;
};
/** A server that serves on after it is deleted, until someone shortens that: for longer than its test takes anywhere. */
const leaving = (name: string): object => {
  const pod = server(name, name) as { spec: { containers: readonly object[] } };
  const command = ['sleep', '3000'];
  const containers = pod.spec.containers.map((each) => ({ ...each, lifecycle: { preStop: { exec: { command } } } }));
  return { ...pod, spec: { ...pod.spec, containers, terminationGracePeriodSeconds: 3600 } };
};
const addressOf = async (name: string): Promise<string> => (await service(name)).spec?.clusterIP ?? '';
const nodeIP = async (): Promise<string> =>
  (
    await lab.kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}')
  ).trim();

/** The name of the pod that answers; from the node, or from a pod. Five seconds have room for two SYNs that are sent again. */
async function tryGet(address: string, from?: string, seconds = 5): Promise<ExecResult> {
  const get = ['timeout', String(seconds), 'wget', '-q', '-O-', `http://${address}/`];
  const limit = { timeoutMs: seconds * 1000 + 60_000 };
  return from === undefined
    ? exec('busybox', get, limit)
    : lab.tryKubectl(['-n', NAMESPACE, 'exec', from, '--', ...get], limit);
}
async function answerOf(address: string, from?: string, seconds?: number): Promise<string | undefined> {
  const { code, stdout } = await tryGet(address, from, seconds);
  return code === 0 ? stdout.trim() : undefined;
}
/** Where there has to be an answer at the first try, however long that takes. */
const firstAnswer = (address: string): Promise<string | undefined> => answerOf(address, undefined, 120);
const answers = (address: string, from?: string): Promise<string> =>
  eventually(`an answer of ${address}`, () => answerOf(address, from));
const refused = (address: string): Promise<true> =>
  eventually(`${address} to be refused`, async () =>
    /refused/.test((await tryGet(address)).stderr) ? true : undefined,
  );

/** Whether a connection from the node opens. */
function opens(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port: 80, timeout: 1000 });
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}

/** Another proxy in place of the lab's. */
async function startProxy(mode: 'iptables' | 'nftables', ...more: string[]): Promise<void> {
  await stopProxy();
  const { args } = proxyProgram(lab.paths, lab.lab.state, ['--proxy-mode', mode, ...more]);
  child = spawn(NODELET, [...args], { stdio: 'ignore' });
}
async function stopProxy(): Promise<void> {
  if (child === undefined) await lab.lab.halt('proxy');
  else {
    const ended = new Promise((resolve) => child?.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  child = undefined;
}

const proxyOwner = async (): Promise<string | undefined> => ownerOf(await readTables(exec)) ?? (await tableOwner(exec));

/** One lab of the machine has the proxy. Those of other files have it now and then: this one waits for its turn. */
async function startLabWithProxy(): Promise<PrivateLab> {
  for (;;) {
    const started = await startLab({
      proxy: 'iptables',
      proxyFlags: ['--sync-period', '60m'],
      dns: true,
      netpol: true,
    });
    if (started.lab.state.proxy !== undefined) return started;
    const other = await proxyOwner();
    await started.stop();
    const givenBack = async (): Promise<true | undefined> => ((await proxyOwner()) === other ? undefined : true);
    await eventually(`${other} to give the proxy back`, givenBack, TURN_MS);
  }
}

beforeAll(async () => {
  lab = await startLabWithProxy();
  expect(lab.lines.join('\n')).not.toContain('Services are not forwarded');
  await lab.kubectl('create', 'namespace', NAMESPACE);
  await eventually('the service account', async () =>
    (await lab.tryKubectl(['-n', NAMESPACE, 'get', 'serviceaccount', 'default'])).code === 0 ? true : undefined,
  );
  const client = shellPod('client', FOREVER) as { metadata: object };
  const here = { ...client, metadata: { ...client.metadata, namespace: NAMESPACE } };
  const ending = ['leaving-iptables', 'leaving-nftables'];
  await apply(lab, server('one'), server('two'), server('single', 'single'), here, ...ending.map(leaving));
  for (const name of ['one', 'two', 'single', 'client', ...ending]) await podReady(name);
  await kubectl(
    'expose',
    'pod',
    'one',
    '--name=web',
    '--selector=app=web',
    '--port=80',
    '--target-port=8080',
    '--type=NodePort',
  );
  await kubectl('expose', 'pod', 'single', '--port=80', '--target-port=8080');
  await kubectl('create', 'service', 'clusterip', 'headless', '--clusterip=None', '--tcp=80:8080');
  await kubectl('set', 'selector', 'service/headless', 'app=web');
}, 2 * TURN_MS);
afterAll(async () => {
  child?.kill('SIGKILL');
  await lab?.stop();
});

const podReady = async (name: string): Promise<void> => {
  await eventually(`pod ${name}`, async () => {
    const out = await kubectl('get', 'pod', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}');
    return out === 'True' ? true : undefined;
  });
};

test('the node shows that the proxy has started, in the words of kube-proxy', async () => {
  await eventually('the event', async () =>
    /^ +Normal +Starting .* kube-proxy *$/m.test(await lab.kubectl('describe', 'nodes')) ? true : undefined,
  );
});

test('the commands of docs/services.md work as they are written', async () => {
  const page = await readFile(fileURLToPath(new URL('../../../docs/services.md', import.meta.url)), 'utf8');
  const blocks = [...page.matchAll(/^```sh proxied\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
  expect(blocks.length).toBeGreaterThan(4);
  const script = blocks.join('').replaceAll('/var/lib/nodelet', lab.root);
  const { code, stdout, stderr } = await exec('bash', ['-euo', 'pipefail', '-c', script], { timeoutMs: 1_200_000 });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
}, 1_300_000);

describeDnsFromPods(() => lab, NAMESPACE);
describePoliciesFromPods(() => lab, NAMESPACE);

describe.each(['iptables', 'nftables'] as const)('%s', (mode) => {
  beforeAll(async () => {
    if (mode === 'iptables') return;
    await startProxy(mode, '--sync-period', '60m');
    await removeProxyRules();
  });

  test('a cluster address from the node and from a pod, a node port from both, and both pods answer', async () => {
    const [address, { nodePort }, node] = [await addressOf('web'), await portOf('web'), await nodeIP()];
    for (const to of [address, `${node}:${nodePort}`]) {
      for (const from of [undefined, 'client']) expect(await answers(to, from)).toMatch(/^(one|two)$/);
    }
    const seen = new Set<string>();
    await eventually('both pods', async () => (seen.add(await answers(address)).size === 2 ? true : undefined));
    expect([...seen].sort()).toEqual(['one', 'two']);
  });

  test('a load balancer’s address from the node and from a pod, for those alone who may, and the health of this node', async () => {
    const name = `balanced-${mode}`;
    const flags = [`--name=${name}`, '--selector=app=single', '--port=80', '--target-port=8080'];
    await kubectl('expose', 'pod', 'single', ...flags, '--type=LoadBalancer');
    const ip = await eventually('an address', async () => (await service(name)).status?.loadBalancer?.ingress?.[0]?.ip);
    expect(ip).toMatch(/^10\.244\.\d+\.24[1-9]$/);
    for (const from of [undefined, 'client', 'single']) expect(await answers(ip, from)).toBe('single');
    // The proxy's rules answer for it whether it is there yet or not.
    await eventually('the address on the bridge', async () =>
      (await execOk('ip', ['-4', 'address', 'show', 'dev', lab.paths.bridge])).includes(`inet ${ip}/32`)
        ? true
        : undefined,
    );
    const set = (spec: object): Promise<string> => kubectl('patch', 'service', name, '-p', JSON.stringify({ spec }));
    // Of the pods one alone may.
    const source = await kubectl('get', 'pod', 'client', '-o', 'jsonpath={.status.podIP}');
    await set({ loadBalancerSourceRanges: [`${source}/32`] });
    await eventually('a refusal', async () => {
      const { code } = await lab.tryKubectl(
        ['-n', NAMESPACE, 'exec', 'one', '--', 'timeout', '1', 'wget', '-q', '-O-', `http://${ip}/`],
        { timeoutMs: 60_000 },
      );
      return code === 0 ? undefined : true;
    });
    expect(await answers(ip, 'client')).toBe('single');
    await set({ loadBalancerSourceRanges: null, externalTrafficPolicy: 'Local' });
    for (const from of [undefined, 'client', 'one']) expect(await answers(ip, from)).toBe('single');
    const { spec } = await service(name);
    const health = async (): Promise<readonly [number, unknown]> => {
      const response = await fetch(`http://127.0.0.1:${spec?.healthCheckNodePort}/`);
      return [response.status, await response.json()];
    };
    const about = { service: { namespace: NAMESPACE, name }, serviceProxyHealthy: true };
    const healthy = async (): Promise<unknown> => {
      const [status, body] = await health();
      return status === 200 ? body : undefined;
    };
    expect(await eventually('its health', healthy)).toEqual({ ...about, localEndpoints: 1 });
    await set({ selector: { app: 'nothing' } });
    await eventually('a node without endpoints', async () => ((await health())[0] === 503 ? true : undefined));
    await kubectl('delete', 'service', name);
    await eventually('the address to go', async () =>
      (await execOk('ip', ['-4', 'address', 'show', 'dev', lab.paths.bridge])).includes(ip) ? undefined : true,
    );
  });

  test('a pod reaches itself by its service', async () => {
    expect(await answers(await addressOf('single'), 'single')).toBe('single');
  });

  test('a client stays with its endpoint where the service says so', async () => {
    const address = await addressOf('web');
    await kubectl('patch', 'service', 'web', '-p', '{"spec":{"sessionAffinity":"ClientIP"}}');
    const nodePort = `${await nodeIP()}:${(await portOf('web')).nodePort}`;
    for (const to of [address, nodePort]) {
      await eventually(`eight answers of one pod at ${to}`, async () => {
        const some: (string | undefined)[] = [];
        for (let turn = 0; turn < 8; turn++) some.push(await firstAnswer(to));
        return new Set(some).size === 1 && some[0] !== undefined ? true : undefined;
      });
    }
    await kubectl('patch', 'service', 'web', '-p', '{"spec":{"sessionAffinity":"None"}}');
    for (const to of [address, nodePort]) {
      const seen = new Set<string>();
      await eventually('both pods', async () => (seen.add(await answers(to)).size === 2 ? true : undefined));
    }
  });

  test('endpoints follow a pod’s readiness, and a service without any refuses connections', async () => {
    const name = `gated-${mode}`;
    const podsPath = resourcePath('v1', 'pods', { namespace: NAMESPACE });
    const pod = server(name, name) as { spec: object };
    await apply(lab, { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: 'test/gate' }] } });
    await kubectl('expose', 'pod', name, '--port=80', '--target-port=8080');
    const address = await addressOf(name);
    await eventually('the pod to run', async () =>
      (await kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase}')) === 'Running' ? true : undefined,
    );
    await refused(address);
    const store = new Reflector<Pod>({
      client: lab.client,
      path: podsPath,
      query: { fieldSelector: `metadata.name=${name}` },
      clock: systemClock,
    });
    let changed = 0;
    store.store.onChange((changes) => {
      for (const change of changes) {
        if (change.type === 'modified' && isReady(change.old) !== isReady(change.object)) changed = performance.now();
      }
    });
    const stop = new AbortController();
    const watching = store.run(stop.signal);
    await store.store.whenSynced();
    for (const [status, isOpen] of [
      ['True', true],
      ['False', false],
      ['True', true],
    ] as const) {
      const conditions = [{ type: 'test/gate', status }];
      await lab.client.patch(`${podPath(name, NAMESPACE)}/status`, { status: { conditions } }, 'strategic');
      // Often: what is printed is to be the time that it takes, not the time between two looks.
      const look = async (): Promise<boolean> => (await opens(address)) === isOpen;
      expect(await poll(look, { clock: systemClock, everyMs: 2, limitMs: 300_000 })).toBe(true);
      const after = Math.round(performance.now() - changed);
      process.stdout.write(`${mode}: ${isOpen ? 'open' : 'refused'} ${after} ms after the pod’s condition\n`);
    }
    stop.abort();
    await watching;
    const slices = await slicesOf(name);
    expect(slices.flatMap(({ endpoints = [] }) => endpoints.map(({ conditions }) => conditions))).toEqual([
      { ready: true, serving: true, terminating: false },
    ]);
  });

  test('a pod on its way out serves as long as no other pod does', async () => {
    const name = `leaving-${mode}`;
    await kubectl('expose', 'pod', name, '--port=80', '--target-port=8080');
    const address = await addressOf(name);
    expect(await answers(address)).toBe(name);
    const conditions = async (): Promise<readonly unknown[]> =>
      (await slicesOf(name)).flatMap(({ endpoints = [] }) => endpoints.map((each) => each.conditions));
    const leaves = { ready: false, serving: true, terminating: true };
    // Connections are made all the time, and each has its answer.
    const [seen, stop] = [[] as (string | undefined)[], new AbortController()];
    const asking = (async () => {
      while (!stop.signal.aborted) seen.push(await firstAnswer(address));
    })();
    await kubectl('delete', 'pod', name, '--wait=false');
    await eventually('its condition terminating', async () =>
      (await conditions()).some((each) => isDeepStrictEqual(each, leaves)) ? true : undefined,
    );
    // The rules that follow the slice, too.
    const before = seen.length;
    await eventually('twenty answers', async () => (seen.length > before + 20 ? true : undefined));
    stop.abort();
    await asking;
    expect([...new Set(seen)]).toEqual([name]);
    // One that is ready has all new connections.
    await kubectl('label', 'pod', 'one', `app=${name}`, '--overwrite');
    await eventually('the pod that is ready', async () => ((await answerOf(address)) === 'one' ? true : undefined));
    const after: (string | undefined)[] = [];
    for (let turn = 0; turn < 10; turn++) after.push(await firstAnswer(address));
    expect([...new Set(after)]).toEqual(['one']);
    expect(await conditions()).toContainEqual(leaves);
    await kubectl('label', 'pod', 'one', 'app=web', '--overwrite');
    expect(
      await eventually('the last pod again', async () => ((await answerOf(address)) === name ? name : undefined)),
    ).toBe(name);
    await kubectl('delete', 'pod', name, '--grace-period=1', '--wait=false');
    await refused(address);
    await kubectl('delete', 'service', name);
  });

  test('a headless service has endpoints and no rules', async () => {
    // One of them had another label a moment ago.
    await eventually('both endpoints', async () => {
      const slices = await slicesOf('headless');
      const ips = slices.flatMap(({ endpoints = [] }) => endpoints.flatMap(({ addresses }) => addresses));
      return ips.length === 2 ? true : undefined;
    });
    const rules = mode === 'iptables' ? await execOk('iptables-save', []) : await execOk('nft', ['list', 'ruleset']);
    expect(rules).toContain('proxied/web');
    expect(rules).not.toContain('proxied/headless');
  });

  test('UDP that went to a pod that is gone goes to another one', async () => {
    const name = `udp-${mode}`;
    await apply(lab, server(`${name}-a`, name), server(`${name}-b`, name));
    await podReady(`${name}-a`);
    await podReady(`${name}-b`);
    await kubectl(
      'expose',
      'pod',
      `${name}-a`,
      `--name=${name}`,
      `--selector=app=${name}`,
      '--port=53',
      '--protocol=UDP',
    );
    const address = await addressOf(name);
    const socket = createSocket('udp4');
    // Nothing listens in the pods: that the packet is refused is no matter here.
    socket.on('error', () => undefined);
    const flow = async (): Promise<string | undefined> => {
      socket.send('x', 53, address);
      const lines = (await readFile('/proc/net/nf_conntrack', 'utf8')).split('\n');
      return lines
        .map((line) => new RegExp(`dst=${address} .*dport=53 .*src=(10\\.244\\S+) `).exec(line)?.[1])
        .find((ip) => ip !== undefined);
    };
    try {
      const first = await eventually('a flow to a pod', flow);
      const pods = await kubectl(
        'get',
        'pods',
        '-l',
        `app=${name}`,
        '-o',
        'jsonpath={range .items[*]}{.metadata.name} {.status.podIP}\n{end}',
      );
      const owner =
        pods
          .split('\n')
          .find((line) => line.endsWith(` ${first}`))
          ?.split(' ')[0] ?? '';
      await kubectl('label', 'pod', owner, 'app=gone', '--overwrite');
      await eventually('a flow to the other pod', async () => {
        const now = await flow();
        return now !== undefined && now !== first ? now : undefined;
      });
    } finally {
      socket.close();
    }
  });

  describePorts(() => lab, NAMESPACE, mode);

  test('what is removed by hand is written again', async () => {
    await startProxy(mode, '--sync-period', '1s');
    // Its first write is of everything, and would hide that it looks.
    await eventually('the first write', async () => {
      const page = await (await fetch(`http://127.0.0.1:${lab.lab.state.proxy?.metricsPort}/metrics`)).text();
      const written = /^kubeproxy_sync_full_proxy_rules_duration_seconds_count\{ip_family="IPv4"\} [1-9]/m;
      return written.test(page) ? true : undefined;
    });
    const address = await addressOf('web');
    await answers(address);
    // Held still, it cannot repair what is damaged before anyone sees the damage.
    child?.kill('SIGSTOP');
    if (mode === 'iptables') await execOk('iptables', ['-w', '-t', 'nat', '-F', 'KUBE-SERVICES']);
    else await execOk('nft', ['delete', 'table', 'ip', 'kube-proxy']);
    expect((await tryGet(address)).code).not.toBe(0);
    child?.kill('SIGCONT');
    await answers(address);
  });
});

test('health and metrics as kube-proxy has them', async () => {
  const { healthzPort, metricsPort } = lab.lab.state.proxy ?? {};
  const get = async (port = 0, path = ''): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  expect(JSON.parse(await get(healthzPort, '/healthz'))).toMatchObject({ nodeEligible: true });
  // Its first write was of everything; this is a change, with the time at which the pod changed.
  const conditions = [{ type: 'test/gate', status: 'False' }];
  await lab.client.patch(`${podPath('gated-nftables', NAMESPACE)}/status`, { status: { conditions } }, 'strategic');
  const names = [
    'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"}',
    'kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"}',
    'kubeproxy_sync_partial_proxy_rules_duration_seconds_count{ip_family="IPv4"}',
    'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}',
    'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"}',
    'kubeproxy_network_programming_duration_seconds_bucket{le="59",ip_family="IPv4"}',
    'kubeproxy_sync_proxy_rules_service_changes_total ',
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 0',
    'kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}',
    'kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"} 0',
    'kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"}',
    'kubeproxy_proxy_healthz_total{code="200"}',
    'rest_client_requests_total{code="200"',
    'process_cpu_seconds_total',
  ];
  await eventually('a change to be written, and none to be left', async () => {
    const page = await get(metricsPort, '/metrics');
    const missing = names.filter((name) => !page.includes(name));
    if (missing.length > 0) throw new Error(`not on the page: ${missing.join(', ')}`);
    return true;
  });
  expect(await get(metricsPort, '/proxyMode')).toBe('nftables');
  expect(await get(metricsPort, '/healthz')).toBe('ok');
  expect(await get(metricsPort, '/metrics/slis')).toContain('kubernetes_healthcheck{name="ping",type="healthz"} 1\n');
});
