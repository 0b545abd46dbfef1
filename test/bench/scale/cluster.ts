// A cluster that is only simulated: Nodes with their Leases, pods spread over them, and what each kubelet sends, with the
// identity of its node.

import { type Connections, requestBytes } from '../apiserver/requests.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/namespaces/default/pods';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const STRATEGIC = 'application/strategic-merge-patch+json';
/** Pods share a ConfigMap. */
const PODS_PER_CONFIG_MAP = 100;
const CONDITIONS = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
const LEASE_SECONDS = 40;

export interface Size {
  readonly nodes: number;
  readonly pods: number;
}

export const nodeName = (index: number): string => `node-${index}`;
export const podName = (index: number): string => `pod-${index}`;
export const tokenOf = (node: number): string => `token-of-node-${node}`;
/** The node of a pod. */
export const nodeOf = (pod: number, { nodes }: Size): number => pod % nodes;

/** For --token-auth-file: each node has a token. */
export function tokenFile({ nodes }: Size): string {
  const line = (node: number): string => `${tokenOf(node)},system:node:${nodeName(node)},uid-${node},"system:nodes"`;
  return `${indices(nodes).map(line).join('\n')}\n`;
}

const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

function conditions(now: string): object[] {
  return CONDITIONS.map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    reason: type === 'Ready' ? 'KubeletReady' : `KubeletHasNo${type}`,
    message: type === 'Ready' ? 'kubelet is posting ready status' : `kubelet has no ${type}`,
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  }));
}

function node(index: number, now: string): object {
  const amounts = { cpu: '16', memory: '65536Mi', 'ephemeral-storage': '100Gi', pods: '110' };
  const name = nodeName(index);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-${index % 3}` } },
    spec: { podCIDR: `10.${Math.floor(index / 256)}.${index % 256}.0/24` },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: conditions(now),
      addresses: [{ type: 'Hostname', address: name }],
      nodeInfo: { kubeletVersion: 'v1.34.0', osImage: 'Debian GNU/Linux 12', architecture: 'amd64' },
    },
  };
}

function lease(index: number, now: string): object {
  const spec = { holderIdentity: nodeName(index), leaseDurationSeconds: LEASE_SECONDS, renewTime: now };
  const metadata = { name: nodeName(index), namespace: 'kube-node-lease' };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
}

const configMapOf = (pod: number): string => `config-${Math.floor(pod / PODS_PER_CONFIG_MAP)}`;

function pod(index: number, size: Size): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName(index), labels: { app: `app-${index % 300}`, 'pod-template-hash': '5d4f8c7b9' } },
    spec: {
      nodeName: nodeName(nodeOf(index, size)),
      containers: [
        {
          name: 'main',
          image: 'registry.example/app:1.0',
          env: [{ name: 'ONE', value: '1' }],
          ports: [{ containerPort: 8080 }],
          resources: { requests: { cpu: '100m', memory: '64Mi' } },
          volumeMounts: [{ name: 'config', mountPath: '/etc/app' }],
        },
      ],
      volumes: [{ name: 'config', configMap: { name: configMapOf(index) } }],
    },
  };
}

export interface Filled {
  /** Of each pod's creation, ms. */
  readonly creates: readonly number[];
  /** For all of them, ms. */
  readonly ms: number;
}

/** Creates everything, with the connections' identity. */
export async function fill(connections: Connections, size: Size, now: string): Promise<Filled> {
  const post = (path: string, body: object): Buffer => requestBytes({ method: 'POST', path, body });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await connections.run([post('/api/v1/namespaces/default/serviceaccounts', account)]);
  const maps = Math.ceil(size.pods / PODS_PER_CONFIG_MAP);
  await connections.run([
    ...indices(maps).map((index) => {
      const metadata = { name: configMapOf(index * PODS_PER_CONFIG_MAP) };
      return post(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'app.conf': 'a = 1\n' } });
    }),
    ...indices(size.nodes).map((index) => post(NODES, node(index, now))),
    ...indices(size.nodes).map((index) => post(LEASES, lease(index, now))),
  ]);
  const creates: number[] = [];
  const ms = await connections.run(
    indices(size.pods).map((index) => post(PODS, pod(index, size))),
    creates,
  );
  return { creates, ms };
}

// ---------------------------------------------------------------- what a kubelet sends

export function renewLease(index: number, now: string): Buffer {
  const path = `${LEASES}/${nodeName(index)}`;
  return requestBytes({ method: 'PUT', path, body: lease(index, now), token: tokenOf(index) });
}

export function reportNode(index: number, now: string): Buffer {
  const path = `${NODES}/${nodeName(index)}/status`;
  const body = { status: { conditions: conditions(now) } };
  return requestBytes({ method: 'PATCH', path, type: STRATEGIC, body, token: tokenOf(index) });
}

/** Stands in a pod's status before the moment at which it was sent. */
export const MARK = '"message":"sent ';

export function reportPod(index: number, size: Size, now: string, sent: string): Buffer {
  const state = { running: { startedAt: now } };
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: now };
  const container = { name: 'main', image: 'registry.example/app:1.0', imageID: 'sha256:1', ready: true };
  const status = {
    phase: 'Running',
    message: `sent ${sent}`,
    podIP: '10.0.0.1',
    conditions: [ready],
    containerStatuses: [{ ...container, restartCount: 0, state }],
  };
  const path = `${PODS}/${podName(index)}/status`;
  return requestBytes({
    method: 'PATCH',
    path,
    type: STRATEGIC,
    body: { status },
    token: tokenOf(nodeOf(index, size)),
  });
}

export function readConfigMap(podIndex: number, size: Size): Buffer {
  const token = tokenOf(nodeOf(podIndex, size));
  return requestBytes({ method: 'GET', path: `${CONFIG_MAPS}/${configMapOf(podIndex)}`, token });
}

export const selectorOf = (node: number): string => `fieldSelector=spec.nodeName%3D${nodeName(node)}`;
export const ALL_PODS = '/api/v1/pods';

export function listOwnPods(node: number): Buffer {
  const path = `${ALL_PODS}?${selectorOf(node)}&resourceVersion=0`;
  return requestBytes({ method: 'GET', path, token: tokenOf(node) });
}
