// Several nodes on one machine, with stock kubectl: pods and Services across nodes, exec and logs on each, a node that is added, cut off,
// killed, stopped and started again, and what the control plane makes of it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NodeView } from '../../../cli/lab/node/actions.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Pod, Service } from '../../../client/types.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import {
  apply,
  condition,
  container,
  deletePods,
  eventually,
  eventWhen,
  getPod,
  httpGet,
  isReady,
  podWhen,
  prints,
  ready,
  shellPod,
} from '../agent/harness.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));
const NODELET = join(TREE, 'bin/nodelet');
/** Answers with the name of its pod, and writes down whom it answers. */
const SERVER = 'mkdir /tmp/w; cd /tmp/w; echo $HOSTNAME > index.html; httpd -f -v -p 8080 & trap "exit 0" TERM; wait';
/** No other lab's. */
const SERVICES = '10.223.240.0/20';

let lab: PrivateLab;

beforeAll(async () => {
  lab = await startLab({
    kills: true,
    nodes: { count: 2, zones: ['a', 'b'], serviceRange: SERVICES },
    proxy: 'iptables',
    dns: true,
    netpol: true,
    registry: true,
    // A lease is renewed each second, and a machine that stalls for some of them loses no node.
    kubeletConfiguration: { nodeLeaseDurationSeconds: 4 },
    controlplaneFlags: ['--node-monitor-grace-period', '6s'],
  });
});

// Fails when anything of the nodes is left on the machine.
afterAll(async () => lab?.stop());

const nodelet = (...args: string[]): Promise<string> => execOk(NODELET, ['node', ...args, '--root', lab.root]);
/** The rule and the sentence of `nodelet explain`, whatever it exits with. */
const explained = async (...args: string[]): Promise<string> => {
  const { stdout, stderr } = await exec(NODELET, ['explain', ...args, '--root', lab.root, '-o', 'json']);
  if (stdout === '') throw new Error(stderr);
  const { rule, verdict }: { rule: string; verdict: string } = JSON.parse(stdout);
  return `${rule}: ${verdict}`;
};
/** Waits for it: each look has short deadlines of its own, and the node of a kubelet that stalls is NotReady for a moment. */
const explainedAs = (expected: RegExp, ...args: string[]): Promise<string> => {
  let last = '';
  return eventually(`explain ${args.join(' ')} to give ${expected}`, async () => {
    last = await explained(...args);
    return expected.test(last) ? last : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${errorMessage(error)}; it gives ${last}`);
  });
};
const on = (node: string, name: string, script = SERVER): object => {
  const pod = shellPod(name, script, { nodeSelector: { 'kubernetes.io/hostname': node } }) as { metadata: object };
  return { ...pod, metadata: { ...pod.metadata, labels: { app: 'web' } } };
};
const viewOf = (name: string): NodeView => {
  const found = lab.lab.nodes?.list().find((node) => node.name === name);
  if (found === undefined) throw new Error(`the lab has no node ${name}`);
  return found;
};
const addressOf = async (pod: string): Promise<string> => (await getPod(lab, pod)).status?.podIP ?? '';
const wget = (pod: string, url: string): readonly string[] => [
  'exec',
  pod,
  '--',
  'timeout',
  '5',
  'wget',
  '-q',
  '-O-',
  url,
];
const from = (pod: string, url: string): Promise<string> => lab.kubectl(...wget(pod, url));
/** The pod named `server` answers another one, by its address, once it listens: that it runs is not enough. */
const answersTo = async (server: string, pod: string): Promise<string> =>
  prints(lab, `${server}\n`, ...wget(pod, `http://${await addressOf(server)}:8080/`));
const nodeIs = (name: string, status: string): Promise<Node> =>
  eventually(`${name} to be Ready ${status}`, async () => {
    const node = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name }));
    return condition(node, 'Ready')?.status === status ? node : undefined;
  });

// First of all: what the page adds, the tests after it use.
test('the commands of docs/lab.md work as they are written', async () => {
  const page = await readFile(join(TREE, 'docs/lab.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh nodes\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
  expect(blocks).toHaveLength(2);
  const script = blocks
    .join('')
    // On a busy machine a lease may come late, which is explained for as long as it is so.
    .replace(/^bin\/nodelet explain .*$/m, 'until $&; do sleep 1; done')
    .replaceAll('/var/lib/nodelet', lab.root)
    .replace(/bin\/nodelet (node \w+|explain)/g, `bin/nodelet $1 --root ${lab.root}`);
  const { code, stdout, stderr } = await exec('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: TREE,
    timeoutMs: 500_000,
  });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  expect(stdout).toMatch(/^node-3 .* c$/m);
  expect(stdout).toContain(`default via ${viewOf('node-3').address.replace(/\.\d+$/, '.1')} dev eth0`);
  expect(stdout).toContain('default/kubernetes:https cluster IP');
});

test('each node has its address, its zone and its range of pods', async () => {
  const { items } = await lab.client.list<Node>(resourcePath('v1', 'nodes'), {});
  const found = items.map(({ metadata, spec, status }) => ({
    name: metadata.name,
    hostname: metadata.labels?.['kubernetes.io/hostname'],
    zone: metadata.labels?.['topology.kubernetes.io/zone'],
    podCIDRs: spec?.podCIDRs,
    address: status?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
  }));
  expect(found).toEqual(
    ['node-1', 'node-2', 'node-3'].map((name) => {
      const { zone, podCIDR, address } = viewOf(name);
      return { name, hostname: name, zone, podCIDRs: [podCIDR], address };
    }),
  );
  expect(new Set(found.map(({ address }) => address)).size).toBe(3);
  const wide = await lab.kubectl('get', 'nodes', '-o', 'wide', '--no-headers');
  for (const { address } of found) expect(wide).toContain(address);
  expect(await nodelet('list')).toMatch(/^NAME .*\nnode-1 +running +a .*\nnode-2 +running +b /);
});

test('a pod on the host’s network has the name of its node', async () => {
  const nodeSelector = { 'kubernetes.io/hostname': 'node-2' };
  await apply(lab, shellPod('named', 'sleep infinity', { hostNetwork: true, nodeSelector }));
  await prints(lab, 'node-2\n', 'exec', 'named', '--', 'hostname');
  expect(await lab.kubectl('exec', 'named', '--', 'cat', '/etc/hostname')).toBe('node-2\n');
  await deletePods(lab, ['named']);
});

test('pods on different nodes reach each other, each by its own address', async () => {
  await apply(lab, on('node-1', 'one'), on('node-2', 'two'));
  const [one, two] = [await ready(lab, 'one'), await ready(lab, 'two')];
  const prefix = (name: string): string => viewOf(name).podCIDR.replace(/0\/24$/, '');
  expect(one.status?.podIP).toMatch(prefix('node-1'));
  expect(two.status?.podIP).toMatch(prefix('node-2'));
  // The machine, too.
  for (const pod of [one, two]) {
    expect((await httpGet(`http://${pod.status?.podIP}:8080/`)).body.trim()).toBe(pod.metadata.name);
  }
  await answersTo('two', 'one');
  await answersTo('one', 'two');
  // Exec was on each; so are logs, which show that addresses are not replaced on the way.
  for (const [server, client] of [
    [one, two],
    [two, one],
  ] as const) {
    const line = new RegExp(`${client.status?.podIP?.replaceAll('.', '\\.')}\\]:`);
    await prints(lab, line, 'logs', server.metadata.name);
  }
});

test('each node pulls from the registry of the lab, on the bridge', async () => {
  const names = ['node-1', 'node-2'];
  const pulled = (node: string): object => {
    const spec = { nodeSelector: { 'kubernetes.io/hostname': node } };
    return shellPod(`pulled-${node}`, 'exec sleep 1000', spec, { image: 'limited/busybox' });
  };
  await apply(lab, ...names.map(pulled));
  for (const node of names) {
    await ready(lab, `pulled-${node}`);
    await eventWhen(lab, `pulled-${node}`, 'Pulled', /^Successfully pulled image "limited\/busybox" in /);
  }
  await deletePods(
    lab,
    names.map((node) => `pulled-${node}`),
    { graceSeconds: 1 },
  );
  expect(lab.lab.state.registry?.url).toBe(
    `http://${viewOf('node-1').address.replace(/\.\d+$/, '.1')}:${lab.lab.state.registry?.own?.port}`,
  );
});

test('a Service spans the nodes: from a pod, and from the machine at its address and at each node', async () => {
  await lab.kubectl('create', 'service', 'nodeport', 'web', '--tcp=80:8080');
  const path = resourcePath('v1', 'services', { namespace: 'default', name: 'web' });
  const { spec } = await lab.client.get<Service>(path);
  const port = spec?.ports?.[0]?.nodePort;
  const both = (what: string, get: () => Promise<string>): Promise<unknown> => {
    const seen = new Set<string>();
    return eventually(`both pods to answer ${what}`, async () => {
      seen.add((await get()).trim());
      return seen.has('one') && seen.has('two') ? true : undefined;
    });
  };
  const get = (url: string) => async (): Promise<string> => {
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000), headers: { connection: 'close' } });
    return response.text();
  };
  await both('a pod, by its name', () => from('one', 'http://web/'));
  await both('a pod', () => from('one', `http://${spec?.clusterIP}/`));
  await both('the machine', get(`http://${spec?.clusterIP}/`));
  for (const name of ['node-1', 'node-2']) await both(name, get(`http://${viewOf(name).address}:${port}/`));
});

test('with trafficDistribution a zone keeps to its own pods, and one without any goes to all', async () => {
  const path = resourcePath('v1', 'services', { namespace: 'default', name: 'web' });
  const { spec } = await lab.client.get<Service>(path);
  // Of each node's own network: the zone of a connection is that of the node that it comes from.
  const script = `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do timeout 5 busybox wget -q -O- http://${spec?.clusterIP}/; done`;
  const seenFrom = async (node: string): Promise<string> => {
    const { stdout } = await exec('nsenter', [`--net=${viewOf(node).netns}`, '--', 'sh', '-c', script]);
    return [...new Set(stdout.trim().split('\n'))].sort().join();
  };
  const follows = (distribution: string | null, expected: Readonly<Record<string, string>>): Promise<unknown> => {
    const all = Object.entries(expected).map(([node, pods]) =>
      eventually(`${pods} from ${node} with ${distribution}`, async () =>
        (await seenFrom(node)) === pods ? true : undefined,
      ),
    );
    return Promise.all(all);
  };
  const distribute = async (distribution: string | null, expected: Readonly<Record<string, string>>) => {
    await lab.client.patch(path, { spec: { trafficDistribution: distribution } }, 'merge');
    await follows(distribution, expected);
  };
  const everywhere = { 'node-1': 'one,two', 'node-2': 'one,two', 'node-3': 'one,two' };
  await follows('nothing', everywhere);
  await distribute('PreferSameZone', { 'node-1': 'one', 'node-2': 'two', 'node-3': 'one,two' });
  await distribute(null, everywhere);
});

test('explain sees every node from the machine: what listens in pods, the proxy’s rules, a policy that is enforced', async () => {
  const service = (expected: RegExp): Promise<string> =>
    explainedAs(expected, 'service', 'default/web', '--from', 'two');
  await service(/^service-ready: 2 ready pods can answer, and they listen on its ports$/);
  await explainedAs(/^ready: it is Ready/, 'pod', 'default/two');
  await apply(lab, {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'closed' },
    spec: { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'] },
  });
  await service(/^service-policy: NetworkPolicy closed lets nothing in to TCP 8080 of pod (one|two)$/);
  await lab.kubectl('delete', 'networkpolicy', 'closed');
  const timeline = ['timeline', '--root', lab.root, '--pod', 'default/two', '--format', 'text'];
  expect(await execOk(NODELET, timeline)).toContain('RunPodSandbox');
  await expect(execOk(NODELET, ['trace', '--root', lab.root])).rejects.toThrow(
    'the lab has several nodes: give --node node-1 or --node node-2 or --node node-3',
  );
});

test('a load balancer’s address is answered for by one node, by another one when that is gone, and with Local by one with endpoints', async () => {
  const path = resourcePath('v1', 'services', { namespace: 'default', name: 'balanced' });
  await lab.kubectl('label', 'pod', 'one', 'only=one');
  const flags = ['--name=balanced', '--selector=only=one', '--port=80', '--target-port=8080', '--type=LoadBalancer'];
  await lab.kubectl('expose', 'pod', 'one', ...flags);
  const ip = await eventually('an address', async () => {
    const { status } = await lab.client.get<Service>(path);
    return status?.loadBalancer?.ingress?.[0]?.ip;
  });
  const owners = async (): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const { name, netns, condition: is } of lab.lab.nodes?.list() ?? []) {
      if (is !== 'running') continue;
      const shown = await execOk('nsenter', [`--net=${netns}`, '--', 'ip', '-4', 'address', 'show', 'dev', 'eth0']);
      if (shown.includes(`inet ${ip}/32`)) found.push(name);
    }
    return found;
  };
  const only = (what: string, isIt: (name: string) => boolean): Promise<string> =>
    eventually(what, async () => {
      const [name, ...others] = await owners();
      return name !== undefined && others.length === 0 && isIt(name) ? name : undefined;
    });
  const answers = (from: string, get: () => Promise<string>): Promise<true> =>
    eventually(`an answer of ${ip} to ${from}`, async () => ((await get()).trim() === 'one' ? true : undefined));
  const machine = async (): Promise<string> => {
    const { code, stdout } = await exec('timeout', ['10', 'busybox', 'wget', '-q', '-O-', `http://${ip}/`]);
    return code === 0 ? stdout : '';
  };
  const owner = await only('one node to have the address', () => true);
  await answers('the machine', machine);
  await answers('a pod', () => from('two', `http://${ip}/`));
  await eventually('the line about the address', () =>
    lab.lines.join('\n').includes(`${ip} of the Service default/balanced is announced on`) ? true : undefined,
  );
  await lab.kubectl('patch', 'service', 'balanced', '-p', '{"spec":{"externalTrafficPolicy":"Local"}}');
  await only('the node of the pod', (name) => name === 'node-1');
  await answers('the machine', machine);
  await lab.kubectl('patch', 'service', 'balanced', '-p', '{"spec":{"externalTrafficPolicy":"Cluster"}}');
  await only('the first node again', (name) => name === owner);
  await lab.kubectl('label', 'node', owner, 'node.kubernetes.io/exclude-from-external-load-balancers=');
  await only('another node', (name) => name !== owner);
  await answers('the machine', machine);
  await lab.kubectl('label', 'node', owner, 'node.kubernetes.io/exclude-from-external-load-balancers-');
  await lab.kubectl('delete', 'service', 'balanced');
  await eventually('the address to go', async () => ((await owners()).length === 0 ? true : undefined));
});

test('a node that was added, killed and started is known to the others', async () => {
  await apply(lab, on('node-3', 'three'));
  await ready(lab, 'three');
  await answersTo('three', 'two');
  await expect(nodelet('add', 'node-3')).rejects.toThrow('the lab has a node node-3');
});

test('a node that is cut off is NotReady, and Ready again with the same containers', async () => {
  const before = container(await getPod(lab, 'three')).containerID;
  await nodelet('partition', 'node-3');
  const [, silent] = await Promise.all([
    expect(from('two', `http://${await addressOf('three')}:8080/`)).rejects.toThrow(),
    nodeIs('node-3', 'Unknown'),
  ]);
  expect(condition(silent, 'Ready')?.reason).toBe('NodeStatusUnknown');
  // Services do without its pods.
  await podWhen(lab, 'three', 'not Ready', (pod) => condition(pod, 'Ready')?.status === 'False');
  await eventWhen(lab, 'three', 'NodeNotReady', /^Node is not ready$/);
  await eventually('the taints of a node that is unreachable', async () => {
    const { spec } = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name: 'node-3' }));
    const effects = spec?.taints
      ?.filter(({ key }) => key === 'node.kubernetes.io/unreachable')
      .map(({ effect }) => effect);
    return effects?.includes('NoExecute') === true ? true : undefined;
  });
  await explainedAs(/^node-server: its agent cannot reach the API server .* \(TCP\): /, 'node', 'node-3');
  await expect(nodelet('start', 'node-3')).rejects.toThrow('node-3 is partitioned: it cannot be started');
  await nodelet('heal', 'node-3');
  await nodeIs('node-3', 'True');
  const after = await podWhen(lab, 'three', 'Ready again', isReady);
  expect(container(after).containerID).toBe(before);
  await answersTo('three', 'two');
});

test('of a node that is killed the pods are made again elsewhere, and it comes back with its disk', async () => {
  const kept = viewOf('node-3');
  await lab.kubectl('cordon', 'node-1');
  await lab.kubectl('cordon', 'node-2');
  const template = shellPod('moving', SERVER, {
    tolerations: ['not-ready', 'unreachable'].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 1,
    })),
  }) as { spec: object };
  await apply(lab, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'moving' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'moving' } },
      template: { metadata: { labels: { app: 'moving' } }, spec: template.spec },
    },
  });
  const podOn = (node: string): Promise<Pod> =>
    eventually(`a Ready pod of the deployment on ${node}`, async () => {
      const query = { labelSelector: 'app=moving', fieldSelector: `spec.nodeName=${node}` };
      const { items } = await lab.client.list<Pod>(resourcePath('v1', 'pods', { namespace: 'default' }), query);
      return items.find((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);
    });
  const first = await podOn('node-3');
  await lab.kubectl('uncordon', 'node-1');
  await nodelet('kill', 'node-3');
  expect(await nodelet('list')).toMatch(/node-3 +killed/);
  await nodeIs('node-3', 'Unknown');
  await explainedAs(/^node-silent: /, 'node', 'node-3');
  expect((await podOn('node-1')).metadata.uid).not.toBe(first.metadata.uid);
  await nodelet('start', 'node-3');
  await nodeIs('node-3', 'True');
  expect(viewOf('node-3')).toEqual(kept);
  // Its agent ends what was evicted meanwhile, and starts what is still there.
  await eventually('the evicted pod to be gone', async () => {
    const query = { labelSelector: 'app=moving', fieldSelector: 'spec.nodeName=node-3' };
    const { items } = await lab.client.list<Pod>(resourcePath('v1', 'pods', { namespace: 'default' }), query);
    return items.length === 0 ? true : undefined;
  });
});

test('a node that is stopped has nothing running, and its pods run again after its start', async () => {
  const before = container(await getPod(lab, 'two'));
  await nodelet('stop', 'node-2');
  expect(await nodelet('list')).toMatch(/node-2 +stopped/);
  await nodelet('start', 'node-2');
  const after = await podWhen(
    lab,
    'two',
    'started anew',
    (pod) => isReady(pod) && container(pod).containerID !== before.containerID,
  );
  expect(container(after).restartCount).toBe(before.restartCount + 1);
  await answersTo('two', 'one');
});
