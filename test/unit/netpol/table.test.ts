// What the table of a node lets through: upstream's end-to-end cases of network policies (test/e2e/network/netpol), each as a cluster and the
// connections that are refused, and how few commands a change takes.

import type { NetworkPolicySpec } from 'kubernetes-types/networking/v1';
import { describe, expect, it } from 'vitest';
import { changeCommands } from '../../../lib/nft-table.ts';
import { type Policy, policyTable, policyTypes } from '../../../netpol/table.ts';
import { addressOf, allows, makeCluster, makePod, makePolicy, NODE, PODS } from './cases.ts';

const ALL = PODS.map(({ namespace, labels }) => `${namespace}/${labels['pod']}`);
const OUTSIDE = '203.0.113.9';
const pod = (...names: string[]) => ({ matchExpressions: [{ key: 'pod', operator: 'In', values: names }] });
const ns = (...names: string[]) => ({ matchExpressions: [{ key: 'ns', operator: 'In', values: names }] });
const notNs = (name: string) => ({ matchExpressions: [{ key: 'ns', operator: 'NotIn', values: [name] }] });
const A = { matchLabels: { pod: 'a' } };

/** Which pods, of all and one outside the cluster, reach x/a. */
const reachXA = (policies: readonly Policy[], port = 80, protocol = 'tcp'): string[] =>
  [...ALL, OUTSIDE].filter((from) => from !== 'x/a' && allows(makeCluster(policies), from, 'x/a', port, protocol));
/** Which of these x/a reaches. */
const reachedByXA = (policies: readonly Policy[], port = 80, protocol = 'tcp'): string[] =>
  [...ALL, OUTSIDE].filter((to) => to !== 'x/a' && allows(makeCluster(policies), 'x/a', to, port, protocol));
const OTHERS = [...ALL.filter((each) => each !== 'x/a'), OUTSIDE];
const inPods = (each: string): boolean => each !== OUTSIDE;

describe('ingress', () => {
  const from = (...peers: NonNullable<NonNullable<NetworkPolicySpec['ingress']>[number]['from']>) =>
    makePolicy({ podSelector: A, ingress: [{ from: peers }] });
  it.each<[string, readonly Policy[], readonly string[]]>([
    ['no policy', [], OTHERS],
    ['default deny', [makePolicy({})], []],
    [
      'default deny, and one that allows all to a target',
      [makePolicy({}), makePolicy({ podSelector: A, ingress: [{}] }, 'x', 'q')],
      OTHERS,
    ],
    ['a policy of another namespace', [makePolicy({}, 'y')], OTHERS],
    ['pods of the policy’s own namespace', [from({ podSelector: pod('b') })], ['x/b']],
    ['pods of all namespaces', [from({ namespaceSelector: {} })], OTHERS.filter(inPods)],
    ['one namespace', [from({ namespaceSelector: { matchLabels: { ns: 'y' } } })], ['y/a', 'y/b', 'y/c']],
    [
      'a pod selector or a namespace selector',
      [from({ namespaceSelector: notNs('x') }, { podSelector: pod('b') })],
      ['x/b', 'y/a', 'y/b', 'y/c', 'z/a', 'z/b', 'z/c'],
    ],
    [
      'a pod and a namespace selector at once',
      [from({ namespaceSelector: notNs('x'), podSelector: pod('b') })],
      ['y/b', 'z/b'],
    ],
    [
      'several of both',
      [from({ namespaceSelector: ns('y', 'z'), podSelector: pod('b', 'c') })],
      ['y/b', 'y/c', 'z/b', 'z/c'],
    ],
    [
      'several rules',
      [
        makePolicy({
          podSelector: A,
          ingress: [{ from: [{ podSelector: pod('b') }] }, { from: [{ namespaceSelector: ns('z') }] }],
        }),
      ],
      ['x/b', 'z/a', 'z/b', 'z/c'],
    ],
    [
      'several policies',
      [from({ podSelector: pod('b') }), makePolicy({ ingress: [{ from: [{ podSelector: pod('c') }] }] }, 'x', 'q')],
      ['x/b', 'x/c'],
    ],
    ['an empty list of peers is everyone', [from()], OTHERS],
    ['a block of addresses', [from({ ipBlock: { cidr: '203.0.113.0/24' } })], [OUTSIDE]],
    [
      'a block without a part of it',
      [from({ ipBlock: { cidr: '10.0.0.0/16', except: ['10.0.1.0/24', '10.0.2.1/32'] } })],
      ['y/b', 'y/c', 'z/a', 'z/b', 'z/c'],
    ],
    [
      'the part again in another peer',
      [from({ ipBlock: { cidr: '10.0.0.0/16', except: ['10.0.0.0/16'] } }, { ipBlock: { cidr: '10.0.1.2/32' } })],
      ['x/b'],
    ],
    ['every address', [from({ ipBlock: { cidr: '0.0.0.0/0' } })], OTHERS],
    ['addresses of IPv6 alone', [from({ ipBlock: { cidr: '2001:db8::/32' } })], []],
    ['egress alone', [makePolicy({ policyTypes: ['Egress'] })], [OUTSIDE, 'y/a', 'y/b', 'y/c', 'z/a', 'z/b', 'z/c']],
  ])('%s', (_, policies, expected) => {
    expect(reachXA(policies).sort()).toEqual([...expected].sort());
  });
});

describe('egress', () => {
  const to = (...peers: NonNullable<NonNullable<NetworkPolicySpec['egress']>[number]['to']>) =>
    makePolicy({ podSelector: A, policyTypes: ['Egress'], egress: [{ to: peers }] });
  it.each<[string, readonly Policy[], readonly string[]]>([
    ['default deny', [makePolicy({ policyTypes: ['Egress'] })], []],
    ['everything', [makePolicy({ policyTypes: ['Egress'], egress: [{}] })], OTHERS],
    ['a namespace and a pod', [to({ namespaceSelector: ns('y'), podSelector: pod('a') })], ['y/a']],
    [
      'a block with a hole',
      [to({ ipBlock: { cidr: '10.0.0.0/16', except: ['10.0.3.0/24'] } })],
      ['x/b', 'x/c', 'y/a', 'y/b', 'y/c'],
    ],
    [
      'ingress of the other side refuses',
      [to({ namespaceSelector: ns('y') }), makePolicy({ podSelector: pod('b') }, 'y')],
      ['y/a', 'y/c'],
    ],
    [
      'both directions in one policy',
      [makePolicy({ policyTypes: ['Ingress', 'Egress'], egress: [{ to: [{ namespaceSelector: ns('z') }] }] })],
      ['z/a', 'z/b', 'z/c'],
    ],
  ])('%s', (_, policies, expected) => {
    expect(reachedByXA(policies).sort()).toEqual([...expected].sort());
  });
});

describe('ports', () => {
  type Ports = NonNullable<NonNullable<NetworkPolicySpec['ingress']>[number]['ports']>;
  const both = (ports: Ports): Policy[] => [makePolicy({ podSelector: A, ingress: [{ ports }], egress: [{ ports }] })];
  it.each<[string, Ports, readonly string[]]>([
    ['a number, TCP unless it is another', [{ port: 80 }], ['tcp 80']],
    ['another protocol', [{ port: 81, protocol: 'UDP' }], ['udp 81']],
    ['SCTP', [{ port: 81, protocol: 'SCTP' }], ['sctp 81']],
    ['a protocol alone', [{ protocol: 'UDP' }], ['udp 80', 'udp 81', 'udp 8080']],
    ['a range', [{ port: 81, endPort: 8080 }], ['tcp 81', 'tcp 8080']],
    ['ranges that overlap', [{ port: 80, endPort: 81 }, { port: 81, endPort: 90 }, { port: 80 }], ['tcp 80', 'tcp 81']],
    ['a name', [{ port: 'serve-81-tcp' }], ['tcp 81']],
    ['a name of another protocol', [{ port: 'serve-81-tcp', protocol: 'UDP' }], []],
    ['a name that no pod has', [{ port: 'other' }], []],
    ['a name and a number', [{ port: 'serve-80-udp', protocol: 'UDP' }, { port: 80 }], ['tcp 80', 'udp 80']],
    [
      'an empty list is all',
      [],
      ['sctp 80', 'sctp 81', 'sctp 8080', 'tcp 80', 'tcp 81', 'tcp 8080', 'udp 80', 'udp 81', 'udp 8080'],
    ],
  ])('%s', (_, ports, expected) => {
    const tried = ['sctp', 'tcp', 'udp'].flatMap((protocol) => [80, 81, 8080].map((port) => [protocol, port] as const));
    const open = (from: string, to: string) =>
      tried
        .filter(([protocol, port]) => allows(makeCluster(both(ports)), from, to, port, protocol))
        .map((each) => each.join(' '));
    expect(open('y/a', 'x/a')).toEqual(expected);
    expect(open('x/a', 'y/a')).toEqual(expected);
  });
  it('the number of a name is the receiver’s, in both directions', () => {
    const pods = [makePod('x', 'a'), makePod('y', 'a', { ports: [{ name: 'web', protocol: 'TCP', number: 9000 }] })];
    const cluster = makeCluster([makePolicy({ policyTypes: ['Egress'], egress: [{ ports: [{ port: 'web' }] }] })], {
      pods,
    });
    expect([9000, 80].map((port) => allows(cluster, 'x/a', 'y/a', port))).toEqual([true, false]);
  });
  it('peers and ports hold together', () => {
    const policies = [
      makePolicy({
        podSelector: A,
        ingress: [{ from: [{ podSelector: pod('b') }], ports: [{ port: 80 }] }, { ports: [{ port: 81 }] }],
      }),
    ];
    expect(reachXA(policies, 80)).toEqual(['x/b']);
    expect(reachXA(policies, 81)).toEqual(OTHERS);
  });
});

describe('who is subject', () => {
  it('pods of this node alone', () => {
    const pods = [makePod('x', 'a', { nodeName: 'there' }), makePod('y', 'a')];
    expect(allows(makeCluster([makePolicy({})], { pods }), 'y/a', 'x/a')).toBe(true);
    expect(policyTable(NODE, makeCluster([makePolicy({})], { pods })).chains.size).toBe(2);
  });
  it('a pod always reaches itself', () => {
    expect(allows(makeCluster([makePolicy({ policyTypes: ['Ingress', 'Egress'] })]), 'x/a', 'x/a')).toBe(true);
  });
  it.each<[string, NetworkPolicySpec, readonly string[]]>([
    ['Ingress by default', { podSelector: {} }, ['ingress']],
    ['Egress where it has rules', { podSelector: {}, egress: [{}] }, ['egress', 'ingress']],
    ['what is listed', { podSelector: {}, policyTypes: ['Egress'], ingress: [{}] }, ['egress']],
  ])('types: %s', (_, spec, expected) => {
    expect(policyTypes(spec)).toEqual(expected);
  });
});

describe('commands', () => {
  const policies = [
    makePolicy({ podSelector: A, ingress: [{ from: [{ podSelector: pod('b') }], ports: [{ port: 'serve-80-tcp' }] }] }),
    makePolicy({ podSelector: pod('b'), ingress: [{}] }, 'y', 'open'),
  ];
  const table = 'inet nodelet-netpol';
  const between = (before: typeof PODS, now: typeof PODS): string[] =>
    changeCommands(
      table,
      policyTable(NODE, makeCluster(policies, { pods: before })),
      policyTable(NODE, makeCluster(policies, { pods: now })),
      'command',
    )
      .commands.trim()
      .replaceAll(/-[A-Z2-7]{13}/g, '-HASH')
      .split('\n');
  const relabel = (name: string, label: string) =>
    PODS.map((each) => (each.ip === addressOf(name) ? { ...each, labels: { pod: label } } : each));

  it('nothing where nothing differs', () => {
    expect(between(PODS, [...PODS].reverse())).toEqual(['']);
  });
  it('a peer’s label: one element', () => {
    expect(between(PODS, relabel('x/c', 'b'))).toEqual([`add element ${table} pods-HASH { 10.0.1.3 }`]);
    expect(between(PODS, relabel('x/b', 'c'))).toEqual([`delete element ${table} pods-HASH { 10.0.1.2 }`]);
  });
  it('a selected pod’s label: elements alone, as another pod has the same policies', () => {
    expect(between(PODS, relabel('y/c', 'b'))).toEqual([
      `add element ${table} self { 10.0.2.3 . 10.0.2.3 }`,
      `add element ${table} ingress-pods { 10.0.2.3 : goto ingress-HASH }`,
    ]);
  });
  it('a pod that goes: its elements', () => {
    expect(
      between(
        PODS,
        PODS.filter(({ ip }) => ip !== addressOf('x/b')),
      ),
    ).toEqual([
      `delete element ${table} pods-HASH { 10.0.1.2 }`,
      `delete element ${table} port-tcp-serve-80-tcp { 10.0.1.2 . tcp . 80 }`,
    ]);
  });
});
