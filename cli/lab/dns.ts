// The lab's DNS: the objects by which a cluster knows it, as kubeadm makes them for CoreDNS, and the bridge on whose address it
// listens. Objects are made once; those that exist stay, since a user may have changed them.

import { connect } from 'node:net';
import { DEFAULT_SERVICE_CIDR, dnsServiceAddress } from '../../apiserver/kinds/services/ranges.ts';
import type { ApiClient } from '../../client/api.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Clock } from '../../lib/clock.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { poll } from '../../lib/retry.ts';
import { type NodesState, planRange } from './node/plan.ts';
import type { DnsState } from './state.ts';
import { makeObjects, type SystemObject, systemObject } from './system-objects.ts';

const NAMESPACE = 'kube-system';
const NAME = 'kube-dns';
const DNS_PORT = 53;
/** Between two tries to reach DNS. ms */
const LOOK_MS = 50;
const ANSWERS_MS = 20_000;
const RBAC = 'rbac.authorization.k8s.io/v1';
export const CLUSTER_DOMAIN = 'cluster.local';

/** kubeadm's, without the five seconds for which CoreDNS lingers when it ends: a lab has one server, and none takes over from it. */
export const COREFILE = `.:53 {
    errors
    health
    ready
    kubernetes ${CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success ${CLUSTER_DOMAIN}
       disable denial ${CLUSTER_DOMAIN}
    }
    loop
    reload
    loadbalance
}
`;

const LABELS = { 'k8s-app': 'kube-dns', 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' };
const PORTS = [
  { name: 'dns', port: 53, protocol: 'UDP' },
  { name: 'dns-tcp', port: 53, protocol: 'TCP' },
  { name: 'metrics', port: 9153, protocol: 'TCP' },
];
const RULES = [
  { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
];
/** CoreDNS has its ConfigMap as a volume; this server watches it. */
const OWN_RULES = [
  { apiGroups: [''], resources: ['configmaps'], resourceNames: ['coredns'], verbs: ['get', 'list', 'watch'] },
];
const ACCOUNT = { kind: 'ServiceAccount', name: 'coredns', namespace: NAMESPACE };

/** Pure. */
export function dnsObjects({ address, serviceIP }: Pick<DnsState, 'address' | 'serviceIP'>): readonly SystemObject[] {
  const role = (kind: string, name: string) => ({ roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name } });
  const slice = {
    metadata: { labels: { 'kubernetes.io/service-name': NAME, 'k8s-app': 'kube-dns' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: PORTS,
  };
  // Without the label the control plane would make a second slice of it.
  const endpoints = {
    metadata: { labels: { 'k8s-app': 'kube-dns', 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: [{ ip: address }], ports: PORTS }],
  };
  return [
    systemObject('v1', 'ServiceAccount', 'serviceaccounts', 'coredns', {}),
    systemObject(RBAC, 'ClusterRole', 'clusterroles', 'system:coredns', { rules: RULES }, false),
    systemObject(
      RBAC,
      'ClusterRoleBinding',
      'clusterrolebindings',
      'system:coredns',
      { ...role('ClusterRole', 'system:coredns'), subjects: [ACCOUNT] },
      false,
    ),
    systemObject(RBAC, 'Role', 'roles', 'coredns', { rules: OWN_RULES }),
    systemObject(RBAC, 'RoleBinding', 'rolebindings', 'coredns', { ...role('Role', 'coredns'), subjects: [ACCOUNT] }),
    systemObject('v1', 'ConfigMap', 'configmaps', 'coredns', { data: { Corefile: COREFILE } }),
    systemObject('v1', 'Service', 'services', NAME, {
      metadata: { labels: LABELS, annotations: { 'prometheus.io/port': '9153', 'prometheus.io/scrape': 'true' } },
      spec: { clusterIP: serviceIP, ports: PORTS },
    }),
    systemObject('v1', 'Endpoints', 'endpoints', NAME, endpoints),
    systemObject('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices', NAME, slice),
  ];
}

const ADDRESSES: ReadonlySet<string> = new Set(['endpoints', 'endpointslices']);

/** Makes what is not there. Endpoints and slice lead to where the server listens now. */
export async function applyDnsObjects(client: ApiClient, dns: Pick<DnsState, 'address' | 'serviceIP'>): Promise<void> {
  const existed = await makeObjects(client, dnsObjects(dns));
  for (const { apiVersion, plural, object, namespaced } of existed) {
    if (!ADDRESSES.has(plural)) continue;
    const path = resourcePath(apiVersion, plural, namespaced ? { namespace: NAMESPACE } : {});
    await client.patch(`${path}/${NAME}`, object, 'merge');
  }
}

/** Whether the server accepts connections, within some seconds: its Corefile is a user's. */
export function answersAt(
  host: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<boolean> {
  const look = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect({ host, port: DNS_PORT });
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
  return poll(look, { ...options, everyMs: LOOK_MS, limitMs: ANSWERS_MS });
}

/** Where the lab's DNS listens, and what pods have in their resolv.conf: the Service, where a proxy leads from there. Pure. */
export function dnsState(subnet: string, nodes: NodesState | undefined, hasProxy: boolean): DnsState {
  const address = nodes === undefined ? bridgeAddress(subnet) : planRange(nodes.range).gateway;
  const serviceIP = dnsServiceAddress(nodes?.serviceRange ?? DEFAULT_SERVICE_CIDR);
  return { address, server: hasProxy ? serviceIP : address, serviceIP };
}

/** The first address of the pods' subnet, which the bridge has. Pure. */
function bridgeAddress(subnet: string): string {
  return subnet.replace(/\.\d+\/\d+$/, '.1');
}

/** The bridge as the CNI plugin makes it with the first pod: before that, there is no address to listen on. */
export async function makeBridge(bridge: string, subnet: string): Promise<void> {
  if ((await exec('ip', ['link', 'show', bridge])).code !== 0) {
    await execOk('ip', ['link', 'add', bridge, 'type', 'bridge']);
  }
  const prefix = subnet.slice(subnet.indexOf('/'));
  await execOk('ip', ['address', 'replace', `${bridgeAddress(subnet)}${prefix}`, 'brd', '+', 'dev', bridge]);
  await execOk('ip', ['link', 'set', bridge, 'up']);
}
