// What the callers campaign is played in: two nodes with pods that refer to objects in every way there is, in two
// namespaces, and objects that no pod refers to. Everything that is not for all is marked.

import { createHash } from 'node:crypto';
import { at, type TestApiServer } from '../../support/api-server.ts';
import { Markers } from './markers.ts';

export const NODES = ['n1', 'n2'] as const;
export const NAMESPACES = ['a', 'b'] as const;
const WAYS = ['vol', 'proj', 'env', 'envfrom', 'init', 'pull', 'csi'] as const;
const SECRETS_OF_NODE = [...WAYS, 'stage'] as const;

type Json = Readonly<Record<string, unknown>>;

export interface World {
  readonly markers: Markers;
  /** Names of objects by plural, for requests. */
  readonly names: Readonly<Record<string, readonly string[]>>;
  /** uids of pods by namespace/name. */
  readonly pods: Map<string, string>;
  readonly nodes: ReadonlyMap<string, string>;
  /** Makes again what callers have rightly deleted. */
  reseed(): Promise<void>;
}

/** The node of a pod by its name; mirror pods are named after theirs, too. */
export function nodeOfPod(name: string): string | undefined {
  return NODES.find((node) => name.endsWith(node));
}

function podSpec(node: string, marker: string): Json {
  return {
    nodeName: node,
    serviceAccountName: `account-${node}`,
    imagePullSecrets: [{ name: `pull-${node}` }],
    volumes: [
      { name: 'vol', secret: { secretName: `vol-${node}` } },
      { name: 'shared', secret: { secretName: 'shared' } },
      {
        name: 'proj',
        projected: { sources: [{ secret: { name: `proj-${node}` } }, { configMap: { name: `proj-${node}` } }] },
      },
      { name: 'map', configMap: { name: `vol-${node}` } },
      { name: 'claim', persistentVolumeClaim: { claimName: `claim-${node}` } },
      { name: 'csi', csi: { driver: 'inline', nodePublishSecretRef: { name: `csi-${node}` } } },
    ],
    initContainers: [{ name: 'i', image: 'x:1', envFrom: [{ secretRef: { name: `init-${node}` } }] }],
    containers: [
      {
        name: 'c',
        image: 'x:1',
        env: [
          { name: 'MARKER', value: marker },
          { name: 'SECRET', valueFrom: { secretKeyRef: { name: `env-${node}`, key: 'key' } } },
        ],
        envFrom: [{ secretRef: { name: `envfrom-${node}` } }, { configMapRef: { name: `envfrom-${node}` } }],
      },
    ],
  };
}

export async function buildWorld(stand: TestApiServer): Promise<World> {
  const markers = new Markers();
  const create = (path: string, apiVersion: string, kind: string, metadata: Json, rest: Json = {}): Promise<unknown> =>
    stand.admit('POST', path, { apiVersion, kind, metadata, ...rest });
  const note = (marker: string): Json => ({ annotations: { marker } });

  for (const ns of NAMESPACES) {
    await create('/api/v1/namespaces', 'v1', 'Namespace', { name: ns });
    const path = (plural: string): string => `/api/v1/namespaces/${ns}/${plural}`;
    const secret = (name: string, ...nodes: string[]): Promise<unknown> => {
      const marker = markers.make('secrets', `${ns}/${name}`, ...nodes);
      const data = { key: Buffer.from(marker).toString('base64') };
      return create(path('secrets'), 'v1', 'Secret', { name }, { data });
    };
    const map = (name: string, ...nodes: string[]): Promise<unknown> =>
      create(
        path('configmaps'),
        'v1',
        'ConfigMap',
        { name },
        { data: { key: markers.make('configmaps', `${ns}/${name}`, ...nodes) } },
      );
    for (const name of ['default', 'other']) await create(path('serviceaccounts'), 'v1', 'ServiceAccount', { name });
    for (const name of ['nobody', 'mirrored', 'controller-n1', 'controller-n2']) await secret(name);
    await secret('shared', ...NODES);
    await map('nobody');
    for (const node of NODES) {
      for (const way of SECRETS_OF_NODE) await secret(`${way}-${node}`, node);
      for (const way of ['vol', 'proj', 'envfrom']) await map(`${way}-${node}`, node);
      const account = `account-${node}`;
      await create(path('serviceaccounts'), 'v1', 'ServiceAccount', {
        name: account,
        ...note(markers.make('serviceaccounts', `${ns}/${account}`, node)),
      });
      const claim = `claim-${node}`;
      const storage = {
        resources: { requests: { storage: '1Gi' } },
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
      };
      await create(
        path('persistentvolumeclaims'),
        'v1',
        'PersistentVolumeClaim',
        { name: claim, ...note(markers.make('persistentvolumeclaims', `${ns}/${claim}`, node)) },
        { spec: { ...storage, volumeName: `volume-${ns}-${node}` } },
      );
      await createVolume(create, markers, ns, node);
    }
  }
  const nodes = new Map<string, string>();
  for (const node of NODES) {
    const mark = (resource: string): Json => ({ name: node, ...note(markers.make(resource, node, node)) });
    const stored = await create('/api/v1/nodes', 'v1', 'Node', mark('nodes'));
    nodes.set(node, String(at(stored, 'metadata', 'uid')));
    await create('/apis/storage.k8s.io/v1/csinodes', 'storage.k8s.io/v1', 'CSINode', mark('csinodes'), {
      spec: { drivers: [] },
    });
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    await create(leases, 'coordination.k8s.io/v1', 'Lease', mark('leases'), { spec: { holderIdentity: node } });
  }
  const pods = new Map<string, string>();
  const podMarkers = new Map<string, string>();
  const reseed = async (): Promise<void> => {
    for (const ns of NAMESPACES) {
      for (const node of NODES) {
        const name = `pod-${node}`;
        const path = `/api/v1/namespaces/${ns}/pods`;
        const found = await stand.call({ path: `${path}/${name}`, as: stand.admin });
        if (found.code === 200 && at(found.json, 'metadata', 'deletionTimestamp') === undefined) continue;
        if (found.code === 200) await stand.admit('DELETE', `${path}/${name}?gracePeriodSeconds=0`);
        const marker = podMarkers.get(`${ns}/${name}`) ?? markers.make('pods', `${ns}/${name}`, node);
        podMarkers.set(`${ns}/${name}`, marker);
        const stored = await create(path, 'v1', 'Pod', { name }, { spec: podSpec(node, marker) });
        pods.set(`${ns}/${name}`, String(at(stored, 'metadata', 'uid')));
      }
    }
  };
  await reseed();
  return { markers, names: namesOf(), pods, nodes, reseed };
}

const attachmentOf = (ns: string, node: string): string =>
  `csi-${createHash('sha256').update(`handle-${ns}-${node}staged${node}`).digest('hex')}`;

async function createVolume(
  create: (path: string, apiVersion: string, kind: string, metadata: Json, rest?: Json) => Promise<unknown>,
  markers: Markers,
  ns: string,
  node: string,
): Promise<void> {
  const name = `volume-${ns}-${node}`;
  const reference = (part: string): Json => ({ namespace: ns, name: `${part}-${node}` });
  const annotations = { marker: markers.make('persistentvolumes', name, node) };
  await create(
    '/api/v1/persistentvolumes',
    'v1',
    'PersistentVolume',
    { name, annotations },
    {
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        claimRef: { namespace: ns, name: `claim-${node}`, apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
        csi: {
          driver: 'staged',
          volumeHandle: `handle-${ns}-${node}`,
          nodeStageSecretRef: reference('stage'),
          controllerPublishSecretRef: reference('controller'),
        },
      },
    },
  );
  const attachment = attachmentOf(ns, node);
  const metadata = { name: attachment, annotations: { marker: markers.make('volumeattachments', attachment, node) } };
  const spec = { attacher: 'staged', nodeName: node, source: { persistentVolumeName: name } };
  await create('/apis/storage.k8s.io/v1/volumeattachments', 'storage.k8s.io/v1', 'VolumeAttachment', metadata, {
    spec,
  });
}

function namesOf(): Readonly<Record<string, readonly string[]>> {
  const each = (...bases: string[]): string[] => NODES.flatMap((node) => bases.map((base) => `${base}-${node}`));
  const both = NAMESPACES.flatMap((ns) => NODES.map((node) => [ns, node] as const));
  return {
    secrets: [...each(...SECRETS_OF_NODE, 'controller'), 'shared', 'nobody', 'mirrored'],
    configmaps: [...each('vol', 'proj', 'envfrom'), 'nobody'],
    pods: [...each('pod', 'mirror'), 'gone'],
    serviceaccounts: [...each('account'), 'default', 'other'],
    persistentvolumeclaims: each('claim'),
    persistentvolumes: both.map(([ns, node]) => `volume-${ns}-${node}`),
    volumeattachments: both.map(([ns, node]) => attachmentOf(ns, node)),
    nodes: [...NODES, 'n3'],
    csinodes: [...NODES, 'n3'],
    leases: [...NODES, 'n3'],
    services: ['kubernetes'],
    namespaces: [...NAMESPACES, 'default', 'kube-system'],
    events: ['e'],
    endpoints: ['e'],
    csidrivers: ['staged'],
    storageclasses: ['s'],
    runtimeclasses: ['r'],
    priorityclasses: ['system-node-critical'],
  };
}
