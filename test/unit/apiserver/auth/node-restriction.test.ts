// The cases of kube-apiserver's NodeRestriction admission test, and what is stricter here. "n" is the node that writes.

import { describe, expect, it } from 'vitest';
import { isNodeSettable } from '../../../../apiserver/auth/node-labels.ts';
import { type NodeWrite, restrictNode } from '../../../../apiserver/auth/node-restriction.ts';
import type { KubeObject, KubeObjectMeta } from '../../../../apiserver/kinds/resource.ts';
import { failureOf } from '../support.ts';
import { lookupOf, nodeUser, thing, user, type World } from './support.ts';

const OWNER = { apiVersion: 'v1', kind: 'Node', name: 'mynode', uid: 'mynode-uid', controller: true };

function pod(
  name: string,
  nodeName: string,
  mirror: boolean,
  spec: object = {},
  more: Partial<KubeObjectMeta> = {},
): KubeObject {
  const node = nodeName === '' ? {} : { nodeName };
  const marks = {
    annotations: { 'kubernetes.io/config.mirror': 'true' },
    ownerReferences: [{ ...OWNER, name: nodeName, uid: `${nodeName}-uid` }],
  };
  return thing(
    'pods',
    { name, namespace: 'ns', uid: 'pod-uid', ...(mirror ? marks : {}), ...more },
    { spec: { ...node, ...spec } },
  );
}

const tokenVolume = (audience?: string) => ({
  name: 't',
  projected: { sources: [{ serviceAccountToken: { audience } }] },
});
const claimVolume = { name: 'p', persistentVolumeClaim: { claimName: 'pvclaim' } };
const WORLD: World = {
  nodes: [thing('nodes', { name: 'mynode', uid: 'mynode-uid' })],
  pods: [
    ...['mymirrorpod', 'othermirrorpod', 'unboundmirrorpod'].map((name) => pod(name, nodeOfPod(name), true)),
    ...['mypod', 'otherpod', 'unboundpod'].map((name) => pod(name, nodeOfPod(name), false)),
    pod('mysapod', 'mynode', false, { volumes: [tokenVolume('foo')] }),
    pod('mydefaultpod', 'mynode', false, { volumes: [tokenVolume()] }),
    pod('mycsipod', 'mynode', false, { volumes: [{ name: 'c', csi: { driver: 'com.example.csi.mydriver' } }] }),
    pod('mylostcsipod', 'mynode', false, { volumes: [{ name: 'c', csi: { driver: 'lost' } }] }),
    pod('mypvcpod', 'mynode', false, { volumes: [claimVolume] }),
    pod('myephemeralpod', 'mynode', false, { volumes: [{ name: 'myvol', ephemeral: {} }] }),
    pod('mylostpvcpod', 'mynode', false, {
      volumes: [{ ...claimVolume, persistentVolumeClaim: { claimName: 'lost' } }],
    }),
    pod('mylostpvpod', 'mynode', false, {
      volumes: [{ ...claimVolume, persistentVolumeClaim: { claimName: 'nopv' } }],
    }),
    pod('myunboundpvcpod', 'mynode', false, {
      volumes: [{ ...claimVolume, persistentVolumeClaim: { claimName: 'unbound' } }],
    }),
    pod('mypvcandcsipod', 'mynode', false, {
      volumes: [
        { ...claimVolume, persistentVolumeClaim: { claimName: 'lost' } },
        { name: 'c', csi: { driver: 'com.example.csi.mydriver' } },
      ],
    }),
  ],
  persistentvolumeclaims: [
    ...['pvclaim', 'myephemeralpod-myvol'].map((name) => claimOf(name, { volumeName: 'pvname' })),
    claimOf('nopv', { volumeName: 'lost' }),
    claimOf('unbound', {}),
  ],
  persistentvolumes: [
    thing('persistentvolumes', { name: 'pvname' }, { spec: { csi: { driver: 'com.example.csi.mydriver' } } }),
  ],
  csidrivers: [
    thing('csidrivers', { name: 'com.example.csi.mydriver' }, { spec: { tokenRequests: [{ audience: 'foo' }] } }),
  ],
  resourceslices: [
    thing('resourceslices', { name: 'mine' }, { spec: { nodeName: 'mynode' } }),
    thing('resourceslices', { name: 'theirs' }, { spec: { nodeName: 'othernode' } }),
  ],
};

function nodeOfPod(name: string): string {
  if (name.startsWith('unbound')) return '';
  return name.startsWith('my') ? 'mynode' : 'othernode';
}

function claimOf(name: string, spec: object): KubeObject {
  return thing('persistentvolumeclaims', { name, namespace: 'ns' }, { spec });
}

const lookup = lookupOf(WORLD);
const mynode = nodeUser('mynode');

function write(operation: NodeWrite['operation'], what: string, more: Partial<NodeWrite> = {}): NodeWrite {
  const [full = '', name = '', subresource = ''] = what.split('/');
  const [resource = '', ...group] = full.split('.');
  return { operation, group: group.join('.'), resource, subresource, name, namespace: 'ns', ...more };
}

/** undefined when it is admitted, else the message. */
function verdict(
  request: NodeWrite,
  world = lookup,
  caller = mynode,
  nodeAudiences: string[] = [],
): string | undefined {
  const failure = failureOf(() => {
    restrictNode(caller, request, { lookup: world, nodeAudiences });
    throw Object.assign(new Error('admitted'), { status: { code: 0 } });
  });
  if (failure.code === 0) return undefined;
  expect(failure.code).toBe(failure.reason === 'NotFound' ? 404 : 403);
  return failure.message;
}

type Case = readonly [name: string, request: NodeWrite, refusal: string | undefined];
function table(cases: readonly Case[], world = lookup): void {
  for (const [name, request, refusal] of cases) {
    it(`${refusal === undefined ? 'allows' : 'forbids'} ${name}`, () => {
      if (refusal === undefined) expect(verdict(request, world)).toBeUndefined();
      else expect(verdict(request, world)).toContain(refusal);
    });
  }
}

const UNEXPECTED = 'forbidden: unexpected operation';
const ELSEWHERE = 'spec.nodeName set to itself';

describe('NodeRestriction of pods', () => {
  for (const kind of ['mirrorpod', 'pod']) {
    for (const whose of ['my', 'other', 'unbound']) {
      const name = `${whose}${kind}`;
      const stored = lookup.get('', 'pods', 'ns', name);
      const both = stored === undefined ? {} : { object: stored, old: stored };
      const only = stored === undefined ? {} : { object: stored };
      const mine = whose === 'my' ? undefined : ELSEWHERE;
      table([
        [
          `the creation of ${name}`,
          write('create', `pods/${name}`, only),
          kind === 'pod' ? 'can only create mirror pods' : mine,
        ],
        [`an update of ${name}`, write('update', `pods/${name}`, both), UNEXPECTED],
        [`the deletion of ${name}`, write('delete', `pods/${name}`), mine],
        [`the creation of the status of ${name}`, write('create', `pods/${name}/status`, only), UNEXPECTED],
        [`an update of the status of ${name}`, write('update', `pods/${name}/status`, both), mine],
        [`the deletion of the status of ${name}`, write('delete', `pods/${name}/status`), UNEXPECTED],
        [`an eviction of ${name}`, write('create', `pods/${name}/eviction`, { object: { metadata: { name } } }), mine],
        [`an unnamed eviction of ${name}`, write('create', `pods/${name}/eviction`, { object: {} }), mine],
        [`an update of an eviction of ${name}`, write('update', `pods/${name}/eviction`, { object: {} }), UNEXPECTED],
        [`the deletion of an eviction of ${name}`, write('delete', `pods/${name}/eviction`), UNEXPECTED],
      ]);
    }
  }

  table([
    ['the deletion of an unknown pod', write('delete', 'pods/unknown'), 'not found'],
    ['an eviction of an unknown pod', write('create', 'pods/unknown/eviction', { object: {} }), 'not found'],
    [
      'an eviction that names a pod only in its body',
      write('create', 'pods//eviction', { object: { metadata: { name: 'mypod' } } }),
      undefined,
    ],
    [
      'one that names another’s',
      write('create', 'pods//eviction', { object: { metadata: { name: 'otherpod' } } }),
      ELSEWHERE,
    ],
    [
      'one that names none',
      write('create', 'pods//eviction', { object: {} }),
      'could not determine pod from request data',
    ],
    ...['binding', 'exec', 'ephemeralcontainers', 'resize', 'proxy'].map(
      (subresource): Case => [subresource, write('create', `pods/mypod/${subresource}`), 'unexpected pod subresource'],
    ),
  ]);
});

describe('a mirror pod of a node', () => {
  const create = (spec: object, more: Partial<KubeObjectMeta> = {}): NodeWrite =>
    write('create', 'pods/test', { object: pod('test', 'mynode', true, spec, more) });
  const inVolume = (volume: object): object => ({ volumes: [{ name: 'v', ...volume }] });
  const projected = (source: object): object => inVolume({ projected: { sources: [{ downwardAPI: {} }, source] } });
  const inContainer = (list: string, container: object): object => ({ [list]: [{ name: 'c', ...container }] });
  const envFrom = (reference: object): object => ({ envFrom: [reference] });
  const env = (valueFrom: object): object => ({
    env: [
      { name: 'A', value: 'x' },
      { name: 'B', valueFrom },
    ],
  });

  const references: readonly [string, object, string][] = [
    ['a service account', { serviceAccountName: 'foo' }, 'serviceaccounts'],
    ['a service account by its old name', { serviceAccount: 'foo' }, 'serviceaccounts'],
    ['a pull secret', { imagePullSecrets: [{ name: 'foo' }] }, 'secrets'],
    ...['containers', 'initContainers', 'ephemeralContainers'].flatMap((list): [string, object, string][] => [
      [`envFrom.secretRef of ${list}`, inContainer(list, envFrom({ secretRef: { name: 'foo' } })), 'secrets'],
      [
        `an optional one of ${list}`,
        inContainer(list, envFrom({ secretRef: { name: 'foo', optional: true } })),
        'secrets',
      ],
      [`env.secretKeyRef of ${list}`, inContainer(list, env({ secretKeyRef: { name: 'foo', key: 'k' } })), 'secrets'],
      [`envFrom.configMapRef of ${list}`, inContainer(list, envFrom({ configMapRef: { name: 'foo' } })), 'configmaps'],
      [
        `env.configMapKeyRef of ${list}`,
        inContainer(list, env({ configMapKeyRef: { name: 'foo', key: 'k' } })),
        'configmaps',
      ],
    ]),
    ['a secret volume', inVolume({ secret: { secretName: 'foo' } }), 'secrets'],
    ['a secret volume without a name', inVolume({ secret: {} }), 'secrets (via secret volumes)'],
    ['a config map volume', inVolume({ configMap: { name: 'foo' } }), 'configmaps'],
    ['a projected secret', projected({ secret: { name: 'foo' } }), 'secrets'],
    ['a projected secret without a name', projected({ secret: {} }), 'secrets (via projected volumes)'],
    ['a projected config map', projected({ configMap: { name: 'foo' } }), 'configmaps'],
    ['a projected token', projected({ serviceAccountToken: { path: 't' } }), 'serviceaccounts (via projected volumes)'],
    ['a trust bundle', projected({ clusterTrustBundle: { name: 'foo', path: 'p' } }), 'clustertrustbundles'],
    ['a pod certificate', projected({ podCertificate: { signerName: 's' } }), 'podcertificates'],
    ['a source that is not known', projected({ brandNew: {} }), 'brandNew'],
    ['a claim', inVolume({ persistentVolumeClaim: { claimName: 'foo' } }), 'persistentvolumeclaims'],
    [
      'an ephemeral claim',
      inVolume({ ephemeral: { volumeClaimTemplate: {} } }),
      'persistentvolumeclaims (via ephemeral volumes)',
    ],
    ['a CSI volume', inVolume({ csi: { driver: 'd' } }), 'csidrivers (via CSI volumes)'],
    [
      'the secret of a CSI volume',
      inVolume({ csi: { driver: 'd', nodePublishSecretRef: { name: 'foo' } } }),
      'secrets',
    ],
    ['the secret of an azureFile volume', inVolume({ azureFile: { secretName: 'foo', shareName: 's' } }), 'secrets'],
    ...['cephfs', 'cinder', 'flexVolume', 'iscsi', 'rbd', 'scaleIO', 'storageos'].map(
      (kind): [string, object, string] => [
        `the secret of a ${kind} volume`,
        inVolume({ [kind]: { secretRef: { name: 'foo' } } }),
        'secrets',
      ],
    ),
    [
      'glusterfs endpoints',
      inVolume({ glusterfs: { endpoints: 'e', path: 'p' } }),
      'endpoints (via glusterFS volumes)',
    ],
    ['a volume that is not known', inVolume({ brandNew: {} }), 'brandNew'],
    ['a resource claim', { resourceClaims: [{ name: 'c', resourceClaimName: 'foo' }] }, 'resourceclaims'],
    [
      'a resource claim template',
      { resourceClaims: [{ name: 'c', resourceClaimTemplateName: 'foo' }] },
      'resourceclaims',
    ],
  ];
  table(
    references.map(([name, spec, what]) => [
      name,
      create(spec),
      `pods "test" is forbidden: node "mynode" can not create pods that reference ${what}`,
    ]),
  );
  table([
    [
      'what needs nothing of the API',
      create({
        priorityClassName: 'system-node-critical',
        volumes: [
          { name: 'a', hostPath: { path: '/x' } },
          { name: 'b', emptyDir: {} },
          { name: 'c', downwardAPI: {} },
          { name: 'd', projected: { sources: [{ downwardAPI: {} }] } },
          { name: 'e', image: { reference: 'r' } },
          { name: 'f', nfs: { server: 's', path: 'p' } },
        ],
        containers: [{ name: 'c', env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }],
      }),
      undefined,
    ],
  ]);

  const owned = (...ownerReferences: Record<string, unknown>[]): NodeWrite => create({}, { ownerReferences });
  table([
    [
      'no owner',
      owned(),
      'pods "test" is forbidden: node "mynode" can only create pods with an owner reference set to itself',
    ],
    ['the Node as owner', owned(OWNER), undefined],
    ['two owners', owned(OWNER, OWNER), 'can only create pods with a single owner reference set to itself'],
    [
      'another’s name',
      owned({ ...OWNER, name: 'other' }),
      'can only create pods with an owner reference set to itself',
    ],
    ['another uid', owned({ ...OWNER, uid: 'other' }), 'node mynode UID mismatch: expected other got mynode-uid'],
    ['another API version', owned({ ...OWNER, apiVersion: 'v2' }), 'an owner reference set to itself'],
    ['another kind', owned({ ...OWNER, kind: 'Pod' }), 'an owner reference set to itself'],
    [
      'an owner that is no controller',
      owned({ ...OWNER, controller: false }),
      'a controller owner reference set to itself',
    ],
    [
      'an owner that does not say',
      owned({ ...OWNER, controller: undefined }),
      'a controller owner reference set to itself',
    ],
    [
      'blockOwnerDeletion',
      owned({ ...OWNER, blockOwnerDeletion: true }),
      'must not set blockOwnerDeletion on an owner reference',
    ],
  ]);
  it('needs the Node to be there', () => {
    expect(verdict(owned(OWNER), lookupOf({}))).toBe('nodes "mynode" not found');
  });
});

describe('NodeRestriction of a pod’s status', () => {
  const status = (now: Partial<KubeObjectMeta>, before: Partial<KubeObjectMeta>, rest: object = {}, was: object = {}) =>
    write('update', 'pods/mypod/status', {
      object: { ...pod('mypod', 'mynode', false, {}, now), ...rest },
      old: { ...pod('mypod', 'mynode', false, {}, before), ...was },
    });
  const [a, ab] = [{ a: '1' }, { a: '1', b: '2' }];
  const claims = (...resourceClaimStatuses: object[]) => ({ status: { resourceClaimStatuses } });
  const [x, y] = [
    { name: 'x', resourceClaimName: 'one' },
    { name: 'x', resourceClaimName: 'two' },
  ];
  const LABELS = 'cannot update labels through pod status';
  const FINALIZERS = 'cannot update finalizers through pod status';
  const CLAIMS = 'cannot update resource claim statuses';
  table([
    ['another phase', status({}, {}, { status: { phase: 'Running' } }), undefined],
    ['the same labels', status({ labels: ab }, { labels: { b: '2', a: '1' } }), undefined],
    ['a label more', status({ labels: ab }, { labels: a }), LABELS],
    ['a label less', status({ labels: a }, { labels: ab }), LABELS],
    ['no labels any more', status({}, { labels: a }), LABELS],
    ['a first label', status({ labels: a }, {}), LABELS],
    ['another value', status({ labels: { a: '2' } }, { labels: a }), LABELS],
    ['the same finalizers', status({ finalizers: ['a/b'] }, { finalizers: ['a/b'] }), undefined],
    ['a finalizer more', status({ finalizers: ['a/b'] }, {}), FINALIZERS],
    ['a finalizer less', status({}, { finalizers: ['a/b'] }), FINALIZERS],
    ['the same claims', status({}, {}, claims(x), claims({ ...x })), undefined],
    ['an empty list for none', status({}, {}, claims(), {}), undefined],
    ['a claim more', status({}, {}, claims(x), {}), CLAIMS],
    ['a claim less', status({}, {}, {}, claims(x)), CLAIMS],
    ['another claim', status({}, {}, claims(y), claims(x)), CLAIMS],
    ['a claim without its name', status({}, {}, claims({ name: 'x' }), claims(x)), CLAIMS],
    [
      'an extended resource claim',
      status({}, {}, { status: { extendedResourceClaimStatus: { resourceClaimName: 'x' } } }),
      CLAIMS,
    ],
  ]);
});

describe('NodeRestriction of the Node', () => {
  const node = (labels: object = {}, spec: object = {}, more: object = {}): KubeObject =>
    thing('nodes', { name: 'mynode', uid: 'mynode-uid', labels: { ...labels }, ...more }, { spec });
  const create = (object: KubeObject): NodeWrite => write('create', 'nodes/mynode', { object });
  const update = (object: KubeObject, old: KubeObject, subresource = ''): NodeWrite =>
    write('update', `nodes/mynode/${subresource}`, { object, old });
  const valued = (keys: readonly string[], value: string): object =>
    Object.fromEntries(keys.map((key) => [key, value]));
  const free = [
    ...['foo', 'example.com/foo', 'kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch'],
    ...['beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'beta.kubernetes.io/instance-type'],
    ...['failure-domain.beta.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/region'],
    ...['topology.kubernetes.io/zone', 'topology.kubernetes.io/region', 'node.kubernetes.io/instance-type'],
    ...[
      'kubelet.kubernetes.io/foo',
      'foo.kubelet.kubernetes.io/foo',
      'node.kubernetes.io/foo',
      'foo.node.kubernetes.io/foo',
    ],
    ...['mykubernetes.io/foo', 'k8s.io.example.com/foo', 'kubernetes.io'],
  ];
  const fixed = [
    ...['foo.node-restriction.kubernetes.io/foo', 'node-restriction.kubernetes.io/foo'],
    ...['other.k8s.io/foo', 'other.kubernetes.io/foo'],
  ];
  const others = [
    ...['node-role.kubernetes.io/control-plane', 'kubernetes.io/role', 'k8s.io/foo', 'kubernetes.io/foo'],
    ...[
      'topology.kubernetes.io/foo',
      'foo.topology.kubernetes.io/zone',
      'x.node-restriction.kubernetes.io/kubernetes.io/hostname',
    ],
  ];
  for (const label of free) it(`may set ${label}`, () => expect(isNodeSettable(label)).toBe(true));
  for (const label of [...fixed, ...others])
    it(`may not set ${label}`, () => expect(isNodeSettable(label)).toBe(false));

  const [freeA, freeB, fixedA, fixedB] = [valued(free, 'a'), valued(free, 'b'), valued(fixed, 'a'), valued(fixed, 'b')];
  const all = { ...freeA, ...fixedA };
  const configSource = (name: string) => ({ configSource: { configMap: { name, namespace: 'bar' } } });
  const taints = (value: string) => ({ taints: [{ key: 'mykey', value, effect: 'NoSchedule' }] });
  const named = fixed.join(', ');
  const owners = { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'y' }] };
  const CONFIG = 'is not allowed to update configSource to a new non-nil configSource';
  const TAINTS = 'node "mynode" is not allowed to modify taints';
  const OWNERS = 'node "mynode" is not allowed to modify ownerReferences';
  table([
    ['its creation', create(node()), undefined],
    ['its creation with taints', create(node({}, taints('A'))), undefined],
    ['its creation with labels', create(node(freeA)), undefined],
    [
      'its creation with labels of others',
      create(node(all)),
      `node "mynode" is not allowed to set the following labels: ${named}`,
    ],
    [
      'its creation with a configSource',
      create(node({}, configSource('foo'))),
      'is not allowed to create pods with a non-nil configSource',
    ],
    ['its creation with an owner', create(node({}, {}, owners)), OWNERS],
    ['an update', update(node(), node()), undefined],
    ['an update of its status', update(node(), node(), 'status'), undefined],
    ['its deletion', write('delete', 'nodes/mynode'), undefined],
    ['a first configSource', update(node({}, configSource('foo')), node()), CONFIG],
    ['another configSource', update(node({}, configSource('qux')), node({}, configSource('foo'))), CONFIG],
    ['the same configSource', update(node({}, configSource('foo')), node({}, configSource('foo'))), undefined],
    ['a configSource less', update(node(), node({}, configSource('foo'))), undefined],
    ['the same taints', update(node({}, taints('A')), node({}, taints('A'))), undefined],
    ['an empty list of taints for none', update(node({}, { taints: [] }), node()), undefined],
    ['a taint more', update(node({}, taints('A')), node()), TAINTS],
    ['a taint less', update(node(), node({}, taints('A'))), TAINTS],
    ['another taint', update(node({}, taints('A')), node({}, taints('B'))), TAINTS],
    ['another taint through its status', update(node({}, taints('A')), node({}, taints('B')), 'status'), TAINTS],
    ['a first owner', update(node({}, {}, owners), node()), OWNERS],
    ['an owner less', update(node(), node({}, {}, owners)), OWNERS],
    ['the same owner', update(node({}, {}, owners), node({}, {}, owners)), undefined],
    ['labels more', update(node(freeA), node()), undefined],
    ['labels less', update(node(), node(freeA)), undefined],
    ['other values of labels', update(node(freeB), node(freeA)), undefined],
    ['the same labels, whatever they are', update(node(all), node(all)), undefined],
    ['its labels beside those of others', update(node(all), node(fixedA)), undefined],
    ['its labels less beside those of others', update(node(fixedA), node(all)), undefined],
    ['labels of others more', update(node(fixedA), node()), `is not allowed to modify labels: ${named}`],
    ['labels of others less', update(node(), node(fixedA)), `is not allowed to modify labels: ${named}`],
    ['other values of them', update(node(fixedB), node(fixedA)), `is not allowed to modify labels: ${named}`],
    [
      'them through its status',
      update(node(fixedB), node(fixedA), 'status'),
      `is not allowed to modify labels: ${named}`,
    ],
    ...(['create', 'update', 'delete'] as const).map(
      (operation): Case => [
        `${operation} of another’s`,
        write(operation, 'nodes/othernode', { object: node() }),
        'node "mynode" is not allowed to modify node "othernode"',
      ],
    ),
    [
      'an update of another’s status',
      write('update', 'nodes/othernode/status', { object: node(), old: node() }),
      'is not allowed to modify node',
    ],
  ]);
});

describe('NodeRestriction of tokens', () => {
  const token = (name: string, uid = 'pod-uid', audiences: string[] = ['foo'], more: object = {}): NodeWrite =>
    write('create', 'serviceaccounts/mysa/token', {
      object: { spec: { audiences, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid, ...more } } },
    });
  const missing = (audience: string): string =>
    `serviceaccounts "mysa" is forbidden: audience "${audience}" not found in pod spec volume, system:node:mynode is not authorized to request tokens for this audience`;
  table([
    [
      'an unbound one',
      write('create', 'serviceaccounts/mysa/token', { object: { spec: { audiences: ['foo'] } } }),
      'not bound to a pod',
    ],
    ['one without a spec', write('create', 'serviceaccounts/mysa/token', { object: {} }), 'not bound to a pod'],
    ['one bound to a secret', token('mysapod', 'pod-uid', ['foo'], { kind: 'Secret' }), 'not bound to a pod'],
    ['one bound to the Node', token('mynode', 'mynode-uid', ['foo'], { kind: 'Node' }), 'not bound to a pod'],
    [
      'one bound to another API’s Pod',
      token('mysapod', 'pod-uid', ['foo'], { apiVersion: 'v2' }),
      'not bound to a pod',
    ],
    ['one bound to a pod without a name', token(''), 'not bound to a pod'],
    ['one bound to a pod that is not there', token('nopod', 'someuid'), 'pods "nopod" not found'],
    ['one bound to a pod without its uid', token('mysapod', ''), 'pod binding without a uid'],
    ['one bound to an earlier pod of that name', token('mysapod', 'earlier'), 'does not match the UID in record'],
    ['one bound to another node’s pod', token('otherpod'), 'pod scheduled on a different node'],
    ['one bound to a pod of no node', token('unboundpod'), 'pod scheduled on a different node'],
    ['the API server’s audience of a projected token', token('mydefaultpod', 'pod-uid', []), undefined],
    ['the audience of a projected token', token('mysapod'), undefined],
    ['two audiences', token('mysapod', 'pod-uid', ['foo', 'bar']), 'node may only request 0 or 1 audiences'],
    ['an audience that no volume asks for', token('mypod'), missing('foo')],
    ['the API server’s where no volume asks for it', token('mysapod', 'pod-uid', []), missing('')],
    ['the audience of an inline CSI volume', token('mycsipod'), undefined],
    ['another audience of it', token('mycsipod', 'pod-uid', ['bar']), missing('bar')],
    [
      'one of a driver that is not there',
      token('mylostcsipod'),
      'error validating audience "foo": csidrivers.storage.k8s.io "lost" not found',
    ],
    ['the audience of a claim’s driver', token('mypvcpod'), undefined],
    ['another audience of it', token('mypvcpod', 'pod-uid', ['bar']), missing('bar')],
    [
      'one of a claim that is not there',
      token('mylostpvcpod'),
      'error validating audience "foo": persistentvolumeclaims "lost" not found',
    ],
    [
      'one of a volume that is not there',
      token('mylostpvpod'),
      'error validating audience "foo": persistentvolumes "lost" not found',
    ],
    ['one of a claim that is not bound', token('myunboundpvcpod'), missing('foo')],
    ['the audience of an ephemeral claim’s driver', token('myephemeralpod'), undefined],
    ['another audience of it', token('myephemeralpod', 'pod-uid', ['bar']), missing('bar')],
    ['one that one volume asks for and another cannot tell', token('mypvcandcsipod'), undefined],
    ['a service account itself', write('create', 'serviceaccounts/mysa'), undefined],
  ]);
  it('allows an audience that the server grants to nodes', () => {
    expect(verdict(token('mypod'), lookup, mynode, ['foo'])).toBeUndefined();
    expect(verdict(token('mypod'), lookup, mynode, ['bar'])).toContain('not found in pod spec volume');
  });
});

describe('NodeRestriction of claims', () => {
  const claim = (status: object, more: object = {}, spec: object = {}): KubeObject =>
    thing(
      'persistentvolumeclaims',
      { name: 'c', namespace: 'ns', ...more },
      { spec: { volumeName: 'volume1', ...spec }, status: { phase: 'Bound', ...status } },
    );
  const update = (
    object: KubeObject,
    old = claim({ capacity: { storage: '10G' } }),
    subresource = 'status',
  ): NodeWrite => write('update', `persistentvolumeclaims/c/${subresource}`, { object, old });
  const OTHER = 'is not allowed to update fields other than status.quantity and status.conditions';
  table([
    ['an update of the claim', update(claim({}), claim({}), ''), 'may only update PVC status'],
    ['its creation', write('create', 'persistentvolumeclaims/c', { object: claim({}) }), 'may only update PVC status'],
    ['its deletion', write('delete', 'persistentvolumeclaims/c'), 'may only update PVC status'],
    [
      'the creation of its status',
      write('create', 'persistentvolumeclaims/c/status', { object: claim({}) }),
      UNEXPECTED,
    ],
    ['another capacity', update(claim({ capacity: { storage: '20G' } })), undefined],
    [
      'other conditions',
      update(claim({ conditions: [{ type: 'FileSystemResizePending', status: 'True' }] })),
      undefined,
    ],
    ['other allocated resources', update(claim({ allocatedResources: { storage: '15G' } })), undefined],
    [
      'another state of resizing',
      update(claim({ allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } })),
      undefined,
    ],
    ['another or no resourceVersion', update(claim({}, { resourceVersion: '7' })), undefined],
    ['another phase', update(claim({ phase: 'Lost' })), OTHER],
    ['a label', update(claim({}, { labels: { a: 'b' } })), OTHER],
    ['a finalizer', update(claim({}, { finalizers: ['a/b'] })), OTHER],
    ['an owner', update(claim({}, { ownerReferences: [OWNER] })), OTHER],
    ['another volume', update(claim({}, {}, { volumeName: 'other' })), OTHER],
  ]);
});

describe('NodeRestriction of leases, CSINodes and resource slices', () => {
  const lease = { namespace: 'kube-node-lease' };
  const everything = ['create', 'update', 'delete'] as const;
  const SAME = 'with the same name as the requesting node';
  table(
    everything.flatMap((operation): Case[] => [
      [`${operation} of its lease`, write(operation, 'leases.coordination.k8s.io/mynode', lease), undefined],
      [`${operation} of another’s lease`, write(operation, 'leases.coordination.k8s.io/foo', lease), SAME],
      [
        `${operation} of a lease elsewhere`,
        write(operation, 'leases.coordination.k8s.io/mynode'),
        'can only access leases in the "kube-node-lease" system namespace',
      ],
      [`${operation} of its CSINode`, write(operation, 'csinodes.storage.k8s.io/mynode'), undefined],
      [`${operation} of another’s CSINode`, write(operation, 'csinodes.storage.k8s.io/foo'), SAME],
    ]),
  );
  const slice = (nodeName?: string) => ({ object: { spec: nodeName === undefined ? {} : { nodeName } } });
  const CREATE = 'can only create ResourceSlice with the same NodeName as the requesting node';
  const DELETE = 'can only delete ResourceSlice with the same NodeName as the requesting node';
  const SLICES = 'resourceslices.resource.k8s.io';
  table([
    ['the creation of its slice', write('create', `${SLICES}/mine`, slice('mynode')), undefined],
    ['the creation of another’s slice', write('create', `${SLICES}/mine`, slice('othernode')), CREATE],
    ['the creation of nobody’s slice', write('create', `${SLICES}/mine`, slice()), CREATE],
    ['an update of a slice', write('update', `${SLICES}/mine`, slice('othernode')), undefined],
    ['the deletion of its slice', write('delete', `${SLICES}/mine`), undefined],
    ['the deletion of another’s slice', write('delete', `${SLICES}/theirs`), DELETE],
  ]);
});

describe('NodeRestriction', () => {
  table(
    (['create', 'update', 'delete'] as const).map((operation) => [
      `${operation} of what it has no rule for`,
      write(operation, 'configmaps/mycm', { object: {} }),
      undefined,
    ]),
  );
  it('lets everybody else through', () => {
    const bob = user('bob');
    for (const operation of ['create', 'update', 'delete'] as const) {
      expect(verdict(write(operation, 'pods/unboundpod', { object: {} }), lookup, bob)).toBeUndefined();
      expect(verdict(write(operation, 'nodes/mynode', { object: {} }), lookup, bob)).toBeUndefined();
    }
  });
  it('lets nothing through from a node without a name', () => {
    expect(verdict(write('create', 'events/e', { object: {} }), lookup, nodeUser(''))).toContain(
      'could not determine node from user "system:node:"',
    );
  });
});
