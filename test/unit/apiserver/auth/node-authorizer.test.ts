// The cases of kube-apiserver's node authorizer test, with AuthorizeNodeWithSelectors, and what is stricter here: two
// nodes with two pods each, every pod with objects of its own of each kind.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Attributes } from '../../../../apiserver/auth/attributes.ts';
import { nodeNameOf } from '../../../../apiserver/auth/node.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { parseFieldSelector } from '../../../../apiserver/registry/selectors.ts';
import { authorize, authorizerOf, lookupOf, nodeUser, thing, user, type World } from './support.ts';

function podOn(node: string, name: string): KubeObject {
  const own = `${name}-${node}`;
  return thing(
    'pods',
    { name: own, namespace: 'ns0' },
    {
      spec: {
        nodeName: node,
        serviceAccountName: `svcacct0-${node}`,
        volumes: [
          { name: 's', secret: { secretName: `secret0-${own}` } },
          { name: 'shared', secret: { secretName: 'secret0-shared' } },
          { name: 'c', configMap: { name: `configmap0-${own}` } },
          { name: 'p', persistentVolumeClaim: { claimName: `pvc0-${own}` } },
          { name: 'e', ephemeral: { volumeClaimTemplate: {} } },
        ],
        containers: [
          {
            name: 'c',
            env: [{ name: 'A', valueFrom: { secretKeyRef: { name: `env-secret-${own}`, key: 'k' } } }],
            envFrom: [
              { secretRef: { name: `envfrom-secret-${own}` } },
              { configMapRef: { name: `envfrom-map-${own}` } },
            ],
          },
        ],
        ephemeralContainers: [{ name: 'd', envFrom: [{ secretRef: { name: `debug-secret-${own}` } }] }],
        imagePullSecrets: [{ name: `pull-secret-${own}` }],
        resourceClaims: [
          { name: 'named', resourceClaimName: `claim0-${own}-ns0` },
          { name: 'made', resourceClaimTemplateName: `${own}-claimtemplate0` },
        ],
      },
      status: { resourceClaimStatuses: [{ name: 'made', resourceClaimName: `generated-claim-${own}-ns0-0` }] },
    },
  );
}

function volumeOf(node: string, name: string): KubeObject {
  const own = `${name}-${node}`;
  const secret = (part: string) => ({ namespace: 'ns0', name: `secret-${part}-${own}` });
  return thing(
    'persistentvolumes',
    { name: `pv0-${own}-ns0` },
    {
      spec: {
        claimRef: { namespace: 'ns0', name: `pvc0-${own}` },
        csi: {
          driver: 'd',
          volumeHandle: `handle-${own}`,
          nodeStageSecretRef: secret('stage'),
          nodePublishSecretRef: secret('publish'),
          nodeExpandSecretRef: secret('expand'),
          controllerPublishSecretRef: secret('controller'),
        },
      },
    },
  );
}

const attachmentName = (own: string, node: string): string =>
  `csi-${createHash('sha256').update(`handle-${own}d${node}`).digest('hex')}`;

const both = ['node0', 'node1'].flatMap((node) => ['pod0', 'pod1'].map((name) => [node, name] as const));
const mirror = thing(
  'pods',
  { name: 'mirror-node0', namespace: 'ns0', annotations: { 'kubernetes.io/config.mirror': 'hash' } },
  {
    spec: {
      nodeName: 'node0',
      serviceAccountName: 'mirror-account',
      containers: [{ name: 'c', envFrom: [{ secretRef: { name: 'mirror-secret' } }] }],
      volumes: [
        { name: 'm', configMap: { name: 'mirror-map' } },
        { name: 'p', persistentVolumeClaim: { claimName: 'mirror-claim' } },
      ],
    },
  },
);
const WORLD: World = {
  nodes: ['node0', 'node1'].map((name) => thing('nodes', { name, uid: `uid-${name}` })),
  pods: [...both.map(([node, name]) => podOn(node, name)), mirror],
  persistentvolumes: [
    ...both.map(([node, name]) => volumeOf(node, name)),
    thing(
      'persistentvolumes',
      { name: 'pv-csi-elsewhere' },
      {
        spec: {
          claimRef: { namespace: 'ns0', name: 'pvc0-pod0-node0' },
          csi: {
            driver: 'd',
            volumeHandle: 'elsewhere',
            nodeStageSecretRef: { namespace: 'storage', name: 'driver-secret' },
            nodePublishSecretRef: { name: 'nowhere-secret' },
          },
        },
      },
    ),
    thing(
      'persistentvolumes',
      { name: 'pv-iscsi' },
      {
        spec: {
          claimRef: { namespace: 'ns0', name: 'pvc0-pod0-node0' },
          iscsi: { secretRef: { name: 'iscsi-secret', namespace: '' } },
          azureFile: { secretName: 'azure-secret', secretNamespace: 'other' },
        },
      },
    ),
  ],
  volumeattachments: ['node0', 'node1'].map((node) =>
    thing('volumeattachments', { name: `attachment0-${node}` }, { spec: { nodeName: node } }),
  ),
  resourceslices: ['node0', 'node1'].map((node) =>
    thing('resourceslices', { name: `slice0-${node}` }, { spec: { nodeName: node } }),
  ),
};
const lookup = lookupOf(WORLD);
const node0 = nodeUser('node0');

/** "get secrets/x in ns0 where spec.nodeName=node0", "create serviceaccounts/x/token in ns0", "get leases.coordination.k8s.io/x" */
function parse(text: string): Attributes {
  const [, verb = '', full = '', name = '', subresource = '', namespace = '', selector = ''] =
    /^(\S+) ([^/ ]+)(?:\/([^/ ]*))?(?:\/(\S+))?(?: in (\S+))?(?: where (\S+))?$/.exec(text) ?? [];
  const [resource = '', ...group] = full.split('.');
  return { verb, group: group.join('.'), resource, subresource, namespace, name, fields: parseFieldSelector(selector) };
}

const LEASES = 'leases.coordination.k8s.io';
const CSI = 'csinodes.storage.k8s.io';
const SLICES = 'resourceslices.resource.k8s.io';
const CLAIMS = 'resourceclaims.resource.k8s.io';
const NODE_LEASE = 'in kube-node-lease';

const allowed: readonly string[] = [
  'get configmaps/configmap0-pod0-node0 in ns0',
  'get configmaps/envfrom-map-pod0-node0 in ns0',
  'get secrets/secret0-pod0-node0 in ns0',
  'list secrets/secret0-pod0-node0 in ns0',
  'watch secrets/secret0-pod0-node0 in ns0',
  'get secrets/secret0-shared in ns0',
  'get secrets/env-secret-pod1-node0 in ns0',
  'get secrets/envfrom-secret-pod1-node0 in ns0',
  'get secrets/debug-secret-pod1-node0 in ns0',
  'get secrets/pull-secret-pod1-node0 in ns0',
  'get secrets/secret-stage-pod0-node0 in ns0',
  'get secrets/secret-publish-pod0-node0 in ns0',
  'get secrets/secret-expand-pod0-node0 in ns0',
  'get secrets/driver-secret in storage',
  'get secrets/iscsi-secret in ns0',
  'get secrets/azure-secret in other',
  'get persistentvolumeclaims/pvc0-pod0-node0 in ns0',
  'get persistentvolumeclaims/pod0-node0-e in ns0',
  'patch persistentvolumeclaims/pvc0-pod0-node0/status in ns0',
  'update persistentvolumeclaims/pvc0-pod0-node0/status in ns0',
  `get ${CLAIMS}/claim0-pod0-node0-ns0 in ns0`,
  `get ${CLAIMS}/generated-claim-pod0-node0-ns0-0 in ns0`,
  'get persistentvolumes/pv0-pod0-node0-ns0',
  'get volumeattachments.storage.k8s.io/attachment0-node0',
  `watch volumeattachments.storage.k8s.io/${attachmentName('pod0-node0', 'node0')}`,
  'create serviceaccounts/svcacct0-node0/token in ns0',
  'get serviceaccounts/svcacct0-node0 in ns0',
  ...['get', 'create', 'update', 'patch', 'delete'].map((verb) => `${verb} ${LEASES}/node0 ${NODE_LEASE}`),
  ...['get', 'create', 'update', 'patch', 'delete'].map((verb) => `${verb} ${CSI}/node0`),
  `list ${SLICES} where nodeName==node0`,
  `watch ${SLICES} where nodeName=node0`,
  `deletecollection ${SLICES} where nodeName=node0`,
  ...['get', 'create', 'update', 'patch', 'delete'].map((verb) => `${verb} ${SLICES}/slice0-node0`),
  'get pods/pod0-node0 in ns0',
  'get pods/mirror-node0 in ns0',
  'list pods where spec.nodeName=node0',
  'list pods where spec.nodeName==node0',
  'list pods/pod0-node0 in ns0',
  'watch pods where spec.nodeName=node0',
  'watch pods where status.phase!=Failed,spec.nodeName=node0',
  'watch pods/pod0-node0 in ns0',
  'create pods in ns0',
  'delete pods/pod0-node0 in ns0',
  'update pods/pod0-node0/status in ns0',
  'patch pods/pod0-node0/status in ns0',
  'create pods/pod0-node0/eviction in ns0',
  // What admission guards (node-restriction.test.ts).
  'delete pods/pod0-node1 in ns0',
  'update pods/pod0-node1/status in ns0',
  'patch pods/pod0-node1/status in ns0',
  'create pods/pod0-node1/eviction in ns0',
  'get nodes/node0',
  'list nodes/node0',
  'watch nodes/node0',
  'create nodes',
  'update nodes/node0',
  'patch nodes/node0',
  'update nodes/node0/status',
  'patch nodes/node0/status',
  'update nodes/node1',
  'patch nodes/node1/status',
  // What every node may.
  'watch services',
  'create events in ns0',
  'watch csidrivers.storage.k8s.io',
  'get runtimeclasses.node.k8s.io/gvisor',
  'watch clustertrustbundles.certificates.k8s.io',
  'create tokenreviews.authentication.k8s.io',
  'create subjectaccessreviews.authorization.k8s.io',
  'create selfsubjectreviews.authentication.k8s.io',
];

const denied: readonly string[] = [
  'list secrets in ns0',
  'watch secrets in ns0',
  'list secrets',
  'list secrets/secret0-pod0-node0',
  'get secrets/secret0-pod0-node0 in ns1',
  'get secrets/secret0-pod0-node0/status in ns0',
  'update secrets/secret0-pod0-node0 in ns0',
  'delete secrets/secret0-pod0-node0 in ns0',
  'create secrets in ns0',
  'get configmaps/configmap0-pod0-node1 in ns0',
  'get secrets/secret0-pod0-node1 in ns0',
  'get secrets/debug-secret-pod0-node1 in ns0',
  'get secrets/secret-stage-pod0-node1 in ns0',
  'get secrets/secret-controller-pod0-node0 in ns0',
  // The reference's namespace counts, not the claim's; and no other secret of that namespace.
  'get secrets/driver-secret in ns0',
  'get secrets/secret-stage-pod0-node0 in storage',
  'get secrets/nowhere-secret in ns0',
  'get secrets/iscsi-secret in other',
  'get secrets/configmap0-pod0-node0 in ns0',
  'get persistentvolumeclaims/pvc0-pod0-node1 in ns0',
  'list persistentvolumeclaims in ns0',
  'update persistentvolumeclaims/pvc0-pod0-node0 in ns0',
  'get persistentvolumeclaims/pvc0-pod0-node0/status in ns0',
  'patch persistentvolumeclaims/pvc0-pod0-node1/status in ns0',
  `get ${CLAIMS}/claim0-pod0-node1-ns0 in ns0`,
  `get ${CLAIMS}/pod0-node0-claimtemplate0 in ns0`,
  `list ${CLAIMS}/claim0-pod0-node0-ns0 in ns0`,
  'get persistentvolumes/pv0-pod0-node1-ns0',
  'get persistentvolumes/unknown',
  'list persistentvolumes',
  'get volumeattachments.storage.k8s.io/attachment0-node1',
  'watch volumeattachments.storage.k8s.io/attachment0-node1',
  'get volumeattachments.storage.k8s.io/unknown',
  `watch volumeattachments.storage.k8s.io/${attachmentName('pod0-node1', 'node1')}`,
  `watch volumeattachments.storage.k8s.io/${attachmentName('pod0-node1', 'node0')}`,
  'list volumeattachments.storage.k8s.io',
  'create serviceaccounts/svcacct0-node1/token in ns0',
  'create serviceaccounts/svcacct0-node0 in ns0',
  'create serviceaccounts in ns0',
  'update serviceaccounts/svcacct0-node0/token in ns0',
  'get serviceaccounts/svcacct0-node1 in ns0',
  'list serviceaccounts in ns0',
  ...['get', 'create', 'update', 'patch', 'delete'].map((verb) => `${verb} ${LEASES}/node0 in foo`),
  ...['get', 'update', 'patch', 'delete'].map((verb) => `${verb} ${LEASES}/node1 ${NODE_LEASE}`),
  ...['list', 'watch', 'deletecollection'].map((verb) => `${verb} ${LEASES} ${NODE_LEASE}`),
  `list ${LEASES}/node0 ${NODE_LEASE}`,
  `get ${CSI}/node0/csiDrivers`,
  ...['get', 'update', 'patch', 'delete'].map((verb) => `${verb} ${CSI}/node1`),
  ...['list', 'watch', 'deletecollection'].map((verb) => `${verb} ${CSI}`),
  `get ${SLICES}/slice0-node0/status`,
  ...['get', 'update', 'patch', 'delete'].map((verb) => `${verb} ${SLICES}/slice0-node1`),
  ...['list', 'watch', 'deletecollection'].map((verb) => `${verb} ${SLICES}`),
  `list ${SLICES} where nodeName=node1`,
  'get pods/pod0-node1 in ns0',
  'list pods',
  'list pods in ns0',
  'list pods where spec.nodeName=node1',
  'list pods where spec.nodeName!=node1',
  'watch pods',
  'watch pods where spec.nodeName!=node0',
  'watch pods where status.phase=Running',
  'watch pods/pod0-node1 in ns0',
  'watch pods/unknown in ns0',
  'create pods/pod0-node0/proxy in ns0',
  'delete pods/pod0-node0/proxy in ns0',
  'get pods/pod0-node0/status in ns0',
  'get pods/pod0-node0/log in ns0',
  'create pods/pod0-node0/exec in ns0',
  'create pods/pod0-node0/binding in ns0',
  'update pods/pod0-node0 in ns0',
  'patch pods/pod0-node0 in ns0',
  'patch pods/pod0-node0/ephemeralcontainers in ns0',
  'patch pods/pod0-node0/resize in ns0',
  'deletecollection pods in ns0',
  'deletecollection pods where spec.nodeName=node0',
  'create bindings in ns0',
  'get nodes/node1',
  'list nodes',
  'list nodes/node1',
  'watch nodes',
  'watch nodes/node1',
  'delete nodes/node0',
  'delete nodes/node1',
  'deletecollection nodes',
  'get nodes/node0/proxy',
  'create nodes/node0/proxy',
  'impersonate users/kubernetes-admin',
  'impersonate groups/system:masters',
  // Nothing because of a mirror pod, whatever it names.
  'get secrets/mirror-secret in ns0',
  'get configmaps/mirror-map in ns0',
  'get persistentvolumeclaims/mirror-claim in ns0',
  'create serviceaccounts/mirror-account/token in ns0',
];

describe('a node', () => {
  for (const text of allowed) {
    it(`may ${text}`, () => expect(authorize(node0, parse(text), lookup)).toMatchObject({ allowed: true }));
  }
  for (const text of denied) {
    it(`may not ${text}`, () => expect(authorize(node0, parse(text), lookup)).toMatchObject({ allowed: false }));
  }

  it('may look for a pod that is gone: that is the registry’s to report', () => {
    expect(authorize(node0, parse('get pods/unknown in ns0'), lookup).allowed).toBe(true);
  });

  it('that is not registered may read and make its own Node, and nothing that pods refer to', () => {
    const unregistered = nodeUser('nodeunregistered');
    const may = (text: string) => authorize(unregistered, parse(text), lookup).allowed;
    expect(may('get nodes/nodeunregistered')).toBe(true);
    expect(may('create nodes')).toBe(true);
    expect(may('get secrets/secret0-shared in ns0')).toBe(false);
  });

  it('whose Node was deleted reads nothing that its pods refer to until it has registered again', () => {
    const gone = lookupOf({ ...WORLD, nodes: [] });
    const may = (text: string) => authorize(node0, parse(text), gone).allowed;
    for (const text of [
      'get secrets/secret0-pod0-node0 in ns0',
      'get secrets/secret-stage-pod0-node0 in ns0',
      'get configmaps/configmap0-pod0-node0 in ns0',
      'get persistentvolumeclaims/pvc0-pod0-node0 in ns0',
      'get persistentvolumes/pv0-pod0-node0-ns0',
      'get volumeattachments.storage.k8s.io/attachment0-node0',
      'create serviceaccounts/svcacct0-node0/token in ns0',
    ]) {
      expect(may(text), text).toBe(false);
    }
    for (const text of [
      'create nodes',
      'get nodes/node0',
      `update ${LEASES}/node0 ${NODE_LEASE}`,
      `get ${CSI}/node0`,
    ]) {
      expect(may(text), text).toBe(true);
    }
  });

  it('sees a shared secret only while a pod of its own shares it', () => {
    const request = parse('get secrets/secret0-shared in ns0');
    const others = lookupOf({
      ...WORLD,
      pods: (WORLD['pods'] ?? []).filter((pod) => !pod.metadata.name?.endsWith('node0')),
    });
    expect(authorize(node0, request, others).allowed).toBe(false);
    expect(authorize(nodeUser('node1'), request, others).allowed).toBe(true);
  });

  it('gets the reason of a refusal', () => {
    const why = (text: string) => authorize(node0, parse(text), lookup).reason;
    expect(why('get secrets/secret0-pod0-node1 in ns0')).toBe(
      "no relationship found between node 'node0' and this object",
    );
    expect(why('list pods')).toBe('can only list/watch pods with spec.nodeName field selector');
    expect(why('list nodes')).toBe("node 'node0' cannot read all nodes, only its own Node object");
    expect(why('get nodes/node1')).toBe("node 'node0' cannot read 'node1', only its own Node object");
  });
});

describe('who is a node', () => {
  const cases: readonly [string, readonly string[], string | undefined][] = [
    ['system:node:foo', ['system:nodes'], 'foo'],
    ['system:node:', ['system:nodes'], ''],
    ['system:node:foo', [], undefined],
    ['foo', ['system:nodes'], undefined],
    ['system:node', ['system:nodes'], undefined],
    ['system:serviceaccount:ns:foo', ['system:nodes'], undefined],
  ];
  for (const [name, groups, expected] of cases) {
    it(`${name} of [${groups.join()}]: ${expected}`, () => expect(nodeNameOf({ name, groups })).toBe(expected));
  }

  it('one whose name names no node may nothing that nodes may', () => {
    const nameless = nodeUser('');
    for (const text of ['list pods where spec.nodeName=', 'create nodes', 'watch services', 'create events in ns0']) {
      expect(authorize(nameless, parse(text), lookup).allowed, text).toBe(false);
    }
    const { rules } = authorizerOf(lookup).rulesFor(nameless, 'ns0');
    expect(rules).toEqual(authorizerOf(lookup).rulesFor(user('somebody'), 'ns0').rules);
  });
});
