// `nodelet explain service` on a real node: the proxy's rules in real tables of the kernel (of a network namespace that stands for
// the node's), connections, and names by a real DNS server, looked for from pods with several resolv.confs.

import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { EndpointSlice, Pod, Service } from '../../../client/types.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { apply, eventually, FOREVER, mainProcess, ready, shellPod } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { type Answer, answerFor, answerWhen } from './answers.ts';
import { web } from './broken.ts';
import { type NameServer, startNameServer } from './name-server.ts';

const DNS_PORT = 53;
const OTHER_PORT = 5353;
/** A network namespace with one address, in which the proxy's rules are: the node as a Service is looked for from it. */
const NAMESPACE = `nodelet-explain-${process.pid}`;
const EMPTY = `${NAMESPACE}-empty`;
const NAMESPACE_FILE = `/run/netns/${NAMESPACE}`;
const ADDRESS = '10.255.77.1';

let lab: TestLab;
let bridge: string;
let dns: NameServer | undefined;
let httpd: ChildProcess | undefined;

const here = (name: string): string => `${lab.namespace}/${name}`;
const nameOf = (name: string): string => `${name}.${lab.namespace}.svc.cluster.local`;
const inside = (stdin: string, ...args: string[]): Promise<string> =>
  execOk('ip', ['netns', 'exec', NAMESPACE, ...args], { stdin });

function service(name: string, spec: object, namespace?: string): object {
  const own = { ports: [{ port: 80, targetPort: 8080 }] };
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { ...own, ...spec } };
}

function slice(
  owner: string,
  address: string,
  port: { name?: string; port: number; protocol?: string },
  namespace: string,
) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: owner, namespace, labels: { 'kubernetes.io/service-name': owner } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [port],
  };
}

const slices = (namespace: string): string => resourcePath('discovery.k8s.io/v1', 'endpointslices', { namespace });
const DNS_SERVICE = { ports: [{ name: 'dns', port: DNS_PORT, protocol: 'UDP' }] };
const headless = { clusterIP: 'None', selector: { app: 'web' } };

async function addressOf(name: string, namespace = lab.namespace): Promise<string> {
  const { spec } = await lab.client.get<Service>(resourcePath('v1', 'services', { namespace, name }));
  return spec?.clusterIP ?? '';
}

/** A pod that asks this server. */
function client(name: string, nameserver: string): object {
  const searches = [`${lab.namespace}.svc.cluster.local`, 'svc.cluster.local', 'cluster.local'];
  return shellPod(name, FOREVER, { dnsPolicy: 'None', dnsConfig: { nameservers: [nameserver], searches } });
}

const natTable = (lines: readonly string[]): string =>
  ['*nat', ':KUBE-SERVICES - [0:0]', '-A OUTPUT -j KUBE-SERVICES', ...lines, 'COMMIT', ''].join('\n');

/** As kube-proxy writes them, without masquerading. */
const rulesFor = (address: string, endpoint: string): readonly string[] => [
  ':KUBE-SVC-A - [0:0]',
  ':KUBE-SEP-A - [0:0]',
  `-A KUBE-SERVICES -d ${address}/32 -p tcp -m comment --comment "cluster IP" -m tcp --dport 80 -j KUBE-SVC-A`,
  `-A KUBE-SVC-A -m comment --comment "-> ${endpoint}" -j KUBE-SEP-A`,
  `-A KUBE-SEP-A -p tcp -m tcp -j DNAT --to-destination ${endpoint}`,
];

/** Addresses of Services lead nowhere from this pod: what is behind the machine's default route may answer for any address. */
async function withoutServices(pod: Pod): Promise<void> {
  const namespace = `--net=/proc/${await mainProcess(lab, pod)}/ns/net`;
  await execOk('nsenter', [namespace, 'ip', 'route', 'add', 'unreachable', '10.96.0.0/12']);
}

beforeAll(async () => {
  lab = await shareLab();
  bridge = lab.lab.state.subnet.replace(/\.\d+\/\d+$/, '.1');
  await apply(
    lab,
    web,
    service('address', { selector: { app: 'web' } }),
    service('known', headless),
    service('unknown', headless),
    service('moved', headless),
    service('outside', { type: 'ExternalName', externalName: 'nowhere.invalid', ports: undefined }),
    service('by-hand', {}),
    service('dns', DNS_SERVICE),
    service('dns-empty', DNS_SERVICE),
    service('dns-dead', DNS_SERVICE),
  );
  await lab.client.create(
    slices(lab.namespace),
    slice('dns', bridge, { name: 'dns', port: OTHER_PORT, protocol: 'UDP' }, lab.namespace),
  );
  await lab.client.create(
    slices(lab.namespace),
    slice('dns-dead', bridge, { name: 'dns', port: 1, protocol: 'UDP' }, lab.namespace),
  );
  await apply(
    lab,
    client('direct', bridge),
    client('guest', bridge),
    client('through', await addressOf('dns')),
    client('to-none', await addressOf('dns-empty')),
    client('to-dead', await addressOf('dns-dead')),
  );
  const { status } = await ready(lab, 'web');
  for (const name of ['direct', 'through', 'to-none', 'to-dead']) await withoutServices(await ready(lab, name));
  dns = await startNameServer([
    { address: bridge, port: DNS_PORT },
    { address: bridge, port: OTHER_PORT },
  ]);
  dns.names = new Map<string, readonly string[] | 'failure'>([
    [nameOf('address'), [await addressOf('address')]],
    [nameOf('known'), [status?.podIP ?? '']],
    [nameOf('moved'), ['10.1.2.3']],
    [nameOf('outside'), 'failure'],
  ]);
  await eventually('the endpoints of all Services', async () => {
    const { items } = await lab.client.list<EndpointSlice>(slices(lab.namespace));
    const ready = items.filter(({ endpoints }) => endpoints?.some(({ conditions }) => conditions?.ready === true));
    const owners = ready.map(({ metadata }) => metadata.labels?.['kubernetes.io/service-name']);
    return ['address', 'known', 'unknown', 'moved'].every((name) => owners.includes(name)) ? true : undefined;
  });
});

afterAll(async () => {
  dns?.close();
  await lab?.stop();
});

const explained = (name: string, check: (answer: Answer) => void, more: object = {}): Promise<Answer> =>
  answerWhen(lab, 'service', here(name), check, more);
const calls = ({ chain }: Pick<Answer, 'chain'>): string =>
  chain.flatMap(({ call }) => (call === undefined ? [] : [`${call.name} → ${call.to}: ${call.answer}`])).join('\n');

describe('names', () => {
  test('one that is found: the answer is among what is fine', async () => {
    const found = new RegExp(`${nameOf('known')} is 10\\.\\S+, by ${bridge}:53 from pod direct`);
    const check = ({ rule, fine, notLookedAt }: Answer): void => {
      expect({ rule, notLookedAt }).toEqual({ rule: 'service-ready', notLookedAt: [] });
      expect(fine.join('\n')).toMatch(found);
    };
    await explained('known', check, { from: 'direct' });
  });

  test.each([
    ['unknown', 'direct', /does not know unknown\..*: NXDOMAIN/, /A unknown\..* → .*:53: NXDOMAIN/],
    ['moved', 'direct', /leads moved\..* to 10\.1\.2\.3, and the Service is 10\./, /A moved\..* → .*:53: 10\.1\.2\.3/],
    [
      'known',
      'through',
      /the address 10\.96\.\S+:53 of the DNS Service .*\/dns leads nowhere, though the server behind it answers/,
      /A known\..* → 10\.96\.\S+:53: .*\nA known\..* → .*:5353: 10\./,
    ],
    ['known', 'to-none', /the cluster’s DNS Service .*\/dns-empty has no ready endpoints/, /→ 10\.96\.\S+:53: /],
    ['known', 'to-dead', /the DNS servers behind Service .*\/dns-dead do not answer/, /→ .*:1: nothing listens there/],
    [
      'outside',
      'direct',
      /(the node’s resolver .* does not answer for|the name) nowhere\.invalid( is not known upstream)?/,
      /A outside\..* → .*:53: SERVFAIL.*\nA nowhere\.invalid → /,
    ],
  ])('%s from pod %s', async (name, from, verdict, call) => {
    const check = (answer: Answer): void => {
      expect(answer.verdict).toMatch(verdict);
      expect(answer.rule).toBe('service-dns');
      expect(calls(answer)).toMatch(call);
    };
    await explained(name, check, { from });
  });

  test('a pod that there is not, and one that is misspelt', async () => {
    const refused = (from: string): Promise<Answer> => answerFor(lab, 'service', here('known'), { from });
    await expect(refused('absent')).rejects.toThrow(/pod absent in namespace .* does not exist/);
    await expect(refused('a/b/c')).rejects.toThrow(/is not NAMESPACE\/NAME/);
  });
});

test('a node without a proxy: the address leads nowhere from a pod, and its name is found', async () => {
  // Another lab of the machine may have one: a network namespace without rules stands for the node's.
  await execOk('ip', ['netns', 'add', EMPTY]);
  const from = { from: 'direct', networkNamespace: `/run/netns/${EMPTY}` };
  const check = (seen: Answer): void => {
    expect(seen.verdict).toMatch(
      /^no service proxy \(kube-proxy\) runs on this node, so its address 10\.96\.\S+ leads nowhere; all else is right: 1 pod is ready, and listens on its ports$/,
    );
    expect(seen.rule).toBe('service-proxy');
    expect(calls(seen)).toMatch(/connect → 10\.96\.\S+:80: .*\nlist rules → the kernel of this node: neither is there/);
    expect(seen.fine.join('\n')).toContain(`${nameOf('address')} is `);
    expect(seen.fine).toContain('programs listen on its ports in web');
  };
  const answer = await explained('address', check, from).finally(() => execOk('ip', ['netns', 'delete', EMPTY]));
  // What it says to type is an answer: the pod itself takes connections.
  const curl = answer.commands.find(({ command }) => command.startsWith('curl '))?.command ?? '';
  const response = await exec('busybox', ['wget', '-q', '-O-', curl.replace('curl ', '')]);
  expect(`${response.code} ${response.stderr}`).toMatch(/^0 |404/);
});

test('a NetworkPolicy that lets in none but others, before and after something enforces it', async () => {
  const [guest, server] = [await ready(lab, 'guest'), await ready(lab, 'web')];
  const address = await addressOf('address');
  const policies = resourcePath('networking.k8s.io/v1', 'networkpolicies', { namespace: lab.namespace });
  // The guest's network has what a proxy writes on the node, and the server's what a network plugin writes for the policy.
  const networkOf = async (pod: Pod): Promise<string> => `/proc/${await mainProcess(lab, pod)}/ns/net`;
  const [own, its] = [await networkOf(guest), await networkOf(server)];
  const rules = natTable(rulesFor(address, `${server.status?.podIP}:8080`));
  await execOk('nsenter', [`--net=${own}`, 'iptables-restore'], { stdin: rules });
  // Other addresses of Services lead nowhere, whatever is behind the machine's default route.
  await execOk('nsenter', [`--net=${own}`, 'iptables', '-A', 'OUTPUT', '-d', '10.96.0.0/12', '-j', 'REJECT']);
  const look = (check: (answer: Answer) => void): Promise<Answer> =>
    explained('address', check, { from: 'guest', networkNamespace: own });
  await lab.client.create(policies, {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'friends-only' },
    spec: {
      podSelector: { matchLabels: { app: 'web' } },
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: { matchLabels: { friend: 'yes' } } }] }],
    },
  });
  await look(({ rule }) => expect(rule).toBe('service-ready'));
  const drop = ['INPUT', '-p', 'tcp', '-s', guest.status?.podIP ?? '', '-j', 'DROP'];
  await execOk('nsenter', [`--net=${its}`, 'iptables', '-A', ...drop]);
  const denied = {
    rule: 'service-policy',
    state: 'broken',
    verdict: 'NetworkPolicy friends-only does not let pod guest in to TCP 8080 of pod web',
  };
  try {
    await look((answer) => expect(answer).toMatchObject(denied));
  } finally {
    await execOk('nsenter', [`--net=${its}`, 'iptables', '-D', ...drop]);
    await lab.client.delete(`${policies}/friends-only`);
  }
});

test('a Service without a selector, before and after it has endpoints', async () => {
  const before = {
    rule: 'service-without-selector',
    verdict: 'it has no selector and no endpoints: traffic leads nowhere',
  };
  await explained('by-hand', (answer) => expect(answer).toMatchObject(before), { from: 'direct' });
  await lab.client.create(slices(lab.namespace), slice('by-hand', bridge, { port: 8080 }, lab.namespace));
  await explained('by-hand', ({ rule }) => expect(rule).toBe('service-proxy'), { from: 'direct' });
});

describe('rules of a proxy', () => {
  /** No pods are there: connections are made from the node, which is the network namespace. */
  const namespace = 'default';
  const named = `${namespace}/proxied`;
  let address: string;
  const look = (check: (answer: Answer) => void): Promise<Answer> =>
    answerWhen(lab, 'service', named, check, { networkNamespace: NAMESPACE_FILE });
  const shows = (expected: object): Promise<Answer> => look((answer) => expect(answer).toMatchObject(expected));

  beforeAll(async () => {
    await execOk('ip', ['netns', 'add', NAMESPACE]);
    await inside('', 'ip', 'link', 'set', 'lo', 'up');
    await inside('', 'ip', 'address', 'add', `${ADDRESS}/32`, 'dev', 'lo');
    await inside('', 'ip', 'route', 'add', 'default', 'dev', 'lo', 'src', ADDRESS);
    httpd = spawn('ip', ['netns', 'exec', NAMESPACE, 'busybox', 'httpd', '-f', '-p', `${ADDRESS}:8080`], {
      stdio: 'ignore',
    });
    await apply(lab, service('proxied', {}, namespace));
    address = await addressOf('proxied', namespace);
    await lab.client.create(slices(namespace), slice('proxied', ADDRESS, { port: 8080 }, namespace));
    await eventually('the server to listen', async () =>
      (
        await inside('', 'busybox', 'wget', '-q', '-O-', `http://${ADDRESS}:8080/`).catch((error: unknown) =>
          String(error),
        )
      ).includes('404')
        ? true
        : undefined,
    );
  });

  afterAll(async () => {
    httpd?.kill('SIGKILL');
    await execOk('ip', ['netns', 'delete', NAMESPACE]);
    await lab.client.delete(`${slices(namespace)}/proxied`);
    await lab.client.delete(resourcePath('v1', 'services', { namespace, name: 'proxied' }));
  });

  const iptables = (...lines: string[]): Promise<string> => inside(natTable(lines), 'iptables-restore');
  const leadsTo = (endpoint: string): Promise<string> => iptables(...rulesFor(address, endpoint));

  test('none at all', async () => {
    await shows({
      rule: 'service-proxy',
      verdict: `no service proxy (kube-proxy) runs on this node, so its address ${address} leads nowhere, though it has 1 ready endpoint`,
    });
  });

  test('none at all, where the network takes connections to any address', async () => {
    const rule = ['-t', 'nat', '-p', 'tcp', '-d', '10.96.0.0/12', '-j', 'DNAT', '--to-destination', `${ADDRESS}:8080`];
    await inside('', 'iptables', '-A', 'OUTPUT', ...rule);
    await look((answer) => {
      expect(answer).toMatchObject({ rule: 'service-proxy', state: 'broken' });
      expect(answer.verdict).toMatch(/^no service proxy \(kube-proxy\) runs on this node/);
      expect(calls(answer)).toContain(`connect → ${address}:65535: connected`);
    }).finally(() => inside('', 'iptables', '-D', 'OUTPUT', ...rule));
  });

  test('iptables: a rule without endpoints refuses', async () => {
    await iptables(':KUBE-SVC-A - [0:0]', `-A KUBE-SERVICES -d ${address}/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A`);
    await shows({ verdict: `the proxy of this node refuses TCP ${address}:80: its rule has no endpoints` });
  });

  test('iptables: no rule, one that leads to an endpoint of the past, and the right one', async () => {
    await iptables();
    await look((missing) => {
      expect(missing.verdict).toBe(`the proxy of this node has no rule for TCP ${address}:80`);
      expect(calls(missing)).toMatch(/list rules → the kernel of this node: no rule has this address and port/);
    });
    await leadsTo('10.255.77.9:8080');
    await shows({
      verdict: `the proxy of this node leads TCP ${address}:80 to 10.255.77.9:8080, which is no endpoint of it any more`,
    });
    await leadsTo(`${ADDRESS}:8080`);
    await look((good) => {
      expect(good).toMatchObject({ rule: 'service-ready', state: 'ready' });
      expect(good.fine).toContain(`${address}:80 takes connections from this machine`);
    });
  });

  test('nftables: the same in maps', async () => {
    await inside('', 'iptables', '-t', 'nat', '-F');
    await inside('', 'iptables', '-t', 'nat', '-X');
    const table = (element: string): string => `
table ip kube-proxy {
  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; ${element} }
  chain endpoint-a { meta l4proto tcp dnat to ${ADDRESS}:8080; }
  chain service-a { numgen random mod 1 vmap { 0 : goto endpoint-a }; }
  chain nat-output { type nat hook output priority -100; ip daddr . meta l4proto . th dport vmap @service-ips; }
}
`;
    await inside(`${table('')}`, 'nft', '-f', '-');
    await look((missing) => {
      expect(missing.verdict).toBe(`the proxy of this node has no rule for TCP ${address}:80`);
      expect(missing.chain.map(({ text }) => text).join('\n')).toContain('table kube-proxy of nftables');
    });
    await inside(`add element ip kube-proxy service-ips { ${address} . tcp . 80 : goto service-a }`, 'nft', '-f', '-');
    await shows({ rule: 'service-ready', state: 'ready' });
  });

  test('a network namespace that is not there is named', async () => {
    const answer = await answerFor(lab, 'service', named, { networkNamespace: '/run/netns/none' });
    expect(answer.notLookedAt.map(({ what, why }) => `${what}: ${why}`).join('\n')).toMatch(
      /\/run\/netns\/none cannot be entered/,
    );
  });
});
