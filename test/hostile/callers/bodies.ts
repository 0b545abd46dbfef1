// Bodies of generated requests: what a node may write, and what it might try to write; each says whether it goes too
// far.

import type { Random } from '../random.ts';
import { NODES, type World } from './world.ts';

export interface Kind {
  readonly group: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly subresources: readonly string[];
  readonly weight: number;
}

export const kind = (
  group: string,
  plural: string,
  namespaced: boolean,
  weight: number,
  ...subresources: string[]
): Kind => ({
  group,
  plural,
  namespaced,
  weight,
  subresources,
});
export const KIND_NAMES: Readonly<Record<string, string>> = {
  secrets: 'Secret',
  configmaps: 'ConfigMap',
  pods: 'Pod',
  nodes: 'Node',
  serviceaccounts: 'ServiceAccount',
  persistentvolumeclaims: 'PersistentVolumeClaim',
  persistentvolumes: 'PersistentVolume',
  volumeattachments: 'VolumeAttachment',
  csinodes: 'CSINode',
  leases: 'Lease',
  namespaces: 'Namespace',
  services: 'Service',
  events: 'Event',
  endpoints: 'Endpoints',
};
export function chance(random: Random, share: number): boolean {
  return random.next() < share;
}

function reference(random: Random): object {
  const name = random.pick(['mirrored', 'nobody', `vol-${random.pick(NODES)}`]);
  const inContainer = (list: string, more: object): object => ({ [list]: [{ name: 'c', image: 'x:1', ...more }] });
  const volume = (source: object): object => ({ volumes: [{ name: 'v', ...source }] });
  return random.pick<() => object>([
    () => ({ imagePullSecrets: [{ name }] }),
    () =>
      inContainer(random.pick(['containers', 'initContainers', 'ephemeralContainers']), {
        envFrom: [{ secretRef: { name } }],
      }),
    () => inContainer('containers', { env: [{ name: 'A', valueFrom: { secretKeyRef: { name, key: 'key' } } }] }),
    () => inContainer('containers', { envFrom: [{ configMapRef: { name: 'nobody' } }] }),
    () => volume({ secret: { secretName: name } }),
    () => volume({ projected: { sources: [{ downwardAPI: {} }, { secret: { name } }] } }),
    () => volume({ projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }),
    () => volume({ persistentVolumeClaim: { claimName: `claim-${random.pick(NODES)}` } }),
    () => volume({ csi: { driver: 'd', nodePublishSecretRef: { name } } }),
    () => volume({ iscsi: { targetPortal: 'p', iqn: 'i', lun: 0, secretRef: { name } } }),
    () => ({ serviceAccountName: `account-${random.pick(NODES)}` }),
  ])();
}

export function apiVersionOf({ group }: Kind): string {
  return group === '' ? 'v1' : `${group}/v1`;
}

interface Body {
  readonly body: unknown;
  readonly name: string;
  readonly overreaches: boolean;
  readonly boundTo?: string;
}

/** A pod as a node would make it; with faults. */
export function pod(random: Random, world: World): Body {
  const node = random.pick(NODES);
  const refers = chance(random, 0.6);
  const plain = chance(random, 0.2);
  const owner = { apiVersion: 'v1', kind: 'Node', name: node, uid: world.nodes.get(node) ?? '', controller: true };
  const foreign = chance(random, 0.2);
  const owners = foreign
    ? random.pick([[], [owner, owner], [{ ...owner, uid: 'x' }], [{ ...owner, kind: 'Pod' }]])
    : [owner];
  const elsewhere = chance(random, 0.2);
  const name = `mirror-${random.below(3)}-${node}`;
  const spec = { nodeName: elsewhere ? random.pick([...NODES, '']) : node, containers: [{ name: 'c', image: 'x:1' }] };
  const metadata = {
    name,
    ...(plain ? {} : { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    ownerReferences: owners,
  };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...spec, ...(refers ? reference(random) : {}) } };
  return { body, name, overreaches: refers || plain || foreign || spec.nodeName !== node };
}

/** Labels, taints, owners and finalizers that a node may not write, and some that it may. */
export function change(
  random: Random,
  plural: string,
): { readonly part: Readonly<Record<string, object>>; readonly overreaches: boolean } {
  const metadata = (part: object) => ({ metadata: part });
  const isNode = plural === 'nodes';
  return random.pick<() => { part: Record<string, object>; overreaches: boolean }>([
    () => ({
      part: { status: { phase: random.pick(['Running', 'Bound']) } },
      overreaches: plural === 'persistentvolumeclaims',
    }),
    () => ({ part: metadata({ labels: { 'example.com/x': String(random.below(9)) } }), overreaches: !isNode }),
    () => ({
      part: metadata({
        labels: {
          [random.pick([
            'node-restriction.kubernetes.io/x',
            'node-role.kubernetes.io/x',
            'k8s.io/x',
            'x.kubernetes.io/y',
          ])]: String(random.below(9)),
        },
      }),
      overreaches: true,
    }),
    () => ({ part: metadata({ finalizers: [`example.com/f${random.below(9)}`] }), overreaches: !isNode }),
    () => ({
      part: metadata({ ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y' }] }),
      overreaches: isNode || plural === 'persistentvolumeclaims',
    }),
    () => ({ part: { spec: { taints: [{ key: `t${random.below(9)}`, effect: 'NoSchedule' }] } }, overreaches: isNode }),
    () => ({ part: { spec: { configSource: { configMap: { name: 'x', namespace: 'a' } } } }, overreaches: isNode }),
    () => ({ part: { spec: { nodeName: random.pick(NODES) } }, overreaches: false }),
  ])();
}

export function token(random: Random, world: World, namespace: string): Body {
  const name = `pod-${random.pick(NODES)}`;
  const uid = chance(random, 0.8) ? (world.pods.get(`${namespace}/${name}`) ?? '') : 'other';
  const bound = chance(random, 0.8);
  const audiences = random.pick([[], [], ['vault'], ['vault', 'x']]);
  const ref = { apiVersion: 'v1', kind: random.pick(['Pod', 'Pod', 'Pod', 'Secret', 'Node']), name, uid };
  const body = {
    spec: {
      audiences,
      expirationSeconds: random.pick([3600, 600, 599, 1e12]),
      ...(bound ? { boundObjectRef: ref } : {}),
    },
  };
  return {
    body,
    name: '',
    overreaches: !bound || ref.kind !== 'Pod' || audiences.length > 0 || uid === 'other',
    boundTo: bound ? name : '',
  };
}

export function createBody(
  random: Random,
  world: World,
  one: Kind,
  namespace: string,
  subresource: string,
  name: string,
): Body {
  if (subresource === 'token') return token(random, world, namespace);
  if (subresource === 'binding')
    return {
      body: {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name },
        target: { kind: 'Node', name: random.pick(NODES) },
      },
      name,
      overreaches: true,
    };
  if (subresource === 'eviction')
    return { body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } }, name, overreaches: false };
  if (subresource !== '') return { body: {}, name, overreaches: true };
  if (one.plural === 'pods') return pod(random, world);
  const own = random.pick([...NODES, 'n3']);
  const { part, overreaches } = change(random, one.plural);
  const faulty = chance(random, 0.5);
  const object = { apiVersion: apiVersionOf(one), kind: KIND_NAMES[one.plural] ?? 'Thing' };
  // A new Node may come with taints; what is not of the Node's own list of rules is another matter.
  const taints = faulty && JSON.stringify(part).includes('taints');
  const withPart: typeof part = faulty ? part : {};
  const metadata = { ...withPart['metadata'], name: own };
  return { body: { ...object, ...withPart, metadata }, name: own, overreaches: faulty && overreaches && !taints };
}

export function changeBody(random: Random, one: Kind, name: string): Body & { readonly type: string } {
  const { part, overreaches } = change(random, one.plural);
  const type = random.pick([
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
    'application/json-patch+json',
  ]);
  if (type !== 'application/json-patch+json') return { body: part, name, overreaches, type };
  const operations = Object.entries(part).map(([field, value]) => ({
    op: 'add',
    path: `/${field}`,
    value: { ...value, ...(field === 'metadata' ? { name } : {}) },
  }));
  // It replaces the whole part: labels and the like that stood there go with it.
  return { body: operations, name, overreaches, type };
}
