// The cases of kube-apiserver's NodeRestriction admission test about pods, mirror pods and their status, and what is stricter
// here.

import { describe, expect, it } from 'vitest';
import type { NodeWrite } from '../../../../apiserver/auth/node-restriction.ts';
import type { KubeObjectMeta } from '../../../../apiserver/kinds/resource.ts';
import {
  type Case,
  ELSEWHERE,
  lookup,
  OWNER,
  pod,
  table,
  UNEXPECTED,
  verdict,
  write,
} from './node-restriction-cases.ts';
import { lookupOf } from './support.ts';

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
