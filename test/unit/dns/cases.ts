// A small cluster for the tests of DNS: Services of each kind, slices, pods; questions and answers as short texts.

import type { EndpointSlice, Pod, Service } from '../../../client/types.ts';
import { ClusterIndex } from '../../../dns/cluster/index.ts';
import { parseCorefile } from '../../../dns/corefile/corefile.ts';
import type { KubernetesSettings } from '../../../dns/corefile/settings.ts';
import { type Message, parseMessage, type Question, Type } from '../../../dns/wire/message.ts';
import { type MadeReply, makeQuery, type Resource } from '../../../dns/wire/records.ts';
import { epochMs } from '../../../lib/clock.ts';

export const NOW = epochMs(1_700_000_000_000);
/** In seconds, as a serial number. */
export const SERIAL = 1_700_000_000;

function meta(namespace: string, name: string, labels: Record<string, string> = {}) {
  return { namespace, name, uid: `${namespace}-${name}`, resourceVersion: '1', labels };
}

export function service(namespace: string, name: string, spec: NonNullable<Service['spec']>, labels = {}): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: meta(namespace, name, labels), spec };
}

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

export function slice(
  namespace: string,
  owner: string,
  endpoints: readonly (Partial<Endpoint> & { readonly ip: string })[],
  ports: EndpointSlice['ports'] = [{ name: 'http', port: 8080, protocol: 'TCP' }],
): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: meta(namespace, `${owner}-1`, { 'kubernetes.io/service-name': owner }),
    addressType: 'IPv4',
    endpoints: endpoints.map(({ ip, ...rest }) => ({ addresses: [ip], conditions: { ready: true }, ...rest })),
    ports,
  };
}

export function pod(namespace: string, name: string, podIP: string, phase = 'Running'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...meta(namespace, name), namespace },
    spec: { containers: [] },
    status: { phase, podIP },
  };
}

const web = [
  { name: 'http', port: 80, protocol: 'TCP' },
  { name: 'dns', port: 53, protocol: 'UDP' },
];

/** default and kube-system are there; `shop` has a label. */
export function sampleCluster(): ClusterIndex {
  const index = new ClusterIndex(NOW);
  index.synced = true;
  for (const [name, labels] of [
    ['default', {}],
    ['kube-system', {}],
    ['shop', { team: 'a' }],
  ] as const) {
    index.namespaceChanged({ type: 'added', object: { metadata: { ...meta('', name, labels) } } }, NOW);
  }
  const services = [
    service('default', 'kubernetes', { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443 }] }),
    service(
      'default',
      'web',
      { clusterIP: '10.96.0.20', clusterIPs: ['10.96.0.20', 'fd00::20'], ports: web },
      { tier: 'x' },
    ),
    service('default', 'empty', { clusterIP: '10.96.0.21', ports: [{ port: 80 }] }),
    service('default', 'db', { clusterIP: 'None', ports: [{ name: 'sql', port: 5432 }] }),
    service('default', 'bare', { clusterIP: 'None' }),
    service('default', 'out', { type: 'ExternalName', externalName: 'Example.com.' }),
    service('default', 'inside', { type: 'ExternalName', externalName: 'web.default.svc.cluster.local' }),
    service('default', 'twice', { type: 'ExternalName', externalName: 'out.default.svc.cluster.local' }),
    service('default', 'loop-a', { type: 'ExternalName', externalName: 'loop-b.default.svc.cluster.local' }),
    service('default', 'loop-b', { type: 'ExternalName', externalName: 'loop-a.default.svc.cluster.local' }),
    service('default', 'by-ip', { type: 'ExternalName', externalName: '10.1.1.1' }),
    service('kube-system', 'kube-dns', {
      clusterIP: '10.96.0.10',
      ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
    }),
    service('shop', 'cart', { clusterIP: '10.96.0.30', ports: [{ name: 'http', port: 80 }] }),
  ];
  for (const object of services) index.serviceChanged({ type: 'added', object }, NOW);
  const sql = [{ name: 'sql', port: 5432, protocol: 'TCP' }];
  const slices = [
    slice('default', 'web', [{ ip: '10.244.0.5', targetRef: { kind: 'Pod', name: 'web-1' } }]),
    slice(
      'default',
      'db',
      [
        { ip: '10.244.0.7', hostname: 'db-0' },
        { ip: '10.244.0.8', hostname: 'db-1' },
        { ip: '10.244.0.9', targetRef: { kind: 'Pod', name: 'loose' } },
        { ip: '10.244.0.10', hostname: 'db-2', conditions: { ready: false } },
      ],
      sql,
    ),
    slice('default', 'bare', [{ ip: '10.244.0.11', hostname: 'b' }], []),
    slice('kube-system', 'kube-dns', [{ ip: '10.244.0.1' }], [{ name: 'dns', port: 53, protocol: 'UDP' }]),
  ];
  for (const object of slices) index.sliceChanged({ type: 'added', object }, NOW);
  for (const object of [pod('default', 'web-1', '10.244.0.5'), pod('shop', 'done', '10.244.0.6', 'Succeeded')]) {
    index.podChanged({ type: 'added', object }, NOW);
  }
  return index;
}

/** The kubernetes plugin of a Corefile with these lines in its braces. */
export function kubernetes(options = '', zones = 'cluster.local in-addr.arpa ip6.arpa'): KubernetesSettings {
  const [server] = parseCorefile(`.:53 {\n kubernetes ${zones} {\n${options}\n}\n}\n`);
  if (server?.kubernetes === undefined) throw new Error('no kubernetes in it');
  return server.kubernetes;
}

export function question(name: string, type: keyof typeof Type): Question {
  return { name: name.toLowerCase(), writtenName: name, type: Type[type], class: 1 };
}

function dataOf({ type, data }: Resource): string {
  if (type === 'SRV') return `${data.priority} ${data.weight} ${data.port} ${data.target}`;
  if (type === 'SOA') return `${data.mname} ${data.rname} ${data.serial} ${data.minimum}`;
  return String(data);
}

export const text = (record: Resource): string => `${record.name} ${record.ttl} ${record.type} ${dataOf(record)}`;

const RCODES: Readonly<Record<number, string>> = { 0: 'NOERROR', 2: 'SERVFAIL', 3: 'NXDOMAIN', 5: 'REFUSED' };

/** "NOERROR", and a line for each record; `+` before those that come along, `SOA` for one alone. */
export function summary(reply: MadeReply): readonly string[] {
  const authorities = reply.authorities.map((record) => (record.type === 'SOA' ? 'SOA' : text(record)));
  const more = reply.additionals.map((record) => `+ ${text(record)}`);
  return [RCODES[reply.rcode] ?? String(reply.rcode), ...reply.answers.map(text), ...authorities, ...more];
}

export function query(name: string, type: keyof typeof Type, id = 7): Message {
  return parseMessage(makeQuery(id, name, Type[type]));
}
