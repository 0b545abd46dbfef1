// What is between a client and the pods of a Service, by tables: the node's proxy, policies, DNS.

import { describe, expect, test } from 'vitest';
import type { ConnectFact, DnsAnswer, DnsFacts, ProxyFacts, ServiceFacts } from '../../../../cli/explain/facts.ts';
import { findingsOf } from '../../../../cli/explain/findings.ts';
import { fineService, SERVICE_RULES } from '../../../../cli/explain/rules/service-rules.ts';
import { clusterDomain, dnsEndpoints, serviceOf } from '../../../../cli/explain/service-dns.ts';
import { pod, textOf } from './facts.ts';
import { labelled, policy, service, serviceFacts } from './other-facts.ts';

const closed: ConnectFact = { address: '10.96.0.1', port: 80, isOpen: false, answer: 'no answer within 1 s' };
const open: ConnectFact = { ...closed, isOpen: true, answer: 'connected' };
const proxy = (...to: string[]): ProxyFacts => ({
  kind: 'iptables',
  rules: [{ address: '10.96.0.1', protocol: 'TCP', port: 80, to }],
});
const NONE: ProxyFacts = { kind: 'none', rules: [] };

const slice = (...addresses: string[]): ServiceFacts['slices'][number] => ({
  metadata: { name: 's', uid: 's', resourceVersion: '1' },
  addressType: 'IPv4',
  endpoints: addresses.map((address) => ({ addresses: [address] })),
  ports: [{ port: 8080 }],
});

const client = pod({ meta: { name: 'client', labels: { role: 'tester' } }, status: { podIP: '10.0.0.9' } });
const vantage = { pod: client, namespaceLabels: { team: 'a' } };

const NAME = 'web.demo.svc.cluster.local';
const says = (server: string, error?: string, ...addresses: string[]): DnsAnswer => ({
  server,
  name: NAME,
  addresses,
  error,
});
const dns = (change: Partial<DnsFacts> = {}): DnsFacts => ({
  name: NAME,
  searches: ['demo.svc.cluster.local'],
  hops: [{ answer: says('10.96.0.10:53', undefined, '10.96.0.1'), service: 'kube-system/kube-dns', endpoints: [] }],
  upstream: [],
  ...change,
});
const hop = (answer: DnsAnswer, behind: readonly DnsAnswer[] = []): Partial<DnsFacts> => ({
  hops: [{ answer, service: 'kube-system/kube-dns', endpoints: behind }],
});
const external = service({ type: 'ExternalName', externalName: 'db.example.com' });

const cases: readonly {
  readonly what: string;
  readonly facts: ServiceFacts;
  readonly rule: string;
  readonly text: RegExp;
}[] = [
  {
    what: 'no proxy on the node',
    facts: serviceFacts({ proxy: NONE, connects: [closed] }),
    rule: 'service-proxy',
    text: /^no service proxy \(kube-proxy\) runs on this node, so its address 10\.96\.0\.1 leads nowhere; all else is right: 1 pod is ready, and listens on its ports\n[\s\S]*connect → 10\.96\.0\.1:80 with TCP, from this machine: no answer[\s\S]*curl http:\/\/10\.0\.0\.2:8080\//,
  },
  {
    what: 'no proxy on the node, and endpoints that were made by hand',
    facts: serviceFacts({
      service: service({ clusterIP: '10.96.0.1', ports: [{ port: 80, targetPort: 8080 }] }),
      pods: [],
      slices: [slice('10.1.0.1', '10.1.0.2')],
      proxy: NONE,
      connects: [closed],
    }),
    rule: 'service-proxy',
    text: /runs on this node, so its address 10\.96\.0\.1 leads nowhere, though it has 2 ready endpoints/,
  },
  {
    what: 'no proxy on the node, and UDP alone, which cannot be tried',
    facts: serviceFacts({
      service: service({
        selector: { app: 'web' },
        clusterIP: '10.96.0.1',
        ports: [{ port: 80, targetPort: 8080, protocol: 'UDP' }],
      }),
      listening: [],
      proxy: NONE,
    }),
    rule: 'service-ready',
    text: /1 ready pod can answer[\s\S]*no service proxy \(kube-proxy\) runs on this node[\s\S]*without a TCP port that cannot be tried/,
  },
  {
    what: 'no proxy that is known, and connections that open',
    facts: serviceFacts({ proxy: NONE, connects: [open] }),
    rule: 'service-ready',
    text: /1 ready pod can answer/,
  },
  {
    what: 'no proxy on the node, and a network that takes connections to any address',
    facts: serviceFacts({ proxy: NONE, connects: [open], unusedPort: { ...open, port: 65_535 } }),
    rule: 'service-proxy',
    text: /^no service proxy \(kube-proxy\) runs on this node, so its address 10\.96\.0\.1 leads nowhere; all else is right: [^\n]*\n[^\n]*to a port that it does not have: something on the way answers for any address \[connect → 10\.96\.0\.1:65535 /,
  },
  {
    what: 'rules as they should be, in such a network',
    facts: serviceFacts({
      proxy: proxy('10.0.0.2:8080'),
      slices: [slice('10.0.0.2')],
      connects: [open],
      unusedPort: { ...open, port: 65_535 },
    }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a proxy without a rule for it',
    facts: serviceFacts({ proxy: { kind: 'iptables', rules: [] }, connects: [closed] }),
    rule: 'service-proxy',
    text: /the proxy of this node has no rule for TCP 10\.96\.0\.1:80[\s\S]*KUBE-SERVICES/,
  },
  {
    what: 'a rule that refuses',
    facts: serviceFacts({ proxy: proxy(), connects: [{ ...closed, answer: 'ECONNREFUSED' }] }),
    rule: 'service-proxy',
    text: /refuses TCP 10\.96\.0\.1:80: its rule has no endpoints/,
  },
  {
    what: 'a rule that leads to a pod of the past',
    facts: serviceFacts({ proxy: proxy('10.0.0.7:8080'), slices: [slice('10.0.0.2')], connects: [closed] }),
    rule: 'service-proxy',
    text: /leads TCP 10\.96\.0\.1:80 to 10\.0\.0\.7:8080, which is no endpoint of it any more/,
  },
  {
    what: 'rules as they should be',
    facts: serviceFacts({ proxy: proxy('10.0.0.2:8080'), slices: [slice('10.0.0.2')], connects: [open] }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'rules of IPVS, which are not read',
    facts: serviceFacts({ proxy: { kind: 'ipvs', rules: [] }, connects: [closed] }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a Service of UDP alone, and a proxy without a rule',
    facts: serviceFacts({
      service: service({
        selector: { app: 'web' },
        clusterIP: '10.96.0.1',
        ports: [{ port: 80, targetPort: 8080, protocol: 'UDP' }],
      }),
      listening: [],
      proxy: { kind: 'nftables', rules: [] },
    }),
    rule: 'service-proxy',
    text: /no rule for UDP 10\.96\.0\.1:80[\s\S]*nft list table/,
  },
  {
    what: 'a headless Service needs no proxy',
    facts: serviceFacts({
      service: service({ selector: { app: 'web' }, clusterIP: 'None', ports: [{ port: 80, targetPort: 8080 }] }),
      proxy: NONE,
    }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a policy that does not let the client in',
    facts: serviceFacts({
      policies: [policy([{ from: [{ podSelector: { matchLabels: { role: 'front' } } }] }])],
      connects: [closed],
      vantage,
    }),
    rule: 'service-policy',
    text: /NetworkPolicy deny does not let pod client in to TCP 8080 of pod web[\s\S]*has the labels role=tester/,
  },
  {
    what: 'a policy that lets the client in by its label',
    facts: serviceFacts({
      policies: [policy([{ from: [{ podSelector: { matchLabels: { role: 'tester' } } }] }])],
      vantage,
    }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a policy that lets in by the label of the namespace',
    facts: serviceFacts({
      policies: [policy([{ from: [{ namespaceSelector: { matchLabels: { team: 'b' } } }] }])],
      vantage,
    }),
    rule: 'service-policy',
    text: /does not let pod client in/,
  },
  {
    what: 'a policy for another port',
    facts: serviceFacts({ policies: [policy([{ ports: [{ port: 9090 }] }])] }),
    rule: 'service-policy',
    text: /lets nothing in to TCP 8080/,
  },
  {
    what: 'a policy for a range of ports and a block of addresses',
    facts: serviceFacts({
      policies: [policy([{ ports: [{ port: 8000, endPort: 8100 }], from: [{ ipBlock: { cidr: '10.0.0.0/24' } }] }])],
      vantage,
    }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a policy with an exception',
    facts: serviceFacts({
      policies: [policy([{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.8/29'] } }] }])],
      vantage,
    }),
    rule: 'service-policy',
    text: /does not let pod client in/,
  },
  {
    what: 'a policy by the port’s name',
    facts: serviceFacts({ policies: [policy([{ ports: [{ port: 'http' }] }])] }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a policy that nothing enforces, as the connection shows',
    facts: serviceFacts({ policies: [policy([])], connects: [open] }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a name that is found',
    facts: serviceFacts({ dns: dns(), vantage }),
    rule: 'service-ready',
    text: /1 ready pod/,
  },
  {
    what: 'a resolv.conf without a server',
    facts: serviceFacts({ dns: dns({ hops: [] }), vantage }),
    rule: 'service-dns',
    text: /pod client has no nameserver in its resolv\.conf/,
  },
  {
    what: 'a server that is no Service and does not answer',
    facts: serviceFacts({
      dns: dns({ hops: [{ answer: says('10.96.0.10:53', 'ETIMEOUT'), service: undefined, endpoints: [] }] }),
      vantage,
    }),
    rule: 'service-dns',
    text: /10\.96\.0\.10:53 of pod client does not answer, and no Service has that address/,
  },
  {
    what: 'a DNS Service without endpoints',
    facts: serviceFacts({ dns: dns(hop(says('10.96.0.10:53', 'ETIMEOUT'))), vantage }),
    rule: 'service-dns',
    text: /the cluster’s DNS Service kube-system\/kube-dns has no ready endpoints/,
  },
  {
    what: 'DNS servers that do not answer',
    facts: serviceFacts({
      dns: dns(hop(says('10.96.0.10:53', 'ETIMEOUT'), [says('10.0.0.5:53', 'ECONNREFUSED')])),
      vantage,
    }),
    rule: 'service-dns',
    text: /the DNS servers behind Service kube-system\/kube-dns do not answer \(10\.0\.0\.5:53\)[\s\S]*nothing listens there/,
  },
  {
    what: 'an address that does not lead to them',
    facts: serviceFacts({
      dns: dns(hop(says('10.96.0.10:53', 'ETIMEOUT'), [says('10.0.0.5:53', undefined, '10.96.0.1')])),
      vantage,
    }),
    rule: 'service-dns',
    text: /the address 10\.96\.0\.10:53 of the DNS Service kube-system\/kube-dns leads nowhere, though the server behind it answers/,
  },
  {
    what: 'a name that the cluster’s DNS does not know',
    facts: serviceFacts({ dns: dns(hop(says('10.96.0.10:53', 'ENOTFOUND'))), vantage }),
    rule: 'service-dns',
    text: /the cluster’s DNS \(Service kube-system\/kube-dns\) does not know web\.demo\.svc\.cluster\.local: NXDOMAIN/,
  },
  {
    what: 'an answer with another address',
    facts: serviceFacts({ dns: dns(hop(says('10.96.0.10:53', undefined, '10.96.0.99'))), vantage }),
    rule: 'service-dns',
    text: /DNS leads web\.demo\.svc\.cluster\.local to 10\.96\.0\.99, and the Service is 10\.96\.0\.1/,
  },
  {
    what: 'an external name that is found',
    facts: serviceFacts({
      service: external,
      dns: dns(hop(says('10.96.0.10:53', undefined, '1.2.3.4'))),
      vantage,
      pods: [],
    }),
    rule: 'service-external-name',
    text: /only a DNS name for db\.example\.com/,
  },
  {
    what: 'an external name, and a resolver of the node that does not answer',
    facts: serviceFacts({
      service: external,
      pods: [],
      dns: dns({ ...hop(says('10.96.0.10:53', 'ESERVFAIL')), upstream: [says('192.0.2.1:53', 'ETIMEOUT')] }),
      vantage,
    }),
    rule: 'service-dns',
    text: /the node’s resolver 192\.0\.2\.1:53 does not answer/,
  },
  {
    what: 'an external name that is known upstream alone',
    facts: serviceFacts({
      service: external,
      pods: [],
      dns: dns({ ...hop(says('10.96.0.10:53', 'EREFUSED')), upstream: [says('192.0.2.1:53', undefined, '1.2.3.4')] }),
      vantage,
    }),
    rule: 'service-dns',
    text: /does not forward: 192\.0\.2\.1:53 knows/,
  },
  {
    what: 'an external name that is known nowhere',
    facts: serviceFacts({
      service: external,
      pods: [],
      dns: dns({ ...hop(says('10.96.0.10:53', 'ENOTFOUND')), upstream: [says('192.0.2.1:53', 'ENOTFOUND')] }),
      vantage,
    }),
    rule: 'service-dns',
    text: /is not known upstream: NXDOMAIN/,
  },
];

describe('what is between a client and a Service', () => {
  test.each(cases)('$what: $rule', ({ facts, rule, text }) => {
    const [first] = findingsOf(SERVICE_RULES, facts);
    expect(textOf(first)).toMatch(text);
    expect(first?.rule).toBe(rule);
  });

  test('what works is among what is fine', () => {
    const fine = fineService(serviceFacts({ connects: [open], dns: dns(), vantage }));
    expect(fine).toContain('10.96.0.1:80 takes connections from pod client');
    expect(fine).toContain(`${NAME} is 10.96.0.1, by 10.96.0.10:53 from pod client`);
  });
});

test.each([
  [['demo.svc.cluster.local', 'svc.cluster.local', 'cluster.local'], 'cluster.local'],
  [['demo.svc.k8s.example.com.'], 'k8s.example.com'],
  [['example.com'], undefined],
  [[], undefined],
])('the domain of the cluster in the search list %j', (searches, domain) => {
  expect(clusterDomain(searches)).toBe(domain);
});

test('the servers behind the DNS Service', () => {
  const own = service({
    clusterIP: '10.96.0.10',
    ports: [
      { name: 'metrics', port: 9153 },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  });
  const ports = [
    { name: 'dns-tcp', port: 1 },
    { name: 'dns', port: 5353 },
  ];
  const endpoints = [
    { addresses: ['10.0.0.5'] },
    { addresses: ['10.0.0.6'], conditions: { ready: false } },
    { addresses: ['fd00::5'], conditions: { ready: true } },
  ];
  expect(dnsEndpoints(own, [{ ports, endpoints }])).toEqual(['10.0.0.5:5353', '[fd00::5]:5353']);
  expect(serviceOf('10.96.0.10', [labelledService, own])).toBe(own);
  expect(serviceOf('10.96.0.11', [own])).toBeUndefined();
});

const labelledService = service({ clusterIP: 'None' });

/** Everything that a server may leave out of an object, or send as null, as a Go program does with an empty list. */
function* damaged(value: unknown, path: readonly string[] = []): Generator<readonly string[]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    yield [...path, key];
    yield* damaged(inner, [...path, key]);
  }
}

function withNull(value: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return null;
  if (Array.isArray(value)) return value.map((each, index) => (String(index) === key ? withNull(each, rest) : each));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, name === key ? withNull(each, rest) : each]),
  );
}

/** Lists and texts that the API makes optional; what it requires a server always sends. */
const OPTIONAL =
  /^(labels|endpoints|ports|conditions|ingress|from|policyTypes|containers\.\d+\.ports|status|clusterIPs|selector|message)$/;

test('an object in which an optional field is null breaks no rule', () => {
  const full = serviceFacts({
    slices: [slice('10.0.0.2')],
    policies: [policy([{ from: [{ podSelector: {} }], ports: [{ port: 80 }] }])],
    pods: [labelled({ app: 'web' }), labelled({ app: 'wbe' }, false)],
    proxy: proxy('10.0.0.2:8080'),
    connects: [closed],
    dns: dns(),
    vantage,
  });
  const objects = { service: full.service, slices: full.slices, policies: full.policies, pods: full.pods };
  const paths = [...damaged(objects)].filter((path) => OPTIONAL.test(path.at(-1) ?? ''));
  expect(paths.length).toBeGreaterThan(10);
  for (const path of paths) {
    const broken: typeof objects = JSON.parse(JSON.stringify(withNull(objects, path)));
    expect(
      () => [findingsOf(SERVICE_RULES, { ...full, ...broken }), fineService({ ...full, ...broken })],
      path.join('.'),
    ).not.toThrow();
  }
});
