// One node with its pods, claims and volumes, and tables of what it may write, for the tests of NodeRestriction.

import { expect, it } from 'vitest';
import { type NodeWrite, restrictNode } from '../../../../apiserver/auth/node-restriction.ts';
import type { KubeObject, KubeObjectMeta } from '../../../../apiserver/kinds/resource.ts';
import { failureOf } from '../support.ts';
import { authorizerOf, lookupOf, nodeUser, thing, type World } from './support.ts';

export const OWNER = { apiVersion: 'v1', kind: 'Node', name: 'mynode', uid: 'mynode-uid', controller: true };

export function pod(
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

export const tokenVolume = (audience?: string) => ({
  name: 't',
  projected: { sources: [{ serviceAccountToken: { audience } }] },
});
export const claimVolume = { name: 'p', persistentVolumeClaim: { claimName: 'pvclaim' } };
export const WORLD: World = {
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

export function nodeOfPod(name: string): string {
  if (name.startsWith('unbound')) return '';
  return name.startsWith('my') ? 'mynode' : 'othernode';
}

export function claimOf(name: string, spec: object): KubeObject {
  return thing('persistentvolumeclaims', { name, namespace: 'ns' }, { spec });
}

export const lookup = lookupOf(WORLD);
export const mynode = nodeUser('mynode');

export function write(operation: NodeWrite['operation'], what: string, more: Partial<NodeWrite> = {}): NodeWrite {
  const [full = '', name = '', subresource = ''] = what.split('/');
  const [resource = '', ...group] = full.split('.');
  return { operation, group: group.join('.'), resource, subresource, name, namespace: 'ns', ...more };
}

/** undefined when it is admitted, else the message. */
export function verdict(
  request: NodeWrite,
  world = lookup,
  caller = mynode,
  nodeAudiences: string[] = [],
): string | undefined {
  const failure = failureOf(() => {
    restrictNode(caller, request, { lookup: world, nodeAudiences, authorizer: authorizerOf(world) });
    throw Object.assign(new Error('admitted'), { status: { code: 0 } });
  });
  if (failure.code === 0) return undefined;
  expect(failure.code).toBe(failure.reason === 'NotFound' ? 404 : 403);
  return failure.message;
}

export type Case = readonly [name: string, request: NodeWrite, refusal: string | undefined];
export function table(cases: readonly Case[], world = lookup): void {
  for (const [name, request, refusal] of cases) {
    it(`${refusal === undefined ? 'allows' : 'forbids'} ${name}`, () => {
      if (refusal === undefined) expect(verdict(request, world)).toBeUndefined();
      else expect(verdict(request, world)).toContain(refusal);
    });
  }
}

export const UNEXPECTED = 'forbidden: unexpected operation';
export const ELSEWHERE = 'spec.nodeName set to itself';
